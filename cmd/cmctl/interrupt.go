package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// interrupts turns SIGINT, SIGTERM and SIGHUP into the end of a context, except while
// an editor or a program has the terminal: Ctrl-C there reaches the whole foreground
// group and is meant for that one.
type interrupts struct {
	editing atomic.Bool
	passing atomic.Bool
	caught  atomic.Bool
	draft   atomic.Pointer[string] // the file with a person's text, if there is one

	mu      sync.Mutex
	running map[int]func() // guarded by mu: what ends the programs that run
	next    int            // guarded by mu: the next one's key in running
}

// before takes note of a program that is about to run, until forget is called: it
// is ended before this one ends at once. All that start programs give it to package
// command, but for exec, which gets no signal while its program runs.
func (i *interrupts) before(end func()) (forget func()) {
	if i == nil {
		return func() {}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.running == nil {
		i.running = map[int]func(){}
	}
	key := i.next
	i.running[key] = end
	i.next++
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.running, key)
	}
}

// endAll ends the programs that run. It keeps the lock, so that no other is
// started any more.
func (i *interrupts) endAll() {
	i.mu.Lock()
	for _, end := range i.running {
		end()
	}
}

// waiting tells whether there is a program that a person who wants this one to end
// may not know of.
func (i *interrupts) waiting() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.running) > 0 && !i.editing.Load()
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
		i.obey(signals, cancel)
	}()
	return ctx, i, func() {
		signal.Stop(signals)
		close(signals)
		<-done
		cancel()
	}
}

// obey has the first signal end the context, and the second one the program.
func (i *interrupts) obey(signals <-chan os.Signal, cancel func()) {
	var waited <-chan time.Time // nil before the first signal
	for {
		select {
		case s, ok := <-signals:
			switch {
			case !ok:
				return
			case i.passing.Load() || s == os.Interrupt && i.editing.Load():
			case i.caught.Swap(true):
				i.endAtOnce()
			default:
				cancel()
				waited = time.After(time.Second)
			}
		case <-waited:
			if i.waiting() {
				fmt.Fprintln(os.Stderr, "interrupted; waiting for the program that still runs to end (interrupt again to kill it)")
			}
		}
	}
}

// endAtOnce ends the program: nobody wants to wait for a settled answer any longer.
func (i *interrupts) endAtOnce() {
	i.endAll() // first the editor, or what is said vanishes with its screen
	if path := i.draft.Load(); path != nil {
		fmt.Fprintf(os.Stderr, "interrupted; your text, if you changed it, is in %s\n", *path)
	}
	os.Exit(exitInterrupted)
}
