package server

import (
	"context"
	"sync"

	"example.com/cmctl/pkg/types"
)

// watches are those that run: counted apart from other requests, since each
// lasts for long and does little.
type watches struct {
	places places
	mu     sync.Mutex                       // guards what follows
	open   map[*watching]context.CancelFunc // nil until it has started
	ended  bool
}

// admit takes w in, or refuses it.
func (ws *watches) admit(w *watching) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.ended {
		return types.Unavailable("the server is shutting down", 1)
	}
	if err := ws.places.enter(w.sender); err != nil {
		return err
	}
	if ws.open == nil {
		ws.open = map[*watching]context.CancelFunc{}
	}
	ws.open[w] = nil
	return nil
}

// start gives w, which was admitted, the context that it runs in.
func (ws *watches) start(ctx context.Context, w *watching) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.open[w] = cancel
	if ws.ended {
		cancel()
	}
	return ctx, cancel
}

func (ws *watches) remove(w *watching) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if _, open := ws.open[w]; open {
		delete(ws.open, w)
		ws.places.leave(w.sender)
	}
}

// end ends all, and admits none any more.
func (ws *watches) end() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.ended = true
	for _, cancel := range ws.open {
		if cancel != nil {
			cancel()
		}
	}
}

// EndWatches ends every watch as if its time were over, and refuses new ones.
// It returns at once. To be called when the server begins to stop, which waits
// for the requests that run.
func (s *Server) EndWatches() { s.watches.end() }
