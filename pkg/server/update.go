package server

import (
	"strconv"
	"strings"

	"example.com/cmctl/pkg/types"
)

// The warning that goes with the refusal of an unconditional PUT.
const putWarning = "this server refuses updates without metadata.resourceVersion, because they overwrite what others " +
	"wrote; its setting --unconditional-put allows them"

// replace answers PUT on an object. The order of its checks is part of the
// contract: a body that names another object, a missing version, a missing
// object, another uid, another version, and only then the content.
func (s *Server) replace(r *request) (answer, error) {
	return s.put(r, func(body, old types.Object, o writeOptions) (types.Object, error) {
		next := body.DeepCopyObject().(types.Object)
		keepOwned(next, old)
		r.resource.PrepareUpdate(next, old)
		return next, s.manage(r.resource, old, next, o.meta)
	})
}

// put stores what is made of a body and of the object that it was made from.
func (s *Server) put(r *request, next func(body, old types.Object, o writeOptions) (types.Object, error)) (answer, error) {
	o, err := s.writeOptions(r, "UpdateOptions", "update")
	if err != nil {
		return answer{}, err
	}
	body, err := s.object(r, o)
	if err != nil {
		return answer{}, err
	}
	if body.GetName() != r.name {
		return answer{}, types.NameMismatch()
	}
	if ns := body.GetNamespace(); r.resource.Namespaced && ns != "" && ns != r.namespace {
		return answer{}, types.NamespaceMismatch()
	}
	sent := body.GetResourceVersion()
	if sent == "0" {
		sent = ""
	}
	if sent == "" && !s.mayPutBlindly(body) {
		return answer{}, refuseBlindPut(r)
	}
	dedupOwners(r, body)
	put := modification{server: s, request: r, options: o, sent: sent, make: func(old types.Object) (types.Object, error) {
		if err := s.checkPut(r, body, sent, old); err != nil {
			return nil, err
		}
		return next(body, old, o)
	}}
	return put.run(r.context())
}

// checkPut compares identity and version, in this order.
func (s *Server) checkPut(r *request, body types.Object, sent string, old types.Object) error {
	if uid := body.GetUID(); uid != "" && uid != old.GetUID() {
		return r.resource.UIDMismatch(r.name, uid, old.GetUID())
	}
	if _, err := strconv.ParseUint(sent, 10, 64); sent != "" && err != nil {
		return types.BadVersion("metadata.resourceVersion", sent)
	}
	if sent != "" && sent != old.GetResourceVersion() {
		return r.resource.VersionConflict(r.name, sent, old.GetResourceVersion())
	}
	if sent != "" && s.faults.Conflict(r.writer) {
		return r.resource.Modified(r.name)
	}
	if sent == "" && s.options.UnconditionalPut == PutHelm && !isHelmRelease(old) {
		return refuseBlindPut(r)
	}
	return nil
}

// refuseBlindPut refuses a PUT without a version, and names the setting that
// would let it through.
func refuseBlindPut(r *request) error {
	warning := putWarning
	if isHelmName(r.name) {
		warning += ", and --unconditional-put=helm allows Helm's"
	}
	r.warn(warning)
	return types.UpdateNeedsVersion()
}

// mayPutBlindly says whether a body without a version may be considered at
// all. It is judged before the object is looked up.
func (s *Server) mayPutBlindly(body types.Object) bool {
	switch s.options.UnconditionalPut {
	case PutAlways:
		return true
	case PutHelm:
		return isHelmRelease(body)
	}
	return false
}

// isHelmRelease recognises the records in which Helm keeps its releases.
func isHelmRelease(o types.Object) bool {
	_, isConfigMap := o.(*types.ConfigMap)
	return isConfigMap && isHelmName(o.GetName()) && o.GetLabels()["owner"] == "helm"
}

func isHelmName(name string) bool { return strings.HasPrefix(name, "sh.helm.release.v1.") }
