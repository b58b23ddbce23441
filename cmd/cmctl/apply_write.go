package main

import (
	"context"
	"errors"
	"slices"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// errDisagree ends the loop when a person must decide.
var errDisagree = errors.New("the file and the live object disagree")

// write stores what the application makes of the object, computed anew for each
// fresh copy, and returns the last plan and the object as it is now.
func (a *application) write(ctx context.Context) (plan, types.Document, error) {
	var p plan
	var read []types.Document // each copy that was planned on; nil is none
	target := a.seen.of(a.m, a.object())
	if a.serverSide {
		target = serverTarget{a.object(), a, &p}
	}
	res, err := retry.Upsert(ctx, target,
		func(context.Context) (types.Document, error) {
			if p.live != nil {
				a.note("%s: %q was deleted meanwhile, and is created anew", a.m.Where(), a.m.Name())
			}
			read = append(read, nil)
			var err error
			p, err = a.fresh()
			return p.written(), err
		},
		func(_ context.Context, live types.Document) (types.Document, error) {
			read = append(read, live)
			var err error
			if p, err = a.onto(live); err == nil {
				err = a.leavesHelms(p)
			}
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
	if err == nil && len(read) > 0 {
		p.overtaken = p.since(read[0])
	}
	return p, res.Object, err
}

// since are the changes of a plan to what was written after that copy was read.
func (p plan) since(first types.Document) []types.Change {
	was := first.Fields()
	told := p.overruled()
	return slices.DeleteFunc(slices.Clone(p.changes), func(c types.Change) bool {
		return types.SameValue(was[c.Field], c.From) || slices.ContainsFunc(told, func(d types.Drift) bool { return d.Field == c.Field })
	})
}

// preview shows what a write would store. It reads only.
func (a *application) preview(ctx context.Context) (plan, types.Document, error) {
	p, err := a.plan(ctx)
	if err == nil {
		err = a.leavesHelms(p)
	}
	if err == nil && p.open {
		err = a.conflict(ctx, p)
	}
	return p, p.next, err
}

// rehearse lets the server check a write that it doesn't store.
func (a *application) rehearse(ctx context.Context) (plan, types.Document, error) {
	p, doc, err := a.write(ctx)
	if err == nil {
		err = a.checkUnstored(ctx, a.object(), p.live, doc)
	}
	return p, doc, err
}
