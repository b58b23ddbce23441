package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/server/render"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// prefixOf is what the keys of a namespace's objects begin with; of all objects
// of the resource if it is empty.
func prefixOf(res *types.Resource, namespace string) store.Key {
	if namespace == "" || !res.Namespaced {
		return store.Key(res.Plural + "/")
	}
	return store.Key(res.Plural + "/" + namespace + "/")
}

// keyOf is where an object is kept.
func keyOf(res *types.Resource, namespace, name string) store.Key {
	return prefixOf(res, namespace) + store.Key(name)
}

// splitKey is the reverse of keyOf.
func splitKey(res *types.Resource, key store.Key) (namespace, name string) {
	rest := strings.TrimPrefix(string(key), res.Plural+"/")
	if !res.Namespaced {
		return "", rest
	}
	namespace, name, _ = strings.Cut(rest, "/")
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
func encoded(res *types.Resource, rec store.Record) types.Encoded {
	return types.Encoded{Resource: res, Value: rec.Value, VersionAt: rec.VersionAt}
}

// markedDeleted tells whether an object waits to go away. It is asked of the
// namespace at every create, so what can't be marked is not decoded.
func markedDeleted(res *types.Resource, rec store.Record) (bool, error) {
	if !bytes.Contains(rec.Value, []byte(`"deletionTimestamp"`)) {
		return false, nil
	}
	meta, err := encoded(res, rec).DecodeMeta("")
	return err == nil && meta.DeletionTimestamp != nil, err
}

// current reads the newest version of an object.
func (s *Server) current(ctx context.Context, res *types.Resource, namespace, name string) (store.Record, error) {
	return s.stored(ctx, res, namespace, name, 0)
}

// stored reads the version of an object in the state at.
func (s *Server) stored(ctx context.Context, res *types.Resource, namespace, name string, at store.Revision) (store.Record, error) {
	if wrong := path.IsValidPathSegmentName(name); len(wrong) > 0 {
		return store.Record{}, types.BadRequest(fmt.Sprintf("Name parameter invalid: %q: %s", name, strings.Join(wrong, ";")))
	}
	if !possible(name) || (res.Namespaced && !possible(namespace)) {
		return store.Record{}, res.NotFound(name)
	}
	rec, err := s.store.Get(ctx, keyOf(res, namespace, name), at)
	if errors.Is(err, store.ErrNotFound) {
		return store.Record{}, res.NotFound(name)
	}
	if err != nil {
		return store.Record{}, fmt.Errorf("read %s: %w", described(res, namespace, name), err)
	}
	return rec, nil
}

// described names an object in the log.
func described(res *types.Resource, namespace, name string) string {
	if !res.Namespaced {
		return res.Kind + " " + name
	}
	return res.Kind + " " + namespace + "/" + name
}

// decoded is a record's object.
func decoded(res *types.Resource, rec store.Record) (types.Object, error) {
	o, err := encoded(res, rec).Decode(rec.Revision.String())
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", rec.Key, err)
	}
	return o, nil
}

// commit writes one record if its key still has the revision that was seen; 0:
// if it is absent, and if it keeps to the quotas of its namespace. also are guards
// and writes that must go with it. The
// *store.GuardError of a key that moved is passed on for the verb to judge.
func (s *Server) commit(ctx context.Context, seen store.Revision, rec store.Record, also ...store.Txn) (store.Revision, error) {
	if err := s.store.Healthy(); errors.Is(err, store.ErrFailed) {
		// Known before the write began, so the client can be told for certain.
		if errors.Is(err, store.ErrDamaged) {
			return 0, types.StoreReadOnlyDamaged()
		}
		if errors.Is(err, store.ErrTaken) {
			return 0, types.StoreReadOnlyTaken()
		}
		return 0, types.StoreReadOnly()
	}
	txn := store.Txn{
		Guards: []store.Guard{{Key: rec.Key, Revision: seen}},
		Writes: []store.Record{rec},
	}
	for _, more := range also {
		txn.Guards = append(txn.Guards, more.Guards...)
		txn.Writes = append(txn.Writes, more.Writes...)
	}
	quotas := s.quotasOn(rec)
	for _, q := range quotas {
		txn.Limits = append(txn.Limits, limitOf(rec.Key, q))
	}
	rev, err := s.commitAudited(ctx, txn)
	if err != nil {
		return 0, fmt.Errorf("commit %s: %w", rec.Key, overQuota(err, rec.Key, quotas))
	}
	return rev, nil
}

// moved tells that a commit failed since this key had moved, and the revision
// that it has.
func moved(err error, key store.Key) (current store.Revision, ok bool) {
	var guard *store.GuardError
	if errors.As(err, &guard) && guard.Guard.Key == key {
		return guard.Current, true
	}
	return 0, false
}

// recordOf is the record that keeps an object.
func recordOf(key store.Key, o types.Object, e types.Encoded, meta store.Meta) store.Record {
	return store.Record{Key: key, Value: e.Value, VersionAt: e.VersionAt, Labels: o.GetLabels(), UID: string(o.GetUID()),
		Brief: briefOf(o, e), Meta: meta}
}

// maxHead is how long metadata may be to be kept at hand for lists, in bytes.
const maxHead = 4 << 10

// briefOf is what lists show of an object that leave out what it holds.
func briefOf(o types.Object, e types.Encoded) store.Brief {
	b := store.Brief{Created: o.GetCreationTimestamp().Time}
	if m, ok := o.(*types.ConfigMap); ok {
		b.Keys = len(m.Data) + len(m.BinaryData)
	}
	if head := render.HeadLength(e.Value); head <= maxHead {
		b.Head = head
	}
	return b
}

// dedupOwners drops repeated owner references, with Kubernetes' warning.
func dedupOwners(r *request, o types.Object) {
	var kept []metav1.OwnerReference
	var repeated []string
	same := map[owner]bool{}
	for _, ref := range o.GetOwnerReferences() {
		if same[ownerOf(ref)] {
			repeated = append(repeated, string(ref.UID))
			continue
		}
		same[ownerOf(ref)] = true
		kept = append(kept, ref)
	}
	if len(repeated) == 0 {
		return
	}
	o.SetOwnerReferences(kept)
	when := ""
	if r.http.Method == http.MethodPatch {
		when = " after mutating admission happens" // so Kubernetes says, with or without any
	}
	r.warn(fmt.Sprintf(".metadata.ownerReferences contains duplicate entries%s; API server dedups owner references "+
		"in 1.20+, and may reject such requests as early as 1.24; please fix your requests; "+
		"duplicate UID(s) observed: %s", when, strings.Join(repeated, ", ")))
}

// owner is an owner reference by value.
type owner struct {
	metav1.OwnerReference        // its pointers are nil
	controller, block     string // what they point to; empty: nil
}

func ownerOf(ref metav1.OwnerReference) owner {
	text := func(b *bool) string {
		if b == nil {
			return ""
		}
		return strconv.FormatBool(*b)
	}
	key := owner{controller: text(ref.Controller), block: text(ref.BlockOwnerDeletion)}
	key.OwnerReference = metav1.OwnerReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID}
	return key
}
