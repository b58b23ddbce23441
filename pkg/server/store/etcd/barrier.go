package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/cmctl/pkg/server/store"
)

// barrier tells the revision of the cluster. All who ask while one question is under way
// share the next one, which is sent after they came: what was written before they asked is
// in its answer.
type barrier struct {
	ask   func() (store.Revision, error)
	start func(func()) // runs something beside

	mu      sync.Mutex // guards what follows
	running bool
	next    *round // the question that is not yet sent; nil if nobody waits for it
}

type round struct {
	done chan struct{} // closed when the rest is set
	rev  store.Revision
	err  error
}

func (b *barrier) revision(ctx context.Context) (store.Revision, error) {
	b.mu.Lock()
	if b.next == nil {
		b.next = &round{done: make(chan struct{})}
	}
	mine := b.next
	if !b.running {
		b.running = true
		b.start(b.run)
	}
	b.mu.Unlock()
	select {
	case <-mine.done:
		return mine.rev, mine.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// run asks for as long as somebody waits.
func (b *barrier) run() {
	for {
		b.mu.Lock()
		r := b.next
		b.next = nil
		if r == nil {
			b.running = false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		r.rev, r.err = b.ask()
		close(r.done)
	}
}

// askRevision asks the cluster for its revision, in a way that needs its leader.
func (s *Store) askRevision(ctx context.Context) (store.Revision, error) {
	known := s.cache.level.get()
	r, err := s.ask(ctx, s.keys.format(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	rev := s.revision(r.Header.Revision)
	if rev < known && !s.limited {
		return 0, s.wentBack(known, rev)
	}
	return rev, nil
}

// wentBack gives up on a cluster that has become an earlier one: what is in memory is of
// another life, and so are the versions that clients have.
func (s *Store) wentBack(from, to store.Revision) error {
	err := fmt.Errorf("%w: the cluster has gone back from revision %d to %d, as one that was restored from a backup; "+
		"see that its revisions were raised, then restart all cmservers", store.ErrFailed, from, to)
	if s.health.set(err) {
		s.log.Error("store: " + err.Error())
	}
	s.hub.Close(err)
	return err
}

// A watch that is behind mostly has what is missing on its way. After a moment it is asked
// how far it has come, and again after a longer one.
const (
	moment = time.Millisecond
	nudge  = 100 * time.Millisecond
)

// hasten waits for the cache, and has etcd tell how far the watch has come: where others
// alone have written nothing comes by itself.
func (s *Store) hasten(ctx context.Context, rev store.Revision) error {
	began := time.Now()
	for pause := moment; ; pause = nudge {
		short, cancel := context.WithTimeout(ctx, pause)
		err := s.cache.level.wait(short, rev)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if time.Since(began) > s.patience() {
			s.cache.doubt()
		}
		s.requestProgress()
	}
}

// requestProgress asks on the stream of the watch. Nobody takes the question while that is
// begun anew, so it is given up after a while: who needs the answer asks again.
func (s *Store) requestProgress() {
	ctx, cancel := context.WithTimeout(s.streams(), nudge)
	defer cancel()
	_ = s.client.RequestProgress(ctx)
}
