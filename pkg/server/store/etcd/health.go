package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"example.com/cmctl/pkg/server/store"
)

// health is what is known of the cluster.
type health struct {
	mu     sync.Mutex // guards what follows
	away   error      // it can't be reached, or has no quorum
	full   error      // its space quota is used up
	fullAt time.Time  // when that was met
}

const (
	checkEvery = time.Second
	// fullFor is for how long a write that was refused counts, where nobody tells whether
	// the cluster still has no room.
	fullFor = 10 * time.Second
)

// reachable is nil unless the cluster is known to be away: who needs it is told at once.
func (h *health) reachable() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.away
}

func (h *health) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away != nil {
		return h.away
	}
	return h.full
}

// set notes whether the cluster is away, and tells whether that is news. A store that has
// failed stays so.
func (h *health) set(away error) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(h.away, store.ErrFailed) {
		return false
	}
	changed = (away == nil) != (h.away == nil) || errors.Is(away, store.ErrFailed)
	h.away = away
	if time.Since(h.fullAt) > fullFor {
		h.full = nil
	}
	return changed
}

// filled notes that the cluster has no room.
func (h *health) filled(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.full, h.fullAt = err, time.Now()
}

func (h *health) wrote() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.full = nil
}

// watchHealth looks after the cluster until the store is closed.
func (s *Store) watchHealth() {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
			s.check()
		case <-s.members.doubted:
			s.learnMode(s.ctx)
		}
	}
}

// check looks after the cluster once.
func (s *Store) check() {
	at, err := s.signOfLife()
	if s.ctx.Err() != nil {
		return
	}
	if s.health.set(err) {
		if err != nil {
			s.log.Error("store: etcd can't be reached; nothing is written or read until it is back", "error", err)
		} else {
			s.log.Info("store: etcd is reached again")
		}
	}
	if err == nil {
		s.lookForAlarms()
		s.mode.refresh(s)
		s.lookAtWatch(at)
	}
}

// signOfLife asks the cluster for its revision: one that was away, more often.
func (s *Store) signOfLife() (store.Revision, error) {
	ctx := s.ctx
	if s.health.reachable() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, checkEvery)
		defer cancel()
	}
	rev, err := s.askRevision(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	}
	return rev, err
}

// lookAtWatch has the watch that feeds the cache tell how far it has come, and doubts one that
// has not come as far as the cluster: if it doesn't say anything, it is dead.
func (s *Store) lookAtWatch(at store.Revision) {
	if s.limited || s.cache.level.get() >= at {
		return
	}
	s.cache.doubt()
	s.requestProgress()
}

// lookForAlarms asks whether the cluster is out of space. Not every user may ask that.
func (s *Store) lookForAlarms() {
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.Timeout)
	defer cancel()
	alarms, err := s.client.AlarmList(ctx)
	if err != nil {
		return
	}
	for _, a := range alarms.Alarms {
		if a.Alarm == etcdserverpb.AlarmType_NOSPACE {
			s.health.filled(fmt.Errorf("%w (alarm NOSPACE of member %x)", store.ErrClusterFull, a.MemberID))
			return
		}
	}
	s.health.wrote()
}

// Healthy is nil while the store takes writes. See store.Store.
func (s *Store) Healthy() error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	if err := s.health.err(); err != nil {
		return err
	}
	if err := s.cache.failure(); err != nil {
		return fmt.Errorf("%w: its changes don't come through: %w", store.ErrUnreachable, err)
	}
	return nil
}
