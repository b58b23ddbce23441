// Command cmserver serves the Kubernetes ConfigMap API from one durable store.
//
//	cmserver --listen 127.0.0.1:8080 --data-dir ./data
//
// It runs in the foreground until SIGTERM or SIGINT, answers what is under way,
// and ends with 0. A second signal, from a person who can't wait, ends it at
// once. A command that is not done by the first signal ends with 128 and its number.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// impatience is how long after the first signal another one means a second wish.
const impatience = time.Second

// ballast is memory that is never touched, and so takes no room: it lets the heap
// of a small server grow by as much before garbage is collected.
const ballast = 32 << 20

func main() {
	ownFilesOnly()
	held := make([]byte, ballast)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		signal := <-signals
		first := time.Now()
		cancel(interruption{signal})
		for signal := range signals {
			// Supervisors signal a process and its group: one wish, two signals.
			if time.Since(first) > impatience {
				fmt.Fprintln(os.Stderr, "cmserver: ended by a second signal; what was under way was cut off")
				os.Exit(interruption{signal}.exitCode())
			}
		}
	}()

	err := run(ctx, os.Args[1:], streams{out: os.Stdout, err: os.Stderr})
	if err != nil {
		fmt.Fprintf(os.Stderr, "cmserver: %v\n", err)
	}
	runtime.KeepAlive(held)
	os.Exit(exitCode(err))
}
