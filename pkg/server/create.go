package server

import (
	"errors"
	"net/http"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"example.com/cmctl/pkg/server/audit"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// nameAttempts is how many generated names are tried before one that is taken
// is reported.
const nameAttempts = 8

// create answers POST on a collection. The guard "absent" makes it: two creates
// of one name can't both win.
func (s *Server) create(r *request) (answer, error) {
	o, err := s.writeOptions(r, "CreateOptions", "create")
	if err != nil {
		return answer{}, err
	}
	body, err := s.object(r, o)
	if err != nil {
		return answer{}, err
	}
	if ns := body.GetNamespace(); r.resource.Namespaced && ns != "" && ns != r.namespace {
		return answer{}, types.NamespaceMismatch()
	}
	// "0" stands for no version, as it does in an update.
	if v := body.GetResourceVersion(); v != "" && v != "0" {
		return answer{}, types.CreateSetsVersion()
	}
	generate := body.GetName() == "" && body.GetGenerateName() != ""
	dedupOwners(r, body)
	for attempt := 1; ; attempt++ {
		if generate {
			body.SetName(generatedName(body.GetGenerateName()))
		}
		a, err := s.createObject(r, o, body)
		if generate && apierrors.IsAlreadyExists(err) && attempt < nameAttempts {
			continue
		}
		return a, err
	}
}

// createObject stores a new object whose name is set.
func (s *Server) createObject(r *request, o writeOptions, body types.Object) (answer, error) {
	// No writer owns these: a new object has none.
	body.SetDeletionTimestamp(nil)
	body.SetDeletionGracePeriodSeconds(nil)
	if err := s.manage(r.resource, nil, body, o.meta); err != nil {
		return answer{}, err
	}
	return s.createManaged(r, o, body)
}

// createManaged stores a new object whose managedFields are made.
func (s *Server) createManaged(r *request, o writeOptions, next types.Object) (answer, error) {
	sent := next.GetResourceVersion()
	s.setOwned(r, next)
	r.resource.PrepareCreate(next)
	if errs := r.resource.Validate(next); len(errs) > 0 {
		return answer{}, r.resource.Invalid(next.GetName(), errs)
	}
	e, err := r.resource.Encode(next)
	if err != nil {
		return answer{}, err
	}
	if limit := s.options.MaxBodyBytes; int64(len(e.Value)) > limit {
		return answer{}, types.ObjectTooLarge(len(e.Value), limit)
	}
	key := keyOf(r.resource, r.namespace, next.GetName())
	for {
		place, err := s.place(r.context(), r, next.GetName())
		if err != nil {
			return answer{}, err
		}
		if o.dryRun {
			if _, err := s.current(r.context(), r.resource, r.namespace, next.GetName()); !apierrors.IsNotFound(err) {
				return answer{}, s.exists(r, next, err)
			}
			if err := s.rehearse(r.context(), recordOf(key, next, e, o.meta), -1); err != nil {
				return answer{}, err
			}
			s.auditKept(r.context(), store.Record{Key: key, UID: string(next.GetUID())}, o.meta.Verb, audit.DryRun)
			return objectAnswer(http.StatusCreated, e, sent), nil // nothing gave it another
		}
		rev, err := s.commit(r.context(), 0, recordOf(key, next, e, o.meta), place)
		var guard *store.GuardError
		switch _, taken := moved(err, key); {
		case taken:
			return answer{}, s.exists(r, next, nil)
		case errors.As(err, &guard): // the namespace moved
			if r.context().Err() != nil {
				return answer{}, r.context().Err()
			}
			continue
		case err != nil:
			return answer{}, err
		}
		return written(objectAnswer(http.StatusCreated, e, rev.String()), rev), nil
	}
}

// written notes the version that a write made.
func written(a answer, rev store.Revision) answer {
	a.version = rev.String()
	return a
}

// setOwned fills in what the server alone decides about a new object.
func (s *Server) setOwned(r *request, o types.Object) {
	o.SetSelfLink("")
	o.SetNamespace(r.namespace)
	o.SetUID(ktypes.UID(uuid.NewString()))
	o.SetCreationTimestamp(metav1.NewTime(s.clock().UTC()).Rfc3339Copy())
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	o.SetResourceVersion("")
}

// exists words the refusal to create what is there, or passes on why that could
// not be seen.
func (s *Server) exists(r *request, o types.Object, readErr error) error {
	if readErr != nil {
		return readErr
	}
	taken := r.resource.AlreadyExists(o.GetName())
	rec, err := s.current(r.context(), r.resource, r.namespace, o.GetName())
	if err != nil && !apierrors.IsNotFound(err) { // it was there when it counted
		return err
	}
	if err == nil {
		if marked, err := markedDeleted(r.resource, rec); err == nil && marked {
			taken = r.resource.BeingDeleted(o.GetName())
		}
	}
	if o.GetGenerateName() != "" {
		taken = types.WithGenerateName(taken)
	}
	return taken
}

// generatedName appends a random suffix as Kubernetes does, cutting the base to
// what a label value may hold.
func generatedName(base string) string {
	const suffix, longest = 5, 63
	return base[:min(len(base), longest-suffix)] + rand.String(suffix)
}
