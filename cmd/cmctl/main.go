// Command cmctl reads and writes ConfigMaps without ever losing an update: a
// change that meets another one is made again on the fresh copy, and what can't
// be put together is left to a person.
package main

import (
	"os"
)

func main() {
	os.Exit(Main())
}

// Main runs the program on the process's own arguments and streams and returns
// its exit code.
func Main() int {
	ctx, interrupts, stop := withInterrupts()
	defer stop()
	args, asPlugin := calledAs(os.Args)
	return run(ctx, args, streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, asPlugin: asPlugin}, interrupts)
}
