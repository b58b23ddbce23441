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
	args, asPlugin := calledAs(os.Args)
	return run(ctx, args, streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, asPlugin: asPlugin}, interrupts)
}
