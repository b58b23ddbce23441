// Package fieldmanager keeps metadata.managedFields: which writer set which
// field of an object, and when. It answers as kube-apiserver does.
//
//	m, err := fieldmanager.New(types.ConfigMaps)
//	m.Update(live, next, "kubectl-edit", time.Now()) // POST, PUT, and patches
//	next, err := m.Apply(live, applied, "helm", false, time.Now())
//
// The rules are those of apimachinery's managedfields, which does every Apply.
// An Update of a ConfigMap usually takes a shorter way to the same result: it
// compares the two objects directly and looks up who owned what in a cache.
package fieldmanager

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"example.com/cmctl/pkg/server/openapi"
	"example.com/cmctl/pkg/types"
)

// Manager keeps the managedFields of one resource's objects. It may be used by
// many goroutines at once.
type Manager struct {
	resource *types.Resource
	full     *managedfields.FieldManager
	owned    *ownedCache // nil for a resource whose updates all take the long way
}

// typeConverter is one for all managers: it is made from all definitions.
var typeConverter = sync.OnceValues(func() (managedfields.TypeConverter, error) {
	return managedfields.NewTypeConverter(openapi.Definitions(), false)
})

// New makes the manager of a resource's managedFields.
func New(r *types.Resource) (*Manager, error) {
	converter, err := typeConverter()
	if err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", r.Plural, err)
	}
	kind := r.GroupVersionKind()
	adapter := oneVersion{r}
	full, err := managedfields.NewDefaultFieldManager(converter, adapter, adapter, adapter,
		kind, kind.GroupVersion(), "", nobodysFields(r))
	if err != nil {
		return nil, fmt.Errorf("keep managedFields of %s: %w", r.Plural, err)
	}
	m := &Manager{resource: r, full: full}
	if r == types.ConfigMaps {
		m.owned = newOwnedCache(ownedCacheSize)
	}
	return m, nil
}

// nobodysFields filters out what no writer owns, because no writer can change
// it.
func nobodysFields(r *types.Resource) map[fieldpath.APIVersion]fieldpath.Filter {
	if r != types.Namespaces {
		return nil
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{
		types.APIVersion: fieldpath.NewExcludeSetFilter(fieldpath.NewSet(
			fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("status"))),
	}
}

// Update brings next's managedFields up to date: what differs from live now
// belongs to manager, with operation Update and the time now. Both have their
// type set; live is nil for a create, and isn't changed. next comes with the
// managedFields that the client sent: those of a create don't count, those of
// an update replace live's, an empty list or entry ends the tracking, and where
// there are none, or bad ones, live's go on. manager may be empty.
func (m *Manager) Update(live, next types.Object, manager string, now time.Time) {
	if live == nil {
		live = m.resource.New()
		next.SetManagedFields(nil)
	}
	if !m.updateDirectly(live, next, manager, now) {
		m.updateFully(live, next, manager, now)
	}
}

// updateFully is Update by apimachinery. now should be the present: with more
// than ten updaters apimachinery takes its own clock to find the oldest.
func (m *Manager) updateFully(live, next types.Object, manager string, now time.Time) {
	before := stampsOf(live, next)
	if _, err := m.full.Update(live, next, manager); err != nil {
		// No object that the API decodes leads here. As in Kubernetes, a write
		// doesn't fail for its entries: they stay as they are.
		next.SetManagedFields(live.GetManagedFields())
		return
	}
	next.SetManagedFields(restamp(next.GetManagedFields(), before, now))
	keepTimes(live, next)
}

// Apply merges the configuration that manager applies into live, which is nil
// where there is no object yet. It gives the object as it is to be, with its
// managedFields; neither argument is changed. An error is a StatusError: 409
// with the conflicting fields unless force is set, or 400 for a configuration
// of another type, with managedFields, or that doesn't fit the schema.
// managedFields of live that can't be read are an error without a Status.
func (m *Manager) Apply(live types.Object, applied *unstructured.Unstructured, manager string, force bool, now time.Time) (types.Object, error) {
	if live == nil {
		live = m.resource.New()
	}
	if err := managedfields.ValidateManagedFields(live.GetManagedFields()); err != nil {
		return nil, fmt.Errorf("read the managedFields of %s %q: %w", m.resource.Kind, live.GetName(), err)
	}
	before := stampsOf(live)
	out, err := m.full.Apply(live, applied, manager, force)
	if err != nil {
		return nil, refusal(err)
	}
	next, ok := out.(types.Object)
	if !ok {
		return nil, fmt.Errorf("apply %s %q: the merge gave a %T", m.resource.Kind, live.GetName(), out)
	}
	next.SetManagedFields(restamp(next.GetManagedFields(), before, now))
	keepTimes(live, next)
	return next, nil
}
