// Command cmserver serves the Kubernetes ConfigMap API from one durable store.
//
//	cmserver --listen 127.0.0.1:8080 --data-dir ./data
//
// It runs in the foreground until SIGTERM or SIGINT, answers what is under way,
// and ends with 0. A second signal ends it at once.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// Room for both signals, so that none is missed between the two reads.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		fmt.Fprintln(os.Stderr, "cmserver: ended by a second signal, requests under way were cut off")
		os.Exit(1)
	}()

	err := run(ctx, os.Args[1:], streams{out: os.Stdout, err: os.Stderr})
	if err != nil {
		fmt.Fprintf(os.Stderr, "cmserver: %v\n", err)
	}
	os.Exit(exitCode(err))
}
