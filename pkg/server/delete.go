package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/cmctl/pkg/server/audit"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// delete answers DELETE on an object.
func (s *Server) delete(r *request) (answer, error) {
	d, err := s.deletion(r)
	if err != nil {
		return answer{}, err
	}
	return d.run(r.context(), r.resource, r.namespace, r.name)
}

// deleteCollection answers DELETE on a collection with the list of what it
// deleted. Each object is deleted by itself: one that is gone already is no
// error, and one that can't be deleted ends it.
func (s *Server) deleteCollection(r *request) (answer, error) {
	o, err := listOptions(r)
	if err != nil {
		return answer{}, err
	}
	if err := checkSelectors(r, o); err != nil {
		return answer{}, err
	}
	d, err := s.deletion(r)
	if err != nil {
		return answer{}, err
	}
	found, err := s.gather(r, o, store.Whole)
	if err != nil {
		return answer{}, err
	}
	s.answers.built(&r.info.held.answer) // to delete takes longer than lists should wait
	for _, rec := range found.records {
		namespace, name := splitKey(r.resource, rec.Key)
		if _, err := d.run(r.context(), r.resource, namespace, name); err != nil && !apierrors.IsNotFound(err) {
			return answer{}, err
		}
	}
	return found.answer(), nil
}

// checkSelectors refuses selectors that select everything, or would be passed over:
// everything would be deleted.
func checkSelectors(r *request, o *internalversion.ListOptions) error {
	if text := r.query.Get("labelSelector"); text != "" && o.LabelSelector.Empty() {
		return types.BadRequest(fmt.Sprintf("labelSelector %q selects everything; leave it out if that is meant", text))
	}
	if text := r.query.Get("fieldSelector"); text != "" && o.FieldSelector.Empty() {
		return types.BadRequest(fmt.Sprintf("fieldSelector %q selects everything; leave it out if that is meant", text))
	}
	for _, name := range []string{"label", "labels", "field", "fields", "selector", "l"} {
		if r.query.Has(name) {
			return types.BadRequest(fmt.Sprintf("unknown parameter %q: selectors are written labelSelector and fieldSelector", name))
		}
	}
	return nil
}

// deletion is a request to delete, of one object or of several.
type deletion struct {
	server  *Server
	options metav1.DeleteOptions
	meta    store.Meta
	guards  []store.Guard       // what must hold besides
	writer  http.ResponseWriter // for the marks of injected faults; nil where no client asks
}

// deletion reads the parameters, from the body or else from the query.
func (s *Server) deletion(r *request) (*deletion, error) {
	o, err := s.deleteOptions(r)
	if err != nil {
		return nil, err
	}
	if errs := metavalidation.ValidateDeleteOptions(&o); len(errs) > 0 {
		return nil, types.InvalidOptions("DeleteOptions", errs)
	}
	// Kubernetes knows no field manager of a delete; here it is kept in the
	// history, so one that is not well formed is passed over.
	manager := r.query.Get("fieldManager")
	if len(metavalidation.ValidateFieldManager(manager, nil)) > 0 {
		manager = ""
	}
	meta, err := s.meta(r, "delete", manager)
	return &deletion{server: s, options: o, meta: meta, writer: r.writer}, err
}

func (s *Server) deleteOptions(r *request) (metav1.DeleteOptions, error) {
	fromQuery, err := deleteOptionsOf(r)
	if err != nil {
		return fromQuery, err
	}
	body, err := s.readAll(r)
	if err != nil || len(body) == 0 {
		return fromQuery, err
	}
	mediaType, err := mediaTypeOf(r)
	if err != nil {
		return fromQuery, err
	}
	var o metav1.DeleteOptions
	problems, err := types.DecodeOptions(body, mediaType, "DeleteOptions", &o)
	if err != nil {
		return o, err
	}
	r.auditSent(&o)
	if found := types.MisreadDeletion(problems); len(found) > 0 {
		return o, types.Misread("DeleteOptions", found)
	}
	// With so many problems that there may be more, it can't be told.
	if len(problems) >= types.MaxProblems {
		return o, types.Misread("DeleteOptions", append(problems[:3:3], "and many more"))
	}
	// Kubernetes ignores the query beside a body. Who asked for a dry run or for
	// a precondition in either place must not see a deletion without it.
	o.DryRun = append(o.DryRun, fromQuery.DryRun...)
	o.Preconditions, err = bothPreconditions(o.Preconditions, fromQuery.Preconditions)
	return o, err
}

// bothPreconditions are those of the body and of the query together.
func bothPreconditions(body, query *metav1.Preconditions) (*metav1.Preconditions, error) {
	if body == nil || query == nil {
		return cmp.Or(body, query), nil
	}
	if differ(body.UID, query.UID) || differ(body.ResourceVersion, query.ResourceVersion) {
		return nil, types.BadRequest("the preconditions in the body and in the query contradict each other")
	}
	return &metav1.Preconditions{
		UID:             cmp.Or(body.UID, query.UID),
		ResourceVersion: cmp.Or(body.ResourceVersion, query.ResourceVersion),
	}, nil
}

// differ is true for two values that are both there and not the same.
func differ[T comparable](a, b *T) bool { return a != nil && b != nil && *a != *b }

