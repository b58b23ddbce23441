package local

import (
	"context"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
)

// checkLimits comes after the guards: what was made from an older version is told so.
func (c *committer) checkLimits(r *request) error {
	for _, l := range r.limits {
		var added store.Usage
		for i := range r.writes {
			if rec := &r.writes[i].rec; store.CollectionOf(rec.Key) == l.Collection {
				added = added.Plus(index.Growth(rec, index.Lookup(c.view.Tree, rec.Key)))
			}
		}
		if used := c.s.usage.Of(l.Collection); !l.Allows(used, added) {
			return &store.LimitError{Limit: l, Used: used, Added: added}
		}
	}
	return nil
}

// Usage returns what a collection holds. See store.Store.
func (s *Store) Usage(ctx context.Context, c store.Collection) (store.Usage, error) {
	if err := s.begin(ctx); err != nil {
		return store.Usage{}, err
	}
	defer s.end()
	return s.usage.Of(c), nil
}
