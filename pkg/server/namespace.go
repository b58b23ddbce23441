package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// systemNamespaces are there from the start and can't be deleted, as in
// Kubernetes.
var systemNamespaces = []string{metav1.NamespaceDefault, metav1.NamespacePublic, metav1.NamespaceSystem}

// ownManager is the field manager of what the server writes by itself.
const ownManager = "cmserver"

// place is what a commit must hold and write besides a new object, so that its
// namespace is there and takes it. A namespace that nobody made yet is made in
// the same commit. The guard on one that exists keeps it from being deleted, or
// emptied, beside the create.
func (s *Server) place(ctx context.Context, r *request, name string) (store.Txn, error) {
	if !r.resource.Namespaced {
		return store.Txn{}, nil
	}
	key := keyOf(types.Namespaces, "", r.namespace)
	rec, err := s.store.Get(ctx, key, 0)
	switch {
	case errors.Is(err, store.ErrNotFound) && !s.mayMakeNamespace(r):
		return store.Txn{}, types.NamespaceNotYours(r.namespace)
	case errors.Is(err, store.ErrNotFound) && s.options.StrictNamespaces:
		return store.Txn{}, types.Namespaces.NotFound(r.namespace)
	case errors.Is(err, store.ErrNotFound):
		return s.newNamespace(r.namespace)
	case err != nil:
		return store.Txn{}, fmt.Errorf("read Namespace %s: %w", r.namespace, err)
	}
	marked, err := markedDeleted(types.Namespaces, rec)
	if err != nil {
		return store.Txn{}, fmt.Errorf("read Namespace %s: %w", r.namespace, err)
	}
	if marked {
		return store.Txn{}, r.resource.NamespaceTerminating(name, r.namespace)
	}
	return store.Txn{Guards: []store.Guard{{Key: key, Revision: rec.Revision}}}, nil
}

// newNamespace is what makes a namespace of which there is nothing but a name.
func (s *Server) newNamespace(name string) (store.Txn, error) {
	meta := store.Meta{Verb: "create", Manager: ownManager, Time: s.now()}
	next := types.NewNamespace(name)
	if err := s.manage(types.Namespaces, nil, next, meta); err != nil {
		return store.Txn{}, err
	}
	next.SetUID(ktypes.UID(uuid.NewString()))
	next.SetCreationTimestamp(metav1.NewTime(meta.Time).Rfc3339Copy())
	if errs := types.Namespaces.Validate(next); len(errs) > 0 {
		return store.Txn{}, types.Namespaces.Invalid(name, errs)
	}
	e, err := types.Namespaces.Encode(next)
	if err != nil {
		return store.Txn{}, err
	}
	key := keyOf(types.Namespaces, "", name)
	return store.Txn{
		Guards: []store.Guard{{Key: key}},
		Writes: []store.Record{recordOf(key, next, e, meta)},
	}, nil
}

// deleteNamespace answers DELETE on a namespace: it is marked, takes no new
// objects from then on, and goes once the reaper has emptied it.
func (s *Server) deleteNamespace(r *request) (answer, error) {
	d, err := s.deletion(r)
	if err != nil {
		return answer{}, err
	}
	if slices.Contains(systemNamespaces, r.name) {
		return answer{}, types.Namespaces.Forbidden(r.name, "this namespace may not be deleted")
	}
	return d.run(r.context(), types.Namespaces, "", r.name)
}

// finalize answers PUT on a namespace's finalize subresource: of the body only
// spec.finalizers counts. The finalizer that lets the contents go first is the
// reaper's: without it objects would be left in no namespace.
func (s *Server) finalize(r *request) (answer, error) {
	return s.put(r, func(body, old types.Object, _ writeOptions) (types.Object, error) {
		next := old.DeepCopyObject().(*types.Namespace)
		held := slices.Contains(next.Spec.Finalizers, corev1.FinalizerKubernetes)
		next.Spec.Finalizers = slices.Clone(body.(*types.Namespace).Spec.Finalizers)
		if held && !slices.Contains(next.Spec.Finalizers, corev1.FinalizerKubernetes) {
			next.Spec.Finalizers = append(next.Spec.Finalizers, corev1.FinalizerKubernetes)
		}
		if errs := types.Namespaces.Validate(next); len(errs) > 0 {
			return nil, types.Namespaces.Invalid(next.Name, errs)
		}
		return next, nil
	})
}

