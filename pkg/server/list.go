package server

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/server/render"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// list answers GET on a collection.
func (s *Server) list(r *request) (answer, error) {
	o, err := listOptions(r)
	if err != nil {
		return answer{}, err
	}
	if o.Watch {
		return s.follow(r, o)
	}
	found, err := s.gather(r, o, partFor(r.form, r.resource))
	if err != nil {
		return answer{}, err
	}
	return found.answer(), nil
}

// partFor is how much of the records is needed for a list in this form.
func partFor(f render.Form, res *types.Resource) store.Part {
	switch {
	case f.ShowsContents(), res == types.Namespaces: // small, and selected and shown by their status
		return store.Whole
	case f.ShowsMetadata():
		return store.HeadAlone
	}
	return store.BriefAlone
}

// listing is what a list was asked for.
type listing struct {
	selection
	part  store.Part
	limit int
	at    store.Revision // as in store.ListOptions
	after store.Key      // where a page goes on
	paged bool           // it goes on
}

// found is the part of a collection that was asked for.
type found struct {
	resource  *types.Resource
	records   []store.Record
	revision  store.Revision
	next      string // continue token; empty: this was all
	remaining int    // -1: not told
}

// gather is find in a place to build a list, and with room for what it found.
func (s *Server) gather(r *request, o *internalversion.ListOptions, part store.Part) (found, error) {
	held := &r.info.held
	if err := s.answers.build(r.context(), &held.answer); err != nil {
		return found{}, err
	}
	f, err := s.find(r, o, part)
	if err != nil {
		return found{}, err
	}
	length := 0
	for _, rec := range f.records {
		length += len(rec.Value)
	}
	return f, s.answers.reserve(held, length)
}

// find reads what a request asks for, and as much of each object as is needed.
func (s *Server) find(r *request, o *internalversion.ListOptions, part store.Part) (found, error) {
	l, err := s.listing(r, o)
	if err != nil {
		return found{}, err
	}
	l.part = part
	f, err := s.scan(r.context(), l)
	if err == nil && l.paged && l.at != 0 && s.faults.Gone(r.writer) {
		err = store.ErrCompacted
	}
	switch {
	case errors.Is(err, store.ErrCompacted) && l.paged:
		return found{}, s.pageExpired(l)
	case errors.Is(err, store.ErrCompacted):
		return found{}, types.Expired("The resourceVersion for the provided list is too old.")
	case errors.Is(err, store.ErrFuture):
		return found{}, types.FutureVersion(l.at.String(), s.store.State().Current.String())
	}
	return f, err
}

// scan reads the store page by page, all in one state, until enough matches.
func (s *Server) scan(ctx context.Context, l listing) (found, error) {
	o := store.ListOptions{Prefix: l.scope(), After: l.after, At: l.at, Limit: l.chunk(), Part: l.part}
	f := found{resource: l.resource, remaining: -1}
	for {
		page, err := s.store.List(ctx, o)
		if err != nil {
			return found{}, err
		}
		f.revision, o.At = page.Revision, page.Revision
		if l.limit == 0 && !l.selects() {
			f.records = page.Records // all there is
			return f, nil
		}
		for i, rec := range page.Records {
			if !l.matches(rec) {
				continue
			}
			f.records = append(f.records, rec)
			if left := page.Remaining + len(page.Records) - i - 1; l.limit > 0 && len(f.records) == l.limit && left > 0 {
				f.next = continueToken(page.Revision, l.prefix(), rec.Key)
				if !l.selects() {
					f.remaining = left
				}
				return f, nil
			}
		}
		if page.Remaining == 0 || len(page.Records) == 0 || o.Limit == 0 {
			return f, nil
		}
		if l.limit > 0 && len(f.records) == l.limit {
			return f, nil
		}
		o.After = page.Records[len(page.Records)-1].Key
	}
}

// chunk is how many records are read at once: with a selector more than asked
// for, since few may match.
func (l listing) chunk() int {
	if l.limit > 0 && l.selects() {
		return max(l.limit, 500)
	}
	return l.limit
}

// listing makes of the parameters what is to be read.
func (s *Server) listing(r *request, o *internalversion.ListOptions) (listing, error) {
	l := listing{}
	var err error
	if l.selection, err = selectionOf(r, o); err != nil {
		return l, err
	}
	if o.Limit > 0 {
		l.limit = int(min(o.Limit, 1<<30))
	}
	if l.pinned() {
		l.limit = 0 // at most one can match, so there are no pages
	}
	return l, s.point(r.context(), o, &l)
}

// point finds the state to read: the current one, the one of the first page, or
// exactly the one that was asked for.
func (s *Server) point(ctx context.Context, o *internalversion.ListOptions, l *listing) error {
	version := o.ResourceVersion
	if version == "0" {
		l.limit = 0 // as Kubernetes: any state will do, so it comes whole
	}
	if o.Continue != "" {
		if version != "" && version != "0" {
			return types.BadRequest("specifying resource version is not allowed when using continue")
		}
		return l.resume(o.Continue)
	}
	switch version {
	case "":
		return nil
	case "0":
		l.at = store.Any
		return nil
	}
	rev, err := parseRevision(version)
	if err != nil {
		return types.BadRequest(fmt.Sprintf("invalid resource version: resourceVersion: Invalid value: %q: %v", version, err))
	}
	match := o.ResourceVersionMatch
	if match == metav1.ResourceVersionMatchExact || (match == "" && l.limit > 0) {
		l.at = rev
		return nil
	}
	l.at = store.Any
	return s.reach(ctx, rev)
}
