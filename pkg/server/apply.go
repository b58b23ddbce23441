package server

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/server/patch"
	"example.com/cmctl/pkg/types"
)

// apply answers a PATCH that applies a configuration: the object gets the fields
// that it names, loses those that its manager named before, and is created if it
// is not there.
func (s *Server) apply(r *request, o patchOptions, body []byte) (answer, error) {
	c, err := patch.ReadConfiguration(body)
	if err != nil {
		return answer{}, err
	}
	a := application{server: s, request: r, options: o, configuration: c, warnings: len(r.warnings)}
	update := modification{server: s, request: r, options: o.writeOptions, make: a.update}
	for {
		done, err := update.run(r.context())
		if !apierrors.IsNotFound(err) {
			return done, err
		}
		done, err = a.create()
		if !apierrors.IsAlreadyExists(err) || r.context().Err() != nil {
			return done, err
		}
		// Somebody created it meanwhile.
	}
}

// application is a request to apply a configuration.
type application struct {
	server        *Server
	request       *request
	options       patchOptions
	configuration patch.Configuration
	warnings      int // that the request had before
}

// update makes the next version of an object.
func (a *application) update(old types.Object) (types.Object, error) {
	next, err := a.merge(old)
	if err != nil {
		return nil, err
	}
	if err := settle(a.request, next, old); err != nil {
		return nil, err
	}
	if a.configuration.Object.GetResourceVersion() != "" && a.server.faults.Conflict(a.request.writer) {
		return nil, a.request.resource.Modified(a.request.name)
	}
	return patch.Reread(a.request.resource, next)
}

// create stores the configuration as a new object.
func (a *application) create() (answer, error) {
	r := a.request
	next, err := a.merge(nil)
	if err != nil {
		return answer{}, err
	}
	if uid := next.GetUID(); uid != "" {
		return answer{}, patch.UIDOfNothing(r.resource, r.name, uid)
	}
	if err := checkIdentity(r, next); err != nil {
		return answer{}, err
	}
	dedupOwners(r, next)
	// A version is no condition on an object that is not there.
	if _, err := sentVersion(next); err != nil {
		return answer{}, err
	}
	if next, err = patch.Reread(r.resource, next); err != nil {
		return answer{}, err
	}
	if err := a.server.permitCreate(r); err != nil {
		return answer{}, err
	}
	return a.server.createManaged(r, a.options.writeOptions, next)
}

// merge makes of live, nil if there is none, what the configuration wants, its
// managedFields up to date.
func (a *application) merge(live types.Object) (types.Object, error) {
	r, o := a.request, a.options
	next, err := a.server.fields[r.resource].Apply(live, a.configuration.Object, o.meta.Manager, o.force, o.meta.Time)
	if err != nil {
		return nil, err
	}
	// Of several attempts the last one counts.
	r.warnings = r.warnings[:a.warnings]
	if len(a.configuration.Repeated) > 0 {
		switch o.fieldValidation {
		case metav1.FieldValidationStrict:
			return nil, a.configuration.RefuseRepeated()
		case metav1.FieldValidationIgnore:
		default:
			r.warnings = append(r.warnings, a.configuration.Repeated...)
		}
	}
	return next, nil
}
