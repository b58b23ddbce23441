package server

import (
	"bytes"
	"context"
	"errors"

	"example.com/cmctl/pkg/server/audit"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// modification is one write to an object that exists: read it, make the next
// version of it, and swap on exactly the version that was read.
type modification struct {
	server  *Server
	request *request
	options writeOptions
	// sent is the version that the client made its write from; empty: any.
	sent string
	// make gives what is to take old's place, its managedFields up to date. It
	// must not change old, and is called again with a newer one if old moved.
	make func(old types.Object) (types.Object, error)
}

// run tries until the write is stored or refused. Without a version from the
// client it is tried again on what was just read: who gave none is not to see
// the conflicts of others. Such writes to one object queue up, so that each needs
// one attempt.
func (m modification) run(ctx context.Context) (answer, error) {
	r := m.request
	key := keyOf(r.resource, r.namespace, r.name)
	if m.sent == "" {
		leave, err := m.server.queue.enter(ctx, key, r.info.gone)
		if err != nil {
			return answer{}, err
		}
		defer leave()
	}
	for {
		a, err := m.once(ctx)
		current, conflict := moved(err, key)
		switch {
		case !conflict:
			return a, err
		case current == 0:
			return answer{}, r.resource.NotFound(r.name) // deleted meanwhile
		case m.sent != "":
			return answer{}, r.resource.VersionConflict(r.name, m.sent, current.String())
		case ctx.Err() != nil:
			return answer{}, ctx.Err()
		}
	}
}

// once compares with what is stored and swaps on exactly that version. Where it costs to
// ask what is stored, it is made from what is at hand: the guard of the commit tells
// whether that was the newest. Whatever else comes of it is found out again from the
// newest: a refusal, or that there is nothing to change.
func (m modification) once(ctx context.Context) (answer, error) {
	if _, remote := m.server.store.(store.Remote); remote && !m.options.dryRun {
		atHand := m
		atHand.options.atHand = true
		a, err := atHand.attempt(ctx, store.Any)
		if _, moved := errors.AsType[*store.GuardError](err); !moved && !mayBeOld(err) {
			return a, err
		}
	}
	return m.attempt(ctx, 0)
}

// errNothingToDo: what was made of the version at hand is that version.
var errNothingToDo = errors.New("nothing is changed")

// mayBeOld tells whether an error is one that the newest version may not give.
func mayBeOld(err error) bool {
	var refused *types.StatusError
	return errors.Is(err, errNothingToDo) || errors.As(err, &refused)
}

// attempt is one of them, on the state at.
func (m modification) attempt(ctx context.Context, at store.Revision) (answer, error) {
	r := m.request
	rec, err := m.server.stored(ctx, r.resource, r.namespace, r.name, at)
	if err != nil {
		return answer{}, err
	}
	old, err := decoded(r.resource, rec)
	if err != nil {
		return answer{}, err
	}
	next, err := m.make(old)
	if err != nil {
		return answer{}, err
	}
	keepMarks(next, old)
	if errs := r.resource.ValidateUpdate(next, old); len(errs) > 0 {
		return answer{}, r.resource.Invalid(next.GetName(), errs)
	}
	return m.server.swap(ctx, r.resource, rec, old, next, m.options)
}

// keepMarks carries over what marks an object as deleted. As in Kubernetes a write
// owns the time that it tried to set, so this comes after managedFields are made.
// Another grace period, or a mark where none is, is left for validation to refuse.
func keepMarks(next, old types.Object) {
	marked := old.GetDeletionTimestamp()
	if marked == nil {
		return
	}
	next.SetDeletionTimestamp(marked)
	if next.GetDeletionGracePeriodSeconds() == nil {
		next.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
}

// keepOwned carries over what else the server alone decides.
func keepOwned(next, old types.Object) {
	next.SetSelfLink("")
	next.SetNamespace(old.GetNamespace())
	next.SetUID(old.GetUID())
	next.SetResourceVersion(old.GetResourceVersion())
	next.SetCreationTimestamp(old.GetCreationTimestamp())
	next.SetGeneration(old.GetGeneration())
}

// swap stores next in place of the record that it was made from. What changes
// nothing keeps its version, and an object that only waited for its last
// finalizer goes away.
func (s *Server) swap(ctx context.Context, res *types.Resource, rec store.Record, old, next types.Object, o writeOptions) (answer, error) {
	e, err := res.Encode(next)
	if err != nil {
		return answer{}, err
	}
	// What is to be deleted is marked, however large it is.
	if limit := s.options.MaxBodyBytes; o.meta.Verb != "delete" && int64(len(e.Value)) > max(limit, int64(len(rec.Value))) {
		return answer{}, types.ObjectTooLarge(len(e.Value), limit)
	}
	unchanged := objectAnswer(0, e, rec.Revision.String())
	if o.dryRun {
		err := s.rehearse(ctx, recordOf(rec.Key, next, e, o.meta), len(rec.Value))
		if err == nil {
			s.auditKept(ctx, rec, o.meta.Verb, audit.DryRun)
		}
		return unchanged, err
	}
	also := store.Txn{Guards: o.guards}
	if finished(old, next) {
		rev, err := s.commit(ctx, rec.Revision, store.Record{Key: rec.Key, UID: rec.UID, Deleted: true, Meta: o.meta}, also)
		return written(unchanged, rev), err
	}
	if bytes.Equal(e.Value, rec.Value) {
		if o.atHand {
			return answer{}, errNothingToDo
		}
		s.auditKept(ctx, rec, o.meta.Verb, audit.Unchanged)
		return unchanged, nil
	}
	rev, err := s.commit(ctx, rec.Revision, recordOf(rec.Key, next, e, o.meta), also)
	if err != nil {
		return answer{}, err
	}
	return written(objectAnswer(0, e, rev.String()), rev), nil
}
