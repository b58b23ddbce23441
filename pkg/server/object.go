package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// keyPrefix begins the keys of all ConfigMaps.
const keyPrefix = "configmaps/"

// keyOf is where an object is kept.
func keyOf(namespace, name string) store.Key {
	return store.Key(keyPrefix + namespace + "/" + name)
}

// splitKey is the reverse of keyOf.
func splitKey(key store.Key) (namespace, name string) {
	namespace, name, _ = strings.Cut(strings.TrimPrefix(string(key), keyPrefix), "/")
	return namespace, name
}

// possible is false for names that no object can have and whose key could be
// another object's.
func possible(names ...string) bool {
	for _, n := range names {
		if n == "" || strings.ContainsAny(n, "/\x00") {
			return false
		}
	}
	return true
}

// encoded is the stored form of a record's object.
func encoded(rec store.Record) types.Encoded {
	return types.Encoded{Value: rec.Value, VersionAt: rec.VersionAt}
}

// objectAnswer sends a single object: it copies bytes and marshals nothing.
func objectAnswer(code int, e types.Encoded, version string) answer {
	return answer{code: code, json: e.AppendObject(make([]byte, 0, e.Size()), version)}
}

// current reads an object's newest version.
func (s *Server) current(ctx context.Context, namespace, name string) (store.Record, error) {
	if !possible(namespace, name) {
		return store.Record{}, types.NotFound(name)
	}
	rec, err := s.store.Get(ctx, keyOf(namespace, name), 0)
	if errors.Is(err, store.ErrNotFound) {
		return store.Record{}, types.NotFound(name)
	}
	if err != nil {
		return store.Record{}, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, name, err)
	}
	return rec, nil
}

// decoded is a record's object without its data, unless it is immutable: then
// the data is needed to see whether it changes.
func decoded(rec store.Record) (*types.ConfigMap, error) {
	e, version := encoded(rec), rec.Revision.String()
	cm, err := e.DecodeHead(version)
	if err == nil && cm.Immutable != nil && *cm.Immutable {
		return e.Decode(version)
	}
	return cm, err
}

// commit writes one record if its key still has the revision that was seen; 0:
// if it is absent. The *store.GuardError of one that moved is passed on for the
// verb to judge.
func (s *Server) commit(ctx context.Context, seen store.Revision, rec store.Record) (store.Revision, error) {
	if err := s.store.Healthy(); errors.Is(err, store.ErrFailed) {
		// Known before the write began, so the client can be told for certain.
		return 0, types.StoreReadOnly()
	}
	rev, err := s.store.Commit(ctx, store.Txn{
		Guards: []store.Guard{{Key: rec.Key, Revision: seen}},
		Writes: []store.Record{rec},
	})
	if err != nil {
		return 0, fmt.Errorf("commit %s: %w", rec.Key, err)
	}
	return rev, nil
}

// moved tells that a commit's guard failed, and the revision that its key has.
func moved(err error) (current store.Revision, ok bool) {
	var guard *store.GuardError
	if errors.As(err, &guard) {
		return guard.Current, true
	}
	return 0, false
}

// recordOf is the record that keeps an object.
func recordOf(key store.Key, cm *types.ConfigMap, e types.Encoded, meta store.Meta) store.Record {
	return store.Record{Key: key, Value: e.Value, VersionAt: e.VersionAt, Labels: cm.Labels, UID: string(cm.UID), Meta: meta}
}

// dropOwned clears what a client may send but only the server decides. Field
// managers are not tracked, so none are kept.
func dropOwned(cm *types.ConfigMap) {
	cm.SelfLink = ""
	cm.ManagedFields = nil
}

// dedupOwners drops repeated owner references, with Kubernetes' warning.
func dedupOwners(r *request, cm *types.ConfigMap) {
	var kept []metav1.OwnerReference
	var repeated []string
	seen := map[ktypes.UID]bool{}
	for _, ref := range cm.OwnerReferences {
		if seen[ref.UID] && !slices.Contains(repeated, string(ref.UID)) {
			repeated = append(repeated, string(ref.UID))
		}
		seen[ref.UID] = true
		if !slices.ContainsFunc(kept, func(k metav1.OwnerReference) bool { return sameOwner(k, ref) }) {
			kept = append(kept, ref)
		}
	}
	cm.OwnerReferences = kept
	if len(repeated) > 0 {
		r.warn(fmt.Sprintf(".metadata.ownerReferences contains duplicate entries; API server dedups owner references "+
			"in 1.20+, and may reject such requests as early as 1.24; please fix your requests; "+
			"duplicate UID(s) observed: %s", strings.Join(repeated, ", ")))
	}
}

func sameOwner(a, b metav1.OwnerReference) bool {
	same := func(x, y *bool) bool { return (x == nil) == (y == nil) && (x == nil || *x == *y) }
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		same(a.Controller, b.Controller) && same(a.BlockOwnerDeletion, b.BlockOwnerDeletion)
}
