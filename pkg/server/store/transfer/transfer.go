// Package transfer copies what one store holds into another, of whatever kinds they
// are: every live object with the history that is kept of it. It is what cmserver
// migrate does.
//
// The versions of the copy are new ones, all beyond those of the source, so that none
// that a client remembers means something else there. In everything else, write ids and
// times included, each version is what it was. Objects that were deleted stay behind.
//
// While a copy is unfinished a mark in the target says so, and no server should be
// started on it. Copy goes on where an earlier one was interrupted, or where the source
// was written to meanwhile.
package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"example.com/cmctl/pkg/server/store"
)

// markKey is the record that is in the target while the copy is unfinished.
const markKey store.Key = "cmserver/unfinished-migration"

var (
	// ErrNotEmpty comes from Copy for a target that holds something which no
	// unfinished copy has left.
	ErrNotEmpty = errors.New("it is not empty")
	// ErrBehind comes from Copy for a target whose versions are not beyond those of the
	// source.
	ErrBehind = errors.New("its versions are not beyond those of the source")
	// ErrMoved comes from Copy if the source was written to meanwhile. Another Copy
	// brings over what is missing.
	ErrMoved = errors.New("the source was written to while it was copied")
	// ErrDiffers comes from Copy if the target does not hold what it was given.
	ErrDiffers = errors.New("the copy is not what was written")
)

const (
	// pageSize is how many records are read at once, and wholePage how many whole ones,
	// of which each may have a megabyte.
	pageSize  = 500
	wholePage = 32
	// writers is how many objects are under way at once: enough for a store to make
	// many commits durable at a time.
	writers = 64
)

// Report is what was copied.
type Report struct {
	Objects  int            // that are there
	Versions int            // of them, written by this Copy
	From, To store.Revision // where the stores stand
}

