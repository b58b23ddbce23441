package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// past reads what the server keeps of one ConfigMap, each version once. It belongs
// to one goroutine.
type past struct {
	conn *connection
	name string
	docs map[string]types.Document
}

// past is that of an object of the connection's namespace.
func (c *connection) past(name string) *past {
	return &past{conn: c, name: name, docs: map[string]types.Document{}}
}

// list is where the versions came from, newest first; there is at least one. Of its
// errors, and those of the other methods, the object is to be told by the caller.
func (p *past) list(ctx context.Context) (*types.HistoryList, error) {
	list, err := p.conn.ConfigMaps(p.conn.namespace).History(ctx, p.name)
	if err == nil && len(list.Items) == 0 {
		err = types.ConfigMaps.NotFound(p.name)
	}
	return list, p.hint(err)
}

// version is the object as it was in one version. The current one can be read from
// servers without a history too.
func (p *past) version(ctx context.Context, version string) (types.Document, error) {
	if doc, ok := p.docs[version]; ok {
		return doc, nil
	}
	maps := p.conn.ConfigMaps(p.conn.namespace)
	doc, err := maps.At(ctx, p.name, version)
	if client.LacksHistory(err) {
		if live, liveErr := maps.Get(ctx, p.name); liveErr == nil && live.ResourceVersion() == version {
			doc, err = live, nil
		}
	}
	if err != nil {
		return nil, p.hintVersion(ctx, version, err)
	}
	p.docs[version] = doc
	return doc, nil
}

// gone tells whether a version is not there, and why doesn't matter.
func gone(err error) bool {
	return apierrors.IsNotFound(err) || errors.As(err, new(*output.MissingError))
}

// unknown tells that the server has never heard of the object, so that there is no
// history to look at.
func (p *past) unknown(ctx context.Context) bool {
	_, err := p.list(ctx)
	return apierrors.IsNotFound(err)
}

func (p *past) hintVersion(ctx context.Context, version string, err error) error {
	look := fmt.Sprintf("'cmctl history %s%s' lists the versions that are kept", p.name, p.conn.where)
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		err = &hintedError{&output.MissingError{Message: err.Error()}, look}
	case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) && p.unknown(ctx):
		err = types.ConfigMaps.NotFound(p.name)
	case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		err = &hintedError{&output.MissingError{Message: fmt.Sprintf("the server has not come to version %s yet", version)}, look}
	case apierrors.IsNotFound(err) && !p.unknown(ctx):
		err = &hintedError{err, look}
	}
	return p.hint(err)
}

// hint adds to the error of a server without a history, or one that does not show it, what can be done there.
func (p *past) hint(err error) error {
	switch {
	case errors.Is(err, client.ErrNoHistory):
		return &hintedError{err, fmt.Sprintf("only cmserver keeps old versions; who wrote each key last, 'cmctl blame %s%s' tells from managedFields", p.name, p.conn.where)}
	case apierrors.IsForbidden(err):
		return &hintedError{err, fmt.Sprintf("old versions are for whoever may get configmaps/history: ask for that right; who wrote each key last, 'cmctl blame %s%s' tells from managedFields", p.name, p.conn.where)}
	}
	return err
}

// pastWrite is one write of the history with what it changed.
type pastWrite struct {
	types.HistoryEntry
	// known is false if the version before it is not kept.
	known   bool
	changes []types.Change // without bookkeeping
}

// before is the place in the history of the version that entry i was made from, -1 if
// there was none or it is not kept.
func before(items []types.HistoryEntry, i int) int {
	if i+1 < len(items) && !items[i+1].Deleted && items[i+1].UID == items[i].UID {
		return i + 1
	}
	return -1
}

// creates tells whether entry i made the object.
func creates(items []types.HistoryEntry, i int) bool {
	return items[i].Verb == "create" || i+1 < len(items) && before(items, i) < 0
}

// write finds out what entry i of the history changed. A version that was dropped
// while it was looked for counts as not kept.
func (p *past) write(ctx context.Context, items []types.HistoryEntry, i int) (pastWrite, error) {
	w := pastWrite{HistoryEntry: items[i], known: items[i].Deleted}
	if items[i].Deleted {
		return w, nil
	}
	was := types.Document{}
	if older := before(items, i); older >= 0 {
		var err error
		if was, err = p.version(ctx, items[older].ResourceVersion); err != nil {
			return w, ifNotGone(err)
		}
	} else if !creates(items, i) {
		return w, nil
	}
	doc, err := p.version(ctx, items[i].ResourceVersion)
	if err != nil {
		return w, ifNotGone(err)
	}
	w.known, w.changes = true, contents(types.Diff(was, doc))
	return w, nil
}

func ifNotGone(err error) error {
	if gone(err) {
		return nil
	}
	return err
}

// place is where the history has a version, -1 if it hasn't.
func place(items []types.HistoryEntry, version string) int {
	return slices.IndexFunc(items, func(e types.HistoryEntry) bool { return e.ResourceVersion == version })
}

// fieldsOf names what a write changed.
func fieldsOf(changes []types.Change) []string {
	fields := make([]types.Field, len(changes))
	for i, c := range changes {
		fields[i] = c.Field
	}
	return fieldNames(fields)
}
