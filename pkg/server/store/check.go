package store

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
)

// Check refuses what no key can be: it could be taken for another.
func (k Key) Check() error {
	if k == "" {
		return errors.New("empty key")
	}
	if strings.IndexByte(string(k), 0) >= 0 {
		return fmt.Errorf("key %q has a NUL byte", string(k))
	}
	return nil
}

// Check refuses what no caller of Commit may get wrong.
func (t Txn) Check() error {
	if len(t.Writes) == 0 {
		return errors.New("commit without a write")
	}
	for _, g := range t.Guards {
		if err := g.Key.Check(); err != nil {
			return fmt.Errorf("guard: %w", err)
		}
		if g.Revision < 0 {
			return fmt.Errorf("guard: %s: revision %d is below 0", g.Key, g.Revision)
		}
	}
	seen := make(map[Key]bool, len(t.Writes))
	for i := range t.Writes {
		rec := &t.Writes[i]
		if err := rec.check(); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		if seen[rec.Key] {
			return fmt.Errorf("write: %s: written twice", rec.Key)
		}
		seen[rec.Key] = true
	}
	return nil
}

func (r *Record) check() error {
	switch err := r.Key.Check(); {
	case err != nil:
		return err
	case r.Deleted && r.Value != nil:
		return fmt.Errorf("%s: a deletion with a value", r.Key)
	case !r.Deleted && r.Value == nil:
		return fmt.Errorf("%s: no value", r.Key)
	case r.VersionAt < 0 || r.VersionAt > len(r.Value):
		return fmt.Errorf("%s: version offset %d outside a value of %d bytes", r.Key, r.VersionAt, len(r.Value))
	case r.Deleted && !r.Brief.IsZero():
		return fmt.Errorf("%s: a deletion with a brief", r.Key)
	case r.Brief.Head < 0 || r.Brief.Head > len(r.Value) || r.Brief.Keys < 0:
		return fmt.Errorf("%s: a brief with %d keys and a head of %d bytes of %d", r.Key, r.Brief.Keys, r.Brief.Head, len(r.Value))
	}
	return nil
}

// Kept is the record as a store gives it back: without a revision, with labels of its
// own, and with times as exact as they are kept.
func (r Record) Kept() Record {
	r.Revision = 0
	if r.Labels = maps.Clone(r.Labels); len(r.Labels) == 0 {
		r.Labels = nil
	}
	if !r.Time.IsZero() {
		r.Time = r.Time.UTC().Truncate(time.Millisecond)
	}
	r.Brief.Created = time.Unix(r.Brief.Created.Unix(), 0).UTC()
	return r
}
