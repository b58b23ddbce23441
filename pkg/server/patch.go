package server

import (
	"bytes"
	"encoding/json"
	"mime"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	ktypes "k8s.io/apimachinery/pkg/types"

	"example.com/cmctl/pkg/server/patch"
	"example.com/cmctl/pkg/types"
)

// patch answers PATCH on an object. The patch is made to the version that was
// just read, so a patch that names no version is never refused for what others
// wrote, and loses none of it.
func (s *Server) patch(r *request) (answer, error) {
	kind, err := patchType(r)
	if err != nil {
		return answer{}, err
	}
	body, err := s.readAll(r)
	if err != nil {
		return answer{}, err
	}
	r.auditPatch(kind, body)
	o, err := s.patchOptions(r, kind)
	if err != nil {
		return answer{}, err
	}
	if kind == ktypes.ApplyYAMLPatchType {
		return s.apply(r, o, body)
	}
	p, err := patch.Read(kind, body, o.fieldValidation)
	if err != nil {
		return answer{}, err
	}
	before, named := len(r.warnings), s.faults != nil && namesVersion(kind, body)
	m := modification{server: s, request: r, options: o.writeOptions, make: func(old types.Object) (types.Object, error) {
		next, warnings, err := p.Make(r.resource, old)
		// Of several attempts the last one counts.
		r.warnings = append(r.warnings[:before], warnings...)
		if err != nil {
			return nil, err
		}
		if err := settle(r, next, old); err != nil {
			return nil, err
		}
		if named && s.faults.Conflict(r.writer) {
			return nil, r.resource.Modified(r.name)
		}
		return next, s.manage(r.resource, old, next, o.meta)
	}}
	return m.run(r.context())
}

// namesVersion tells whether a patch says which version it was made from. What it
// makes of the object does not: there is always one.
func namesVersion(kind ktypes.PatchType, body []byte) bool {
	if kind == ktypes.JSONPatchType {
		return bytes.Contains(body, []byte(`"/metadata/resourceVersion"`))
	}
	var p metav1.PartialObjectMetadata
	return json.Unmarshal(body, &p) == nil && p.ResourceVersion != ""
}

// patchType says what kind of patch the body claims to be.
func patchType(r *request) (ktypes.PatchType, error) {
	given := r.http.Header.Get("Content-Type")
	// As in Kubernetes, the type counts in its exact spelling.
	mediaType, _, _ := strings.Cut(given, ";")
	_, params, _ := mime.ParseMediaType(given)
	if err := checkCharset(params["charset"]); err != nil {
		return "", err
	}
	kind := ktypes.PatchType(mediaType)
	if kind != ktypes.ApplyYAMLPatchType && !slices.Contains(patch.Types, kind) || !isPlain(r.http.Header) {
		return "", patch.UnsupportedType()
	}
	return kind, nil
}

// patchOptions are the parameters of a patch.
type patchOptions struct {
	writeOptions
	force bool // of an apply: take fields from those who own them
}

func (s *Server) patchOptions(r *request, kind ktypes.PatchType) (patchOptions, error) {
	o := metav1.PatchOptions{
		DryRun:          r.query["dryRun"],
		FieldManager:    r.query.Get("fieldManager"),
		FieldValidation: r.query.Get("fieldValidation"),
	}
	if values := r.query["force"]; len(values) > 0 {
		if err := runtime.Convert_Slice_string_To_Pointer_bool(&values, &o.Force, nil); err != nil {
			return patchOptions{}, types.BadRequest(err.Error())
		}
	}
	if errs := metavalidation.ValidatePatchOptions(&o, kind); len(errs) > 0 {
		return patchOptions{}, types.InvalidOptions("PatchOptions", errs)
	}
	verb := "patch"
	if kind == ktypes.ApplyYAMLPatchType {
		verb = "apply"
	}
	meta, err := s.meta(r, verb, o.FieldManager)
	return patchOptions{
		writeOptions: writeOptions{dryRun: len(o.DryRun) > 0, fieldValidation: o.FieldValidation, meta: meta},
		force:        o.Force != nil && *o.Force,
	}, err
}

// settle holds what a patch made of an object against the one that it was made
// from, in this order: whether it still is the object of the URL, whether it
// names the version that is stored, if any, and what no patch can change.
func settle(r *request, next, old types.Object) error {
	if err := checkIdentity(r, next); err != nil {
		return err
	}
	dedupOwners(r, next)
	sent, err := sentVersion(next)
	if err != nil {
		return err
	}
	if sent != "" && sent != old.GetResourceVersion() {
		return r.resource.VersionConflict(r.name, sent, old.GetResourceVersion())
	}
	keepUnpatched(next, old)
	r.resource.PrepareUpdate(next, old)
	return nil
}

// checkIdentity makes sure that an object is the one of the URL. A namespace
// that is missing, or that its type does not have, is no contradiction.
func checkIdentity(r *request, o types.Object) error {
	if ns := o.GetNamespace(); r.resource.Namespaced && ns != "" && ns != r.namespace {
		return types.NamespaceMismatch()
	}
	o.SetNamespace(r.namespace)
	if o.GetName() != r.name {
		return types.NameMismatch()
	}
	return nil
}

// sentVersion is the version that a write was made from; empty if it names none.
func sentVersion(o types.Object) (string, error) {
	sent := o.GetResourceVersion()
	if sent == "" || sent == "0" {
		return "", nil
	}
	if _, err := strconv.ParseUint(sent, 10, 64); err != nil {
		return "", types.BadVersion("metadata.resourceVersion", sent)
	}
	return sent, nil
}

// keepUnpatched carries over what the server alone decides. Another uid is left
// for validation to refuse.
func keepUnpatched(next, old types.Object) {
	uid := next.GetUID()
	keepOwned(next, old)
	if uid != "" {
		next.SetUID(uid)
	}
}
