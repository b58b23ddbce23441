package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
)

// interrupts turns SIGINT, SIGTERM and SIGHUP into the end of a context, except while
// an editor or a program has the terminal: Ctrl-C there reaches the whole foreground
// group and is meant for that one.
type interrupts struct {
	editing atomic.Bool
	passing atomic.Bool
	caught  atomic.Bool
	draft   atomic.Pointer[string] // the file with a person's text, if there is one

	mu   sync.Mutex
	last map[int]func() // guarded by mu: what to do if the program has to end at once
	next int            // guarded by mu: the next one's key in last
}

// before notes what to do if the program has to end at once, until forget is
// called.
func (i *interrupts) before(end func()) (forget func()) {
	if i == nil {
		return func() {}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.last == nil {
		i.last = map[int]func(){}
	}
	key := i.next
	i.last[key] = end
	i.next++
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.last, key)
	}
}

// endAll does what is to be done before the program ends at once.
func (i *interrupts) endAll() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, end := range i.last {
		end()
	}
}

// keeps notes the file with the person's text, to be named if the program has
// to end at once.
func (i *interrupts) keeps(path string) {
	if i != nil {
		i.draft.Store(&path)
	}
}

// whileEditing runs f with Ctrl-C left to the editor.
func (i *interrupts) whileEditing(f func() error) error {
	if i == nil {
		return f()
	}
	i.editing.Store(true)
	defer i.editing.Store(false)
	return f()
}

// whileRunning runs f with all signals left to it: it passes them on to a program.
func (i *interrupts) whileRunning(f func() error) error {
	if i == nil {
		return f()
	}
	i.passing.Store(true)
	defer i.passing.Store(false)
	return f()
}

// interrupted tells whether a person or the system asked the program to end.
func (i *interrupts) interrupted() bool { return i != nil && i.caught.Load() }

func withInterrupts() (context.Context, *interrupts, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	i := &interrupts{}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s := range signals {
			if i.passing.Load() || s == os.Interrupt && i.editing.Load() {
				continue
			}
			if i.caught.Swap(true) {
				// The second time nobody wants to wait for a settled answer.
				if path := i.draft.Load(); path != nil {
					fmt.Fprintf(os.Stderr, "interrupted; your text, if you changed it, is in %s\n", *path)
				}
				i.endAll()
				os.Exit(exitInterrupted)
			}
			cancel()
		}
	}()
	return ctx, i, func() {
		signal.Stop(signals)
		close(signals)
		<-done
		cancel()
	}
}
