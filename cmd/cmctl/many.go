package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// inFlight is how many objects are worked on at once: enough to hide the way to
// the server and its disk, and few enough for one that others use too.
const inFlight = 32

// outcome is what became of one object.
type outcome struct {
	verb   string         // created, unchanged, ... as the summary counts it
	object types.Document // for -o yaml and json; nil if there is none
}

// results say how -o prints the objects, and whether it was a dry run that made
// them.
type results struct {
	form   string // empty prints none
	list   bool   // even a single one is a List
	dryRun string // as --dry-run says; empty is none
}

// work deals with the object of that number. What it prints goes through f.
type work func(ctx context.Context, f *factory, i int) (outcome, error)

// batch does the same with many objects, several at once. What it prints comes in
// the order of the objects, and what is said about one stands together.
type batch struct {
	*factory
	verb    string  // what the progress bar says: apply
	results results // where the objects go

	begun atomic.Int64   // objects begun
	stop  atomic.Bool    // no more are to begin
	done  chan *finished // sent by workers, closed when all have ended
}

// finished is an object that is done with, for good or ill.
type finished struct {
	i        int
	out, err bytes.Buffer // what it printed
	outcome  outcome
	failure  error
}

// inOrder runs do for n objects and returns the failures in their order. When the
// context ends, or a server can't be reached at all, the objects that were not
// begun are counted in the last one.
func (f *factory) inOrder(ctx context.Context, verb string, results results, n int, do work) []error {
	b := &batch{factory: f, verb: verb, results: results, done: make(chan *finished, inFlight)}
	go b.start(ctx, n, do)
	errs := b.show(n)
	// Every object that was begun is shown now.
	left := n - min(n, int(b.begun.Load()))
	switch {
	case left == 0:
	case ctx.Err() != nil:
		errs = append(errs, untried(ctx, left))
	default:
		errs = append(errs, fmt.Errorf("%d more were not tried", left))
	}
	return errs
}

// start runs the workers and closes done when all have ended. The first object
// goes alone: if it shows that there is no use in going on, that is said once.
func (b *batch) start(ctx context.Context, n int, do work) {
	defer close(b.done)
	if !b.next(ctx, n, do) {
		return
	}
	var workers sync.WaitGroup
	for range min(n-1, inFlight) {
		workers.Go(func() {
			for b.next(ctx, n, do) {
			}
		})
	}
	workers.Wait()
}

// next takes an object that nobody has begun. It is false if there is none to
// take.
func (b *batch) next(ctx context.Context, n int, do work) bool {
	if ctx.Err() != nil || b.stop.Load() {
		return false
	}
	i := int(b.begun.Add(1)) - 1
	if i >= n {
		return false
	}
	r := &finished{i: i}
	f := *b.factory
	if n > 1 { // else there is nothing that it could get mixed up with
		f.Out, f.Err = &r.out, &r.err
	}
	r.outcome, r.failure = do(ctx, &f, i)
	if hopeless(r.failure) {
		b.stop.Store(true)
	}
	b.done <- r
	return true
}

// hopeless tells that the next object would fail alike: nobody answers, or nobody
// knows who asks.
func hopeless(err error) bool {
	return errors.As(err, new(*retry.UnsentError)) || apierrors.IsUnauthorized(err)
}

// show prints the results in order, and the summary at the end.
func (b *batch) show(n int) (errs []error) {
	bar := newBar(b.Err, b.verb, n, b.now)
	defer bar.clear()
	early := map[int]*finished{} // done before one that stands before it
	tally := &tally{n: n}
	var objects []types.Document
	shown := 0
	for done := 1; ; done++ {
		r, more := <-b.done
		if !more {
			break
		}
		early[r.i] = r
		for r, ok := early[shown]; ok; r, ok = early[shown] {
			delete(early, shown)
			shown++
			if r.out.Len()+r.err.Len() > 0 {
				bar.clear()
			}
			if err := b.print(r); err != nil {
				b.stop.Store(true)
				r.failure = cmp.Or(r.failure, err)
			}
			if r.outcome.object != nil {
				objects = append(objects, r.outcome.object)
			}
			if r.failure != nil {
				errs = append(errs, r.failure)
			}
			tally.add(r)
		}
		bar.draw(done)
	}
	bar.clear()
	if err := b.printObjects(n, objects); err != nil {
		errs = append(errs, err)
	}
	if n > 1 {
		b.note("%s", dryly(tally.String(), b.results.dryRun))
	}
	return errs
}

// print passes on what an object's work printed.
func (b *batch) print(r *finished) error {
	// A note that can't be written is no reason to fail.
	_, _ = r.err.WriteTo(b.Err)
	if _, err := r.out.WriteTo(b.Out); err != nil {
		return fmt.Errorf("it is done, but the result can't be printed: %w", err)
	}
	return nil
}

// printObjects prints what was written, without the bookkeeping that get hides too:
// one object as such, several as a List.
func (b *batch) printObjects(n int, objects []types.Document) error {
	none := len(objects) == 0 && (n > 0 || !b.results.list) // that nothing matched is an empty List
	if form := b.results.form; form != "yaml" && form != "json" || none {
		return nil
	}
	for i, d := range objects {
		objects[i] = d.Clone()
		objects[i].SetMeta("managedFields", nil)
	}
	if err := printObjects(b.Out, b.results.form, output.Objects{Items: objects, List: n > 1 || b.results.list}); err != nil {
		return fmt.Errorf("it is done, but the result can't be printed: %w", err)
	}
	return nil
}

// tally counts outcomes, in the order in which they first occur.
type tally struct {
	n      int
	words  []string
	counts map[string]int
}

func (t *tally) add(r *finished) {
	word := r.outcome.verb
	switch {
	case r.failure != nil && exitCode(r.failure) == exitConflict:
		word = "in conflict"
	case r.failure != nil:
		word = "failed"
	}
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	if !slices.Contains(t.words, word) {
		t.words = append(t.words, word)
	}
	t.counts[word]++
}

// String is the summary: 1000 objects: 990 created, 9 unchanged, 1 in conflict.
func (t *tally) String() string {
	parts, done := make([]string, 0, len(t.words)+1), 0
	for _, word := range t.words {
		parts = append(parts, fmt.Sprintf("%d %s", t.counts[word], word))
		done += t.counts[word]
	}
	if done < t.n {
		parts = append(parts, fmt.Sprintf("%d not tried", t.n-done))
	}
	return fmt.Sprintf("%d objects: %s", t.n, strings.Join(parts, ", "))
}