// Unfinished tells whether a store is the target of a copy that has not come to its end.
func Unfinished(ctx context.Context, st store.Store) (bool, error) {
	_, err := st.Get(ctx, markKey, 0)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Copy copies what from holds into to, which must be empty, or left by a Copy of the same
// source that did not come to its end. It reads all of both afterwards and holds them
// against each other. progress, unless it is nil, is told now and then how many objects
// of how many are done, by one goroutine at a time.
func Copy(ctx context.Context, from, to store.Store, progress func(done, of int)) (Report, error) {
	c := &copier{from: from, to: to, progress: progress}
	if err := c.begin(ctx); err != nil {
		return Report{}, err
	}
	if err := c.copy(ctx); err != nil {
		return Report{}, err
	}
	if err := c.verify(ctx); err != nil {
		return Report{}, err
	}
	return c.finish(ctx)
}

type copier struct {
	from, to store.Store
	progress func(done, of int)
	source   store.Revision // the state that is copied
	objects  int
	versions atomic.Int64
}

// begin marks the target as unfinished.
func (c *copier) begin(ctx context.Context) error {
	page, err := c.from.List(ctx, store.ListOptions{Limit: 1, Part: store.BriefAlone})
	if err != nil {
		return fmt.Errorf("read the source: %w", err)
	}
	c.source, c.objects = page.Revision, len(page.Records)+page.Remaining
	unfinished, err := Unfinished(ctx, c.to)
	if err != nil {
		return fmt.Errorf("read the target: %w", err)
	}
	at, err := c.to.List(ctx, store.ListOptions{Limit: 1, Part: store.BriefAlone})
	switch {
	case err != nil:
		return fmt.Errorf("read the target: %w", err)
	case len(at.Records) > 0 && !unfinished:
		return fmt.Errorf("the target can't be used: %w", ErrNotEmpty)
	case at.Revision < c.source:
		return fmt.Errorf("the target can't be used: %w: it is at %d, and the source at %d", ErrBehind, at.Revision, c.source)
	case unfinished:
		return nil
	}
	_, err = c.to.Commit(ctx, store.Txn{
		Guards: []store.Guard{{Key: markKey}},
		Writes: []store.Record{{Key: markKey, Value: []byte("{}")}},
	})
	if err != nil {
		return fmt.Errorf("write to the target: %w", err)
	}
	return nil
}

// copy brings over each object of the source, and what became of those that only the
// target has: they went away since an earlier copy.
func (c *copier) copy(ctx context.Context) error {
	work, together := errgroup.WithContext(ctx)
	work.SetLimit(writers)
	done := 0
	err := each(together, c.from, c.source, store.BriefAlone, func(rec store.Record) error {
		work.Go(func() error { return c.object(together, rec.Key) })
		if done++; c.progress != nil {
			c.progress(done, max(done, c.objects))
		}
		return nil
	})
	if err = errors.Join(work.Wait(), err); err != nil {
		return err
	}
	return each(ctx, c.to, 0, store.BriefAlone, func(rec store.Record) error {
		if rec.Key == markKey {
			return nil
		}
		if _, err := c.from.Get(ctx, rec.Key, c.source); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return c.gone(ctx, rec)
	})
}

// each calls f with the live records of one state, 0: of the newest, in key order.
func each(ctx context.Context, st store.Store, at store.Revision, part store.Part, f func(store.Record) error) error {
	o := store.ListOptions{At: at, Limit: pageSize, Part: part}
	if part == store.Whole {
		o.Limit = wholePage
	}
	for {
		page, err := st.List(ctx, o)
		if err != nil {
			return err
		}
		for _, rec := range page.Records {
			if err := f(rec); err != nil {
				return err
			}
		}
		if page.Remaining == 0 || len(page.Records) == 0 {
			return nil
		}
		o.At, o.After = page.Revision, page.Records[len(page.Records)-1].Key
	}
}

// object brings over the versions of an object that the target doesn't have yet.
func (c *copier) object(ctx context.Context, key store.Key) error {
	versions, err := c.missing(ctx, key)
	if err != nil {
		return fmt.Errorf("copy %s: %w", key, err)
	}
	for _, head := range versions {
		if err := c.version(ctx, head); err != nil {
			return fmt.Errorf("copy %s, resourceVersion %d: %w", key, head.Revision, err)
		}
	}
	return nil
}

// missing are the heads that the target lacks, oldest first.
func (c *copier) missing(ctx context.Context, key store.Key) ([]store.Record, error) {
	heads, err := oldestFirst(ctx, c.from, key)
	if err != nil {
		return nil, err
	}
	heads = slices.DeleteFunc(heads, func(r store.Record) bool { return r.Revision > c.source })
	there, err := oldestFirst(ctx, c.to, key)
	if errors.Is(err, store.ErrNotFound) {
		return heads, nil
	}
	if err != nil {
		return nil, err
	}
	copied := overlap(there, heads)
	if copied == 0 {
		return nil, fmt.Errorf("the target has it from elsewhere: %w", ErrNotEmpty)
	}
	return heads[copied:], nil
}

// overlap is how many of the heads an earlier copy has brought to where there are those;
// 0 if they don't belong together. Either side may have given up its oldest since.
func overlap(there, heads []store.Record) int {
	for end := len(there); end <= len(heads); end++ {
		if slices.EqualFunc(there, heads[end-len(there):end], sameHead) {
			return end
		}
	}
	for n := min(len(there), len(heads)); n > 0; n-- {
		if slices.EqualFunc(there[len(there)-n:], heads[:n], sameHead) {
			return n
		}
	}
	return 0
}

func oldestFirst(ctx context.Context, st store.Store, key store.Key) ([]store.Record, error) {
	heads, err := st.History(ctx, key, 0)
	heads = slices.Clone(heads)
	slices.Reverse(heads)
	return heads, err
}

// version writes one version on top of what the target has.
func (c *copier) version(ctx context.Context, head store.Record) error {
	rec := head
	if !head.Deleted {
		var err error
		if rec, err = c.from.Version(ctx, head.Key, head.Revision); err != nil {
			return err
		}
	}
	return c.write(ctx, rec)
}

func (c *copier) write(ctx context.Context, rec store.Record) error {
	var on store.Revision
	switch there, err := c.to.Get(ctx, rec.Key, 0); {
	case err == nil:
		on = there.Revision
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	_, err := c.to.Commit(ctx, store.Txn{Guards: []store.Guard{{Key: rec.Key, Revision: on}}, Writes: []store.Record{rec}})
	if err == nil {
		c.versions.Add(1)
	}
	return err
}

// gone deletes what is no longer in the source, as it was deleted there if that is known.
func (c *copier) gone(ctx context.Context, rec store.Record) error {
	heads, err := c.from.History(ctx, rec.Key, 1)
	switch {
	case err == nil && heads[0].Deleted:
		return c.object(ctx, rec.Key)
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return err
	}
	return c.write(ctx, store.Record{Key: rec.Key, UID: rec.UID, Deleted: true})
}

// verify holds the newest state of both against each other.
func (c *copier) verify(ctx context.Context) error {
	next, stop := pull(ctx, c.to)
	defer stop()
	objects := 0
	err := each(ctx, c.from, 0, store.Whole, func(rec store.Record) error {
		if rec.Revision > c.source {
			return fmt.Errorf("%s: %w", rec.Key, ErrMoved)
		}
		objects++
		copied, err := next()
		if err == nil && !same(rec, copied) {
			err = c.differs(ctx, rec, copied)
		}
		return err
	})
	if err != nil {
		return err
	}
	if objects != c.objects {
		return fmt.Errorf("%w: it holds %d objects, and held %d", ErrMoved, objects, c.objects)
	}
	if extra, err := next(); !errors.Is(err, errNoMore) {
		return errors.Join(err, fmt.Errorf("%s: %w", extra.Key, ErrDiffers))
	}
	return nil
}

// differs tells a source that moved from a copy that is wrong.
func (c *copier) differs(ctx context.Context, rec, copied store.Record) error {
	if rec.Key == copied.Key {
		return fmt.Errorf("%s: %w", rec.Key, ErrDiffers)
	}
	_, err := c.from.Get(ctx, copied.Key, 0)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%s is gone: %w", copied.Key, ErrMoved)
	}
	return errors.Join(err, fmt.Errorf("%s: %w", rec.Key, ErrDiffers))
}

// finish makes the copy a store: from versions of the source nobody can go on watching.
func (c *copier) finish(ctx context.Context) (Report, error) {
	mark, err := c.to.Get(ctx, markKey, 0)
	if err == nil {
		err = c.to.Compact(ctx, c.to.State().Current)
	}
	if err != nil {
		return Report{}, fmt.Errorf("finish the target: %w", err)
	}
	to, err := c.to.Commit(ctx, store.Txn{
		Guards: []store.Guard{{Key: markKey, Revision: mark.Revision}},
		Writes: []store.Record{{Key: markKey, Deleted: true}},
	})
	if err != nil {
		return Report{}, fmt.Errorf("finish the target: %w", err)
	}
	return Report{Objects: c.objects, Versions: int(c.versions.Load()), From: c.source, To: to}, nil
}

// same tells whether a copy is what it was made of, but for its version.
func same(a, b store.Record) bool {
	return sameHead(a, b) && a.VersionAt == b.VersionAt && maps.Equal(a.Labels, b.Labels) && bytes.Equal(a.Value, b.Value)
}

// sameHead tells it of what the heads of two versions show.
func sameHead(a, b store.Record) bool {
	return a.Key == b.Key && a.Deleted == b.Deleted && a.UID == b.UID && a.Meta == b.Meta && a.Brief == b.Brief
}
