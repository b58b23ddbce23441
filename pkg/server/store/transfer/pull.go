package transfer

import (
	"context"
	"errors"
	"iter"

	"example.com/cmctl/pkg/server/store"
)

// errNoMore comes after the last record.
var errNoMore = errors.New("no more objects")

// pull gives the whole live records of a store one by one, but for the mark.
func pull(ctx context.Context, st store.Store) (next func() (store.Record, error), stop func()) {
	type found struct {
		rec store.Record
		err error
	}
	all := func(yield func(found) bool) {
		err := each(ctx, st, 0, store.Whole, func(rec store.Record) error {
			if rec.Key != markKey && !yield(found{rec: rec}) {
				return errNoMore
			}
			return nil
		})
		if err != nil && !errors.Is(err, errNoMore) {
			yield(found{err: err})
		}
	}
	pull, stop := iter.Pull(iter.Seq[found](all))
	return func() (store.Record, error) {
		f, ok := pull()
		if !ok {
			return store.Record{}, errNoMore
		}
		return f.rec, f.err
	}, stop
}
