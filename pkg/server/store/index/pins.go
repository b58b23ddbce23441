package index

import (
	"sync"

	"example.com/cmctl/pkg/server/store"
)

// Pins keep the states of the last few lists that had more than one page, so that
// their next pages cost as little as the first.
type Pins struct {
	mu    sync.Mutex // guards views
	views []*State   // oldest first
}

// MaxPins is how many states Pins keep.
const MaxPins = 16

// Add keeps a state, in place of the oldest.
func (p *Pins) Add(v *State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.views {
		if w.Current == v.Current {
			return
		}
	}
	if len(p.views) == MaxPins {
		p.views = append(p.views[:0], p.views[1:]...)
	}
	p.views = append(p.views, v)
}

// Get is the state of a revision, nil if it is not kept.
func (p *Pins) Get(at store.Revision) *State {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.views {
		if v.Current == at {
			return v
		}
	}
	return nil
}

// Drop forgets the states before at.
func (p *Pins) Drop(at store.Revision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := make([]*State, 0, MaxPins)
	for _, v := range p.views {
		if v.Current >= at {
			kept = append(kept, v)
		}
	}
	p.views = kept
}

// Clear forgets all of them.
func (p *Pins) Clear() { p.Drop(1<<63 - 1) }
