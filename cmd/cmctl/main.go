// Command cmctl reads and writes ConfigMaps without ever losing an update: a
// change that meets another one is made again on the fresh copy, and what can't
// be put together is left to a person.
package main

import (
	"os"
	"runtime/debug"
)

func main() {
	os.Exit(Main())
}

// Main runs the program on the process's own arguments and streams and returns
// its exit code.
func Main() int {
	if os.Getenv("GOGC") == "" {
		// Most runs end before it pays to collect garbage.
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(512 << 20)
	}
	ctx, interrupts, stop := withInterrupts()
	defer stop()
	return run(ctx, os.Args[1:], streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, interrupts)
}
