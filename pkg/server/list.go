package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// list answers GET on a collection.
func (s *Server) list(r *request) (answer, error) {
	if wantsWatch(r) {
		return s.watch(r)
	}
	found, err := s.collect(r)
	if err != nil {
		return answer{}, err
	}
	return found.answer(), nil
}

// wantsWatch reads the parameter as Kubernetes does: whatever is not 0 or false
// is true.
func wantsWatch(r *request) bool {
	if !r.query.Has("watch") {
		return false
	}
	v := strings.ToLower(r.query.Get("watch"))
	return v != "0" && v != "false"
}

// listing is what a list was asked for.
type listing struct {
	resource  *types.Resource
	namespace string
	labels    labels.Selector
	fields    fields.Selector
	limit     int
	at        store.Revision // 0: now
	after     store.Key      // where a page goes on
	paged     bool           // it goes on
}

// found is the part of a collection that was asked for.
type found struct {
	resource  *types.Resource
	records   []store.Record
	revision  store.Revision
	next      string // continue token; empty: this was all
	remaining int    // -1: not told
}

// collect reads what a request asks for.
func (s *Server) collect(r *request) (found, error) {
	l, err := s.listing(r)
	if err != nil {
		return found{}, err
	}
	f, err := s.scan(r.context(), l)
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
	o := store.ListOptions{Prefix: l.prefix(), After: l.after, At: l.at, Limit: l.chunk()}
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

// prefix is where the keys are that can match.
func (l listing) prefix() store.Key {
	return prefixOf(l.resource, l.namespace)
}

// chunk is how many records are read at once: with a selector more than asked
// for, since few may match.
func (l listing) chunk() int {
	if l.limit > 0 && l.selects() {
		return max(l.limit, 500)
	}
	return l.limit
}

func (l listing) selects() bool { return !l.labels.Empty() || !l.fields.Empty() }

func (l listing) matches(rec store.Record) bool {
	if !l.labels.Empty() && !l.labels.Matches(labels.Set(rec.Labels)) {
		return false
	}
	if l.fields.Empty() {
		return true
	}
	namespace, name := splitKey(l.resource, rec.Key)
	return l.fields.Matches(fields.Set{"metadata.name": name, "metadata.namespace": namespace})
}

// listing reads the parameters of a list.
func (s *Server) listing(r *request) (listing, error) {
	l := listing{resource: r.resource, namespace: r.namespace}
	limit, err := number(r, "limit")
	if err != nil {
		return l, err
	}
	if _, err := number(r, "timeoutSeconds"); err != nil {
		return l, err
	}
	if l.labels, err = labels.Parse(r.query.Get("labelSelector")); err != nil {
		return l, types.BadRequest(err.Error())
	}
	if l.fields, err = fieldSelector(r.query.Get("fieldSelector")); err != nil {
		return l, types.BadRequest(err.Error())
	}
	if err := validateList(r); err != nil {
		return l, err
	}
	if limit > 0 {
		l.limit = int(min(limit, 1<<30))
	}
	if _, pinned := l.fields.RequiresExactMatch("metadata.name"); pinned && l.namespace != "" {
		l.limit = 0 // at most one can match, so there are no pages
	}
	return l, s.point(r, &l)
}

// number reads a parameter that must be a number if it is there.
func number(r *request, name string) (int64, error) {
	text := r.query.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, types.BadRequest(err.Error())
	}
	return n, nil
}

func fieldSelector(text string) (fields.Selector, error) {
	known := func(label, value string) (string, string, error) {
		if label != "metadata.name" && label != "metadata.namespace" {
			return "", "", fmt.Errorf("%q is not a known field selector: only %q, %q", label, "metadata.name", "metadata.namespace")
		}
		return label, value, nil
	}
	return fields.ParseAndTransformSelector(text, known)
}

func validateList(r *request) error {
	o := &internalversion.ListOptions{
		ResourceVersion:      r.query.Get("resourceVersion"),
		ResourceVersionMatch: metav1.ResourceVersionMatch(r.query.Get("resourceVersionMatch")),
		Continue:             r.query.Get("continue"),
	}
	if r.query.Has("sendInitialEvents") {
		o.SendInitialEvents = new(bool)
	}
	if errs := metainternal.ValidateListOptions(o, true); len(errs) > 0 {
		return types.InvalidOptions("ListOptions", errs)
	}
	return nil
}

// point finds the state to read: the current one, the one of the first page, or
// exactly the one that was asked for.
func (s *Server) point(r *request, l *listing) error {
	version := r.query.Get("resourceVersion")
	if version == "0" {
		l.limit = 0 // as Kubernetes: any state will do, so it comes whole
		version = ""
	}
	if token := r.query.Get("continue"); token != "" {
		if version != "" {
			return types.BadRequest("specifying resource version is not allowed when using continue")
		}
		return l.resume(token)
	}
	if version == "" {
		return nil
	}
	rev, err := parseRevision(version)
	if err != nil {
		return types.BadRequest(fmt.Sprintf("invalid resource version: resourceVersion: Invalid value: %q: %v", version, err))
	}
	match := r.query.Get("resourceVersionMatch")
	if match == string(metav1.ResourceVersionMatchExact) || (match == "" && l.limit > 0) {
		l.at = rev
		return nil
	}
	return s.reached(version)
}
