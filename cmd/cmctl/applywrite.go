package main

import (
	"context"
	"errors"
	"fmt"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errDisagree ends the loop when a person must decide.
var errDisagree = errors.New("the file and the live object disagree")

// write stores what the application makes of the object, computed anew for each
// fresh copy, and returns the last plan and the object as it is now.
func (a *application) write(ctx context.Context) (plan, types.Document, error) {
	var p plan
	var target retry.Creator[types.Document] = a.object()
	if a.serverSide {
		target = serverTarget{a.object(), a, &p}
	}
	res, err := retry.Upsert(ctx, target,
		func(context.Context) (types.Document, error) {
			if p.live != nil {
				a.note("%s: %q was deleted meanwhile, and is created anew", a.m.Where(), a.m.Name())
			}
			var err error
			p, err = a.fresh()
			return p.written(), err
		},
		func(_ context.Context, live types.Document) (types.Document, error) {
			var err error
			p, err = a.onto(live)
			switch {
			case err != nil:
				return nil, err
			case p.open:
				return nil, errDisagree
			case p.idle:
				return nil, retry.ErrUnchanged
			}
			return p.written(), nil
		}, a.options())
	var refused *contestedError
	switch {
	case a.landedAndGone(err):
		return p, nil, nil
	case err != nil && !unknownOutcome(err) && errors.Is(err, errDisagree):
		return p, nil, a.conflict(ctx, p)
	case err != nil && !unknownOutcome(err) && errors.As(err, &refused):
		return p, nil, a.contested(p, refused)
	}
	return p, res.Object, err
}

// preview shows what a write would store. It reads only.
func (a *application) preview(ctx context.Context) (plan, types.Document, error) {
	p, err := a.plan(ctx)
	if err == nil && p.open {
		err = a.conflict(ctx, p)
	}
	return p, p.next, err
}

// rehearse lets the server check a write that it doesn't store, and looks
// whether it didn't: there are servers that pass over what they don't know.
func (a *application) rehearse(ctx context.Context) (plan, types.Document, error) {
	p, doc, err := a.write(ctx)
	if err != nil {
		return p, doc, err
	}
	version := func(d types.Document) string {
		if d == nil {
			return "none"
		}
		return d.ResourceVersion()
	}
	now, err := a.read(ctx)
	if apierrors.IsNotFound(err) {
		now, err = nil, nil
	}
	if err == nil && version(now) != version(p.live) {
		err = fmt.Errorf("THE DRY RUN MAY HAVE BEEN STORED: %s on %s was at version %s and is at version %s now: either this server does not know dry runs, or somebody wrote at the same moment; look at it with 'cmctl get %s -o yaml%s'",
			a.object().Object(), a.conn.Target(), version(p.live), version(now), a.m.Name(), a.conn.where)
	}
	return p, doc, err
}
