package server

import (
	"net/http"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

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
	cm, err := s.configMap(r, o, nil)
	if err != nil {
		return answer{}, err
	}
	if cm.Namespace != "" && cm.Namespace != r.namespace {
		return answer{}, types.NamespaceMismatch()
	}
	// "0" stands for no version, as it does in an update.
	if cm.ResourceVersion != "" && cm.ResourceVersion != "0" {
		return answer{}, types.CreateSetsVersion()
	}
	generate := cm.Name == "" && cm.GenerateName != ""
	dedupOwners(r, cm)
	for attempt := 1; ; attempt++ {
		if generate {
			cm.Name = generatedName(cm.GenerateName)
		}
		a, err := s.createOnce(r, o, cm)
		if generate && apierrors.IsAlreadyExists(err) && attempt < nameAttempts {
			continue
		}
		return a, err
	}
}

func (s *Server) createOnce(r *request, o writeOptions, cm *types.ConfigMap) (answer, error) {
	s.setOwned(r, cm)
	if errs := types.ValidateConfigMap(cm); len(errs) > 0 {
		return answer{}, types.Invalid(cm.Name, errs)
	}
	e, err := types.Encode(cm)
	if err != nil {
		return answer{}, err
	}
	if o.dryRun {
		if _, err := s.current(r.context(), r.namespace, cm.Name); !apierrors.IsNotFound(err) {
			return answer{}, s.exists(r, cm.Name, err)
		}
		return objectAnswer(http.StatusCreated, e, ""), nil
	}
	rev, err := s.commit(r.context(), 0, recordOf(keyOf(r.namespace, cm.Name), cm, e, o.meta))
	if _, taken := moved(err); taken {
		return answer{}, s.exists(r, cm.Name, nil)
	}
	if err != nil {
		return answer{}, err
	}
	return written(objectAnswer(http.StatusCreated, e, rev.String()), rev), nil
}

// written notes the version that a write made.
func written(a answer, rev store.Revision) answer {
	a.version = rev.String()
	return a
}

// setOwned fills in what the server alone decides about a new object.
func (s *Server) setOwned(r *request, cm *types.ConfigMap) {
	dropOwned(cm)
	cm.Namespace = r.namespace
	cm.UID = ktypes.UID(uuid.NewString())
	cm.CreationTimestamp = metav1.NewTime(s.clock().UTC()).Rfc3339Copy()
	cm.DeletionTimestamp = nil
	cm.DeletionGracePeriodSeconds = nil
	cm.ResourceVersion = ""
}

// exists words the refusal to create what is there, or passes on why that could
// not be seen.
func (s *Server) exists(r *request, name string, readErr error) error {
	if readErr != nil {
		return readErr
	}
	rec, err := s.current(r.context(), r.namespace, name)
	if apierrors.IsNotFound(err) {
		return types.AlreadyExists(name) // it was there when it counted
	}
	if err != nil {
		return err
	}
	if cm, err := decoded(rec); err == nil && cm.DeletionTimestamp != nil {
		return types.BeingDeleted(name)
	}
	return types.AlreadyExists(name)
}

// generatedName appends a random suffix as Kubernetes does, cutting the base to
// what a label value may hold.
func generatedName(base string) string {
	const suffix, longest = 5, 63
	return base[:min(len(base), longest-suffix)] + rand.String(suffix)
}

// patch answers PATCH, which is refused by name: a client must not take an
// ignored patch for a done one.
func (s *Server) patch(*request) (answer, error) {
	return answer{}, types.MethodNotAllowed("this server has no PATCH; GET the object, change it, and PUT it " +
		"with the metadata.resourceVersion that was read")
}