// terminate marks a namespace as about to go. One that is marked keeps its time
// and version.
func (d *deletion) terminate(ctx context.Context, rec store.Record) (answer, error) {
	old, err := decoded(types.Namespaces, rec)
	if err != nil {
		return answer{}, err
	}
	next := old.DeepCopyObject().(*types.Namespace)
	if next.DeletionTimestamp == nil {
		now := metav1.NewTime(d.meta.Time).Rfc3339Copy()
		next.DeletionTimestamp = &now
	}
	next.Status.Phase = corev1.NamespaceTerminating
	return d.server.swap(ctx, types.Namespaces, rec, old, next, writeOptions{dryRun: len(d.options.DryRun) > 0, meta: d.meta})
}

// finished tells that nothing holds an object back any more that is to go.
func finished(old, next types.Object) bool {
	if old.GetDeletionTimestamp() == nil || len(next.GetFinalizers()) > 0 {
		return false
	}
	ns, isNamespace := next.(*types.Namespace)
	return !isNamespace || len(ns.Spec.Finalizers) == 0
}

// prepareNamespaces makes the namespaces that must be there: the system's, and,
// for a store of an older release, those that hold something.
func (s *Server) prepareNamespaces(ctx context.Context) error {
	for {
		txn, err := s.missingNamespaces(ctx)
		if err != nil || len(txn.Writes) == 0 {
			return err
		}
		_, err = s.commitAudited(ctx, txn)
		var made *store.GuardError
		if errors.As(err, &made) {
			continue // by another server on the same store, which starts as well
		}
		if err != nil {
			return fmt.Errorf("make the system's namespaces: %w", err)
		}
	}
}

// missingNamespaces makes those that should be there and are not.
func (s *Server) missingNamespaces(ctx context.Context) (store.Txn, error) {
	used, err := s.usedNamespaces(ctx)
	if err != nil {
		return store.Txn{}, err
	}
	var txn store.Txn
	for _, name := range append(used, systemNamespaces...) {
		_, err := s.store.Get(ctx, keyOf(types.Namespaces, "", name), store.Any)
		if err == nil || slices.ContainsFunc(txn.Writes, func(w store.Record) bool { return w.Key == keyOf(types.Namespaces, "", name) }) {
			continue
		}
		if !errors.Is(err, store.ErrNotFound) {
			return store.Txn{}, fmt.Errorf("read Namespace %s: %w", name, err)
		}
		more, err := s.newNamespace(name)
		if err != nil {
			return store.Txn{}, err
		}
		txn.Guards, txn.Writes = append(txn.Guards, more.Guards...), append(txn.Writes, more.Writes...)
	}
	return txn, nil
}

// usedNamespaces are those that hold ConfigMaps. It reads one object of each.
func (s *Server) usedNamespaces(ctx context.Context) ([]string, error) {
	var used []string
	o := store.ListOptions{Prefix: prefixOf(types.ConfigMaps, ""), At: store.Any, Limit: 1, Part: store.BriefAlone}
	for {
		page, err := s.store.List(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("read the namespaces in use: %w", err)
		}
		if len(page.Records) == 0 {
			return used, nil
		}
		namespace, _ := splitKey(types.ConfigMaps, page.Records[0].Key)
		used = append(used, namespace)
		// Names are ASCII, so this is beyond all keys of the namespace.
		o.After = prefixOf(types.ConfigMaps, namespace) + "\xff"
	}
}