func deleteOptionsOf(r *request) (metav1.DeleteOptions, error) {
	o := metav1.DeleteOptions{DryRun: r.query["dryRun"]}
	if r.query.Has("propagationPolicy") {
		policy := metav1.DeletionPropagation(r.query.Get("propagationPolicy"))
		o.PropagationPolicy = &policy
	}
	if values := r.query["orphanDependents"]; len(values) > 0 {
		if err := runtime.Convert_Slice_string_To_Pointer_bool(&values, &o.OrphanDependents, nil); err != nil {
			return o, types.BadRequest(err.Error())
		}
	}
	if values := r.query["ignoreStoreReadErrorWithClusterBreakingPotential"]; len(values) > 0 {
		if err := runtime.Convert_Slice_string_To_Pointer_bool(&values, &o.IgnoreStoreReadErrorWithClusterBreakingPotential, nil); err != nil {
			return o, types.BadRequest(err.Error())
		}
	}
	if r.query.Has("gracePeriodSeconds") {
		if _, err := strconv.ParseInt(r.query.Get("gracePeriodSeconds"), 10, 64); err != nil {
			return o, types.BadRequest(err.Error())
		}
	}
	if r.query.Has("uid") || r.query.Has("resourceVersion") {
		o.Preconditions = &metav1.Preconditions{}
	}
	if r.query.Has("uid") {
		uid := ktypes.UID(r.query.Get("uid"))
		o.Preconditions.UID = &uid
	}
	if r.query.Has("resourceVersion") {
		version := r.query.Get("resourceVersion")
		o.Preconditions.ResourceVersion = &version
	}
	return o, nil
}

// run deletes one object. What moves under it is read again, unless the caller
// named the version that it must have.
func (d *deletion) run(ctx context.Context, res *types.Resource, namespace, name string) (answer, error) {
	for {
		a, err := d.once(ctx, res, namespace, name)
		current, conflict := moved(err, keyOf(res, namespace, name))
		switch {
		case !conflict:
			return a, err
		case current == 0:
			return answer{}, res.NotFound(name)
		case ctx.Err() != nil:
			return answer{}, ctx.Err()
		}
	}
}

func (d *deletion) once(ctx context.Context, res *types.Resource, namespace, name string) (answer, error) {
	rec, err := d.server.current(ctx, res, namespace, name)
	if err != nil {
		return answer{}, err
	}
	meta, err := encoded(res, rec).DecodeMeta(rec.Revision.String())
	if err != nil {
		return answer{}, fmt.Errorf("read %s: %w", described(res, namespace, name), err)
	}
	if err := d.check(res, meta); err != nil {
		return answer{}, err
	}
	if broken := d.options.IgnoreStoreReadErrorWithClusterBreakingPotential; broken != nil && *broken {
		return answer{}, res.Readable(name)
	}
	if res == types.Namespaces {
		return d.terminate(ctx, rec)
	}
	if finalizers := d.finalizers(meta); len(finalizers) > 0 {
		return d.mark(ctx, res, rec, finalizers)
	}
	done := statusAnswer(res.Deleted(name, meta.UID))
	if len(d.options.DryRun) > 0 {
		d.server.auditKept(ctx, rec, d.meta.Verb, audit.DryRun)
		return done, nil
	}
	rev, err := d.server.commit(ctx, rec.Revision, store.Record{Key: rec.Key, UID: rec.UID, Deleted: true, Meta: d.meta}, store.Txn{Guards: d.guards})
	if err != nil {
		return answer{}, err
	}
	return written(done, rev), nil
}

// check holds the preconditions against what is stored.
func (d *deletion) check(res *types.Resource, meta *metav1.ObjectMeta) error {
	want := d.options.Preconditions
	if want == nil {
		return nil
	}
	if want.UID != nil && *want.UID != meta.UID {
		return res.UIDPrecondition(meta.Name, *want.UID, meta.UID)
	}
	if want.ResourceVersion != nil && *want.ResourceVersion != meta.ResourceVersion {
		return res.VersionPrecondition(meta.Name, *want.ResourceVersion, meta.ResourceVersion)
	}
	if want.ResourceVersion != nil && d.server.faults.Conflict(d.writer) {
		return res.Modified(meta.Name)
	}
	return nil
}

// finalizers are those that the object will wait for: its own, changed as the
// propagation policy says.
func (d *deletion) finalizers(meta *metav1.ObjectMeta) []string {
	policy := metav1.DeletionPropagation("")
	switch {
	case d.options.PropagationPolicy != nil:
		policy = *d.options.PropagationPolicy
	case d.options.OrphanDependents != nil && *d.options.OrphanDependents:
		policy = metav1.DeletePropagationOrphan
	case d.options.OrphanDependents != nil:
		policy = metav1.DeletePropagationBackground
	default:
		return meta.Finalizers
	}
	standard := []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
	kept := slices.DeleteFunc(slices.Clone(meta.Finalizers), func(f string) bool { return slices.Contains(standard, f) })
	switch policy {
	case metav1.DeletePropagationOrphan:
		kept = append(kept, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		kept = append(kept, metav1.FinalizerDeleteDependents)
	}
	if sets.New(kept...).Equal(sets.New(meta.Finalizers...)) {
		return meta.Finalizers // in their own order
	}
	return kept
}

// mark notes that the object is to go, and leaves it for its finalizers. One
// that is marked already keeps its time and, with the same finalizers, its
// version.
func (d *deletion) mark(ctx context.Context, res *types.Resource, rec store.Record, finalizers []string) (answer, error) {
	old, err := decoded(res, rec)
	if err != nil {
		return answer{}, err
	}
	next := old.DeepCopyObject().(types.Object)
	next.SetFinalizers(finalizers)
	if next.GetDeletionTimestamp() == nil {
		now, noGrace := metav1.NewTime(d.meta.Time).Rfc3339Copy(), int64(0)
		next.SetDeletionTimestamp(&now)
		next.SetDeletionGracePeriodSeconds(&noGrace)
	}
	return d.server.swap(ctx, res, rec, old, next, writeOptions{dryRun: len(d.options.DryRun) > 0, meta: d.meta, guards: d.guards})
}
