package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ktypes "k8s.io/apimachinery/pkg/types"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// reaper empties namespaces that were deleted, one revision an object, and then
// removes them. It keeps nothing of its own: what is left to do is in the store,
// so that it goes on after a restart.
type reaper struct {
	server *Server
	mu     sync.Mutex
	busy   map[ktypes.UID]bool // namespaces being emptied, guarded by mu
	tasks  sync.WaitGroup
}

// reapRetry is how long the reaper waits after the store refused it.
const reapRetry = time.Second

// run looks at every namespace that changes until ctx ends.
func (p *reaper) run(ctx context.Context) {
	defer p.tasks.Wait()
	for ctx.Err() == nil {
		err := p.follow(ctx)
		if ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
			return
		}
		p.server.log.Warn("looking for deleted namespaces failed; trying again", "err", err)
		pause(ctx, reapRetry)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// follow takes up the namespaces that are there, then those that change.
func (p *reaper) follow(ctx context.Context) error {
	prefix := prefixOf(types.Namespaces, "")
	page, err := p.server.store.List(ctx, store.ListOptions{Prefix: prefix})
	if err != nil {
		return err
	}
	for _, rec := range page.Records {
		p.look(ctx, rec)
	}
	// The system's namespaces are there, so this is no revision 0, which would stand
	// for now and leave a gap.
	changes, err := p.server.store.Watch(ctx, prefix, page.Revision)
	if err != nil {
		return err
	}
	defer changes.Close()
	for {
		events, err := changes.Next(ctx)
		if err != nil {
			return err
		}
		for _, e := range events {
			p.look(ctx, e.Record)
		}
	}
}

// look starts a task for a namespace that is to go.
func (p *reaper) look(ctx context.Context, rec store.Record) {
	if rec.Deleted {
		return
	}
	meta, err := encoded(types.Namespaces, rec).DecodeMeta("")
	if err != nil || meta.DeletionTimestamp == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[meta.UID] {
		return
	}
	if p.busy == nil {
		p.busy = map[ktypes.UID]bool{}
	}
	p.busy[meta.UID] = true
	p.tasks.Go(func() {
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.busy, meta.UID)
		}()
		p.reap(ctx, meta.Name, meta.UID)
	})
}

// reap tries until the namespace is gone.
func (p *reaper) reap(ctx context.Context, name string, uid ktypes.UID) {
	for ctx.Err() == nil {
		gone, err := p.empty(ctx, name, uid)
		if gone || errors.Is(err, store.ErrClosed) {
			return
		}
		if err != nil && ctx.Err() == nil {
			p.server.log.Warn("removing a deleted namespace failed; trying again", "namespace", name, "err", err)
			pause(ctx, reapRetry)
		}
	}
}

// empty deletes what is in the namespace, waits for what finalizers hold back,
// and removes the namespace. Nothing new comes into it: it is marked, and a
// create is guarded by it.
func (p *reaper) empty(ctx context.Context, name string, uid ktypes.UID) (gone bool, err error) {
	// Whatever changes while this looks around wakes it again.
	prefixes := []store.Key{prefixOf(types.ConfigMaps, name), keyOf(types.Namespaces, "", name)}
	changed := make(chan error, len(prefixes))
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	for _, prefix := range prefixes {
		w, err := p.server.store.Watch(ctx, prefix, 0)
		if err != nil {
			return false, err
		}
		wait.Go(func() {
			defer w.Close()
			_, err := w.Next(ctx)
			changed <- err
		})
	}
	if gone, err = p.step(ctx, name, uid); gone || err != nil {
		return gone, err
	}
	select {
	case err := <-changed:
		return false, err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// step does what can be done now. Every commit of it holds only while the namespace
// is the one that was deleted: one of that name that was made anew, and what is in
// it, is none of the reaper's.
func (p *reaper) step(ctx context.Context, name string, uid ktypes.UID) (gone bool, err error) {
	rec, err := p.server.current(ctx, types.Namespaces, "", name)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	old, err := decoded(types.Namespaces, rec)
	if err != nil {
		return false, err
	}
	if old.GetUID() != uid {
		return true, nil // made anew
	}
	if err = p.deleteAll(ctx, name, store.Guard{Key: rec.Key, Revision: rec.Revision}); err == nil {
		gone, err = p.remove(ctx, name, rec, old)
	}
	if errors.As(err, new(*store.GuardError)) {
		return false, nil // the change woke us already
	}
	return gone, err
}

// deleteAll deletes each object in the namespace that is not marked yet.
func (p *reaper) deleteAll(ctx context.Context, namespace string, within store.Guard) error {
	d := &deletion{
		server: p.server,
		meta:   store.Meta{Verb: "delete", Manager: ownManager, Time: p.server.now()},
		guards: []store.Guard{within},
	}
	o := store.ListOptions{Prefix: prefixOf(types.ConfigMaps, namespace), Limit: 500, Part: store.BriefAlone}
	for {
		page, err := p.server.store.List(ctx, o)
		if err != nil {
			return err
		}
		for _, rec := range page.Records {
			_, name := splitKey(types.ConfigMaps, rec.Key)
			if _, err := d.run(ctx, types.ConfigMaps, namespace, name); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		if page.Remaining == 0 {
			return nil
		}
		o.After = page.Records[len(page.Records)-1].Key
	}
}

// remove deletes the namespace itself if nothing is left in it and nobody's
// finalizer holds it.
func (p *reaper) remove(ctx context.Context, name string, rec store.Record, old types.Object) (gone bool, err error) {
	left, err := p.server.store.List(ctx, store.ListOptions{Prefix: prefixOf(types.ConfigMaps, name), Limit: 1, Part: store.BriefAlone})
	if err != nil || len(left.Records) > 0 {
		return false, err
	}
	next := old.DeepCopyObject().(*types.Namespace)
	next.Spec.Finalizers = slices.DeleteFunc(next.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
	meta := store.Meta{Verb: "delete", Manager: ownManager, Time: p.server.now()}
	if _, err := p.server.swap(ctx, types.Namespaces, rec, old, next, writeOptions{meta: meta}); err != nil {
		return false, err
	}
	return finished(old, next), nil
}
