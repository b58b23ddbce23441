package server

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	ktypes "k8s.io/apimachinery/pkg/types"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// The warning that goes with the refusal of an unconditional PUT.
const putWarning = "this server refuses updates without metadata.resourceVersion, because they overwrite what others " +
	"wrote; its setting --unconditional-put allows them"

// replace answers PUT on an object. The order of its checks is part of the
// contract: a body that names another object, a missing version, a missing
// object, another uid, another version, and only then the content.
func (s *Server) replace(r *request) (answer, error) {
	o, err := s.writeOptions(r, "UpdateOptions", "update")
	if err != nil {
		return answer{}, err
	}
	cm, err := s.configMap(r, o, types.MisreadUpdate)
	if err != nil {
		return answer{}, err
	}
	if cm.Name != r.name {
		return answer{}, types.NameMismatch()
	}
	if cm.Namespace != "" && cm.Namespace != r.namespace {
		return answer{}, types.NamespaceMismatch()
	}
	sent := cm.ResourceVersion
	if sent == "0" {
		sent = ""
	}
	if sent == "" && !s.mayPutBlindly(cm) {
		return answer{}, refuseBlindPut(r)
	}
	if _, err := strconv.ParseUint(sent, 10, 64); sent != "" && err != nil {
		return answer{}, types.BadVersion("metadata.resourceVersion", sent)
	}
	dedupOwners(r, cm)
	put := &update{server: s, request: r, options: o, body: cm, sent: sent, uid: cm.UID}
	return put.run(r.context())
}

// refuseBlindPut refuses a PUT without a version, and names the setting that
// would let it through.
func refuseBlindPut(r *request) error {
	r.warn(putWarning)
	return types.UpdateNeedsVersion()
}

// mayPutBlindly says whether a body without a version may be considered at
// all. It is judged before the object is looked up.
func (s *Server) mayPutBlindly(body *types.ConfigMap) bool {
	switch s.options.UnconditionalPut {
	case PutAlways:
		return true
	case PutHelm:
		return isHelmRelease(body)
	}
	return false
}

// isHelmRelease recognises the records in which Helm keeps its releases.
func isHelmRelease(cm *types.ConfigMap) bool {
	return strings.HasPrefix(cm.Name, "sh.helm.release.v1.") && cm.Labels["owner"] == "helm"
}

// update is one PUT: the same body, tried on whatever is stored.
type update struct {
	server  *Server
	request *request
	options writeOptions
	body    *types.ConfigMap
	sent    string     // the version in the body; empty: unconditional
	uid     ktypes.UID // the uid in the body
}

// run tries until the body is stored or refused. Only an unconditional PUT is
// tried more than once, each time on what was just read: a caller that gave no
// version is not to see the conflicts of others.
func (u *update) run(ctx context.Context) (answer, error) {
	for {
		a, err := u.once(ctx)
		current, conflict := moved(err)
		switch {
		case !conflict:
			return a, err
		case current == 0:
			return answer{}, types.NotFound(u.request.name) // deleted meanwhile
		case u.sent != "":
			return answer{}, types.VersionConflict(u.request.name, u.sent, current.String())
		case ctx.Err() != nil:
			return answer{}, ctx.Err()
		}
	}
}

// once compares with what is stored and swaps on exactly that version.
func (u *update) once(ctx context.Context) (answer, error) {
	rec, err := u.server.current(ctx, u.request.namespace, u.request.name)
	if err != nil {
		return answer{}, err
	}
	old, err := decoded(rec)
	if err != nil {
		return answer{}, fmt.Errorf("read ConfigMap %s/%s: %w", u.request.namespace, u.request.name, err)
	}
	if err := u.check(old); err != nil {
		return answer{}, err
	}
	next := u.body.DeepCopy()
	keepOwned(next, old)
	if errs := types.ValidateUpdate(next, old); len(errs) > 0 {
		return answer{}, types.Invalid(next.Name, errs)
	}
	return u.server.swap(ctx, rec, old, next, u.options)
}

// check compares identity and version, in this order.
func (u *update) check(old *types.ConfigMap) error {
	if u.uid != "" && u.uid != old.UID {
		return types.UIDMismatch(old.Name, u.uid, old.UID)
	}
	if u.sent != "" && u.sent != old.ResourceVersion {
		return types.VersionConflict(old.Name, u.sent, old.ResourceVersion)
	}
	if u.sent == "" && u.server.options.UnconditionalPut == PutHelm && !isHelmRelease(old) {
		return refuseBlindPut(u.request)
	}
	return nil
}

// keepOwned carries over what the server alone decides. Deletion marks that the
// body lacks are kept, others are left for validation to refuse.
func keepOwned(next, old *types.ConfigMap) {
	dropOwned(next)
	next.Namespace = old.Namespace
	next.UID = old.UID
	next.ResourceVersion = old.ResourceVersion
	next.CreationTimestamp = old.CreationTimestamp
	next.Generation = old.Generation
	if next.DeletionTimestamp == nil {
		next.DeletionTimestamp = old.DeletionTimestamp
	}
	if next.DeletionGracePeriodSeconds == nil {
		next.DeletionGracePeriodSeconds = old.DeletionGracePeriodSeconds
	}
}

// swap stores next in place of the record that it was made from. What changes
// nothing keeps its version, and an object that only waited for its last
// finalizer goes away.
func (s *Server) swap(ctx context.Context, rec store.Record, old, next *types.ConfigMap, o writeOptions) (answer, error) {
	e, err := types.Encode(next)
	if err != nil {
		return answer{}, err
	}
	unchanged := objectAnswer(0, e, rec.Revision.String())
	if o.dryRun {
		return unchanged, nil
	}
	if old.DeletionTimestamp != nil && len(next.Finalizers) == 0 {
		rev, err := s.commit(ctx, rec.Revision, store.Record{Key: rec.Key, UID: rec.UID, Deleted: true, Meta: o.meta})
		return written(unchanged, rev), err
	}
	if bytes.Equal(e.Value, rec.Value) {
		return unchanged, nil
	}
	rev, err := s.commit(ctx, rec.Revision, recordOf(rec.Key, next, e, o.meta))
	if err != nil {
		return answer{}, err
	}
	return written(objectAnswer(0, e, rev.String()), rev), nil
}
