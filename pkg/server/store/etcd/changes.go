package etcd

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
)

// change is what a transaction has made of one key.
type change struct {
	rev       store.Revision
	key       store.Key        // of an object; empty: it is something else
	item      *index.Item      // nil: it was deleted
	value     []byte           // of a large item, if all of it came along
	tombstone store.Record     // of a deletion
	old       *index.Item      // what was there
	moved     store.Collection // this was moved along
	mod       int64
	compacted store.Revision // this was given up
}

// changesOf makes changes of what etcd tells, which has all of a transaction together.
func (s *Store) changesOf(events []*clientv3.Event) ([]change, error) {
	var changes []change
	for len(events) > 0 {
		n := 1
		for n < len(events) && events[n].Kv.ModRevision == events[0].Kv.ModRevision {
			n++
		}
		var err error
		if changes, err = s.transaction(changes, events[:n]); err != nil {
			return nil, err
		}
		events = events[n:]
	}
	return changes, nil
}

// transaction adds what one transaction has changed.
func (s *Store) transaction(changes []change, events []*clientv3.Event) ([]change, error) {
	rev := s.revision(events[0].Kv.ModRevision)
	rests, stones := map[string][]byte{}, map[string][]byte{} // by key of the object
	for _, e := range events {
		if what, rest := s.keys.split(string(e.Kv.Key)); e.Type == clientv3.EventTypePut {
			switch what {
			case isValue:
				key, _, _ := strings.Cut(rest, "\x00")
				rests[key] = e.Kv.Value
			case isTombstone:
				stones[rest] = e.Kv.Value
			}
		}
	}
	made := len(changes)
	for _, e := range events {
		what, rest := s.keys.split(string(e.Kv.Key))
		c := change{rev: rev, mod: e.Kv.ModRevision}
		var err error
		switch {
		case what == isObject && e.Type == clientv3.EventTypePut:
			c.key = store.Key(rest)
			err = s.written(&c, e.Kv.Value, rests[rest])
		case what == isTombstone && e.Type == clientv3.EventTypePut:
			c.key = store.Key(rest)
			err = s.gone(&c, e.Kv.Value)
		case what == isObject && stones[rest] == nil: // somebody else has deleted it
			c.key = store.Key(rest)
			err = s.gone(&c, nil)
		case what == isCount:
			c.moved = store.Collection(rest)
		case string(e.Kv.Key) == s.keys.compacted():
			c.compacted = parseRevision(e.Kv.Value)
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	if len(changes) == made { // values and tombstones that were cleaned up
		changes = append(changes, change{rev: rev})
	}
	return changes, nil
}

func (s *Store) written(c *change, data, rest []byte) error {
	v, err := decodeVersion(c.key, c.rev, data)
	if err == nil {
		c.item, err = s.item(v)
	}
	if err != nil || !c.item.Large || v.Apart && rest == nil {
		return err
	}
	rec, err := v.complete(rest)
	c.value = rec.Value
	return err
}

// gone makes a tombstone of a deletion. Somebody else's has none.
func (s *Store) gone(c *change, data []byte) error {
	if data == nil {
		c.tombstone = store.Record{Key: c.key, Revision: c.rev, Deleted: true}
		return nil
	}
	v, err := decodeVersion(c.key, c.rev, data)
	c.tombstone = v.Record
	return err
}

// events are what those who watch get of the changes.
func (s *Store) events(ctx context.Context, changes []change) ([]store.Event, error) {
	var events []store.Event
	for i := range changes {
		c := &changes[i]
		if c.key == "" {
			continue
		}
		e := store.Event{Record: c.tombstone}
		var err error
		if c.item != nil {
			if e.Record, err = s.complete(ctx, c.item, store.Whole); err != nil {
				return nil, fmt.Errorf("read %s for those who watch it: %w", c.key, err)
			}
		}
		if c.old != nil {
			was, err := s.complete(ctx, c.old, store.Whole)
			if err != nil {
				return nil, fmt.Errorf("read %s as it was for those who watch it: %w", c.key, err)
			}
			e.Prev = &was
		}
		events = append(events, e)
	}
	return events, nil
}
