package main

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"example.com/cmctl/pkg/client"
)

// maxWatches is how many objects are followed by a watch each. Beyond it one
// watch of the whole namespace costs less.
const maxWatches = 16

// followNamed follows objects by their names as one sequence, with one Synced
// once all of them are. Without names it is what maps.Watch gives.
func followNamed(ctx context.Context, maps *client.ConfigMaps, names []string, watch func(name string) client.WatchOptions) iter.Seq2[client.Event, error] {
	switch {
	case len(names) == 0:
		return maps.Watch(ctx, watch(""))
	case len(names) == 1:
		return maps.Watch(ctx, watch(names[0]))
	case len(names) <= maxWatches:
		return together(ctx, maps, names, watch)
	}
	return func(yield func(client.Event, error) bool) {
		for e, err := range maps.Watch(ctx, watch("")) {
			if e.Object != nil && !slices.Contains(names, e.Object.Name()) {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// followOne follows one object for as long as it takes, over restarts of the server.
func (f *factory) followOne(ctx context.Context, conn *connection, name string) iter.Seq2[client.Event, error] {
	server := &connectivity{factory: f}
	return conn.ConfigMaps(conn.namespace).Watch(ctx, client.WatchOptions{Name: name, Patient: true, Observe: server.observer()})
}

// together runs one watch for each name.
func together(ctx context.Context, maps *client.ConfigMaps, names []string, watch func(name string) client.WatchOptions) iter.Seq2[client.Event, error] {
	type told struct {
		event client.Event
		err   error
	}
	return func(yield func(client.Event, error) bool) {
		running, stop := context.WithCancel(ctx)
		events := make(chan told) // sent by the watches until running ends; nobody closes it
		var watches sync.WaitGroup
		defer watches.Wait()
		defer stop()
		for _, name := range names {
			watches.Go(func() {
				for e, err := range maps.Watch(running, watch(name)) {
					select {
					case events <- told{e, err}:
					case <-running.Done():
						return
					}
				}
			})
		}
		for unsynced := len(names); ; {
			select {
			case <-ctx.Done():
				yield(client.Event{}, ctx.Err())
				return
			case t := <-events:
				if t.event.Type == client.Synced {
					if unsynced--; unsynced > 0 {
						continue
					}
				}
				if !yield(t.event, t.err) || t.err != nil {
					return
				}
			}
		}
	}
}

// connectivity tells a person how watches fare, once for each time that the
// server is out of reach, and remembers whether it is.
type connectivity struct {
	*factory
	mu     sync.Mutex // guards what follows
	broken int        // watches that are
	why    error
}

// observer is for one watch.
func (c *connectivity) observer() func(client.WatchNotice) {
	broken := false
	return func(n client.WatchNotice) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case n.Kind == client.WatchRelisting:
			c.note("the changes since the last event can't be had one by one (%s); what differs is found by listing anew", reason(n.Err))
		case n.Kind == client.WatchBroken && !broken:
			broken, c.why = true, n.Err
			if c.broken++; c.broken == 1 {
				c.note("the watch broke: %s; trying again until the server answers", reason(n.Err))
			}
		case n.Kind == client.WatchBroken:
			c.why = n.Err
		case n.Kind == client.WatchResumed && broken:
			broken = false
			if c.broken--; c.broken == 0 {
				c.note("the server answers again; going on from the last event")
			}
		}
	}
}

// lost is why the server is out of reach now, nil if it isn't.
func (c *connectivity) lost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == 0 {
		return nil
	}
	return c.why
}

// reason is an error without advice, on one line.
func reason(err error) string {
	var broken *client.ConnectionError
	var several *client.ServersError
	switch {
	case errors.As(err, &several):
		return several.Causes()
	case errors.As(err, &broken):
		return broken.Cause
	}
	return serverWords(err)
}
