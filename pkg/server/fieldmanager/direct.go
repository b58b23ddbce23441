package fieldmanager

import (
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"example.com/cmctl/pkg/types"
)

// maxUpdaters is how many entries of operation Update Kubernetes keeps apart.
const maxUpdaters = 10

// updateDirectly is Update for the usual case. It answers false, and has done
// nothing, where the case is not usual: apimachinery knows the rest.
func (m *Manager) updateDirectly(live, next types.Object, manager string, now time.Time) bool {
	if m.owned == nil || !utf8.ValidString(manager) {
		return false
	}
	entries := next.GetManagedFields()
	if len(entries) == 0 {
		if entries != nil { // the client ends the tracking
			return false
		}
		entries = live.GetManagedFields()
	}
	owners, ok := m.owned.owners(entries)
	if !ok {
		return false
	}
	if len(owners) == 0 && live.GetUID() != "" {
		// Nobody tracks this object, and an update doesn't begin to.
		next.SetManagedFields(nil)
		return true
	}
	c := compare(live.(*types.ConfigMap), next.(*types.ConfigMap))
	if c.unusual {
		return false
	}
	owners = hand(owners, updater(manager), c, stamp(now))
	if updaters(owners) > maxUpdaters {
		return false
	}
	after, err := m.owned.entries(owners)
	if err != nil {
		return false
	}
	next.SetManagedFields(after)
	if c.none() {
		keepTimes(live, next)
	}
	return true
}

// identity tells owners apart. All have the same version.
type identity struct {
	manager, subresource string
	operation            metav1.ManagedFieldsOperationType
}

// updater is who writes by Update.
func updater(manager string) identity {
	if manager == "" {
		manager = "unknown"
	}
	return identity{manager: manager, operation: metav1.ManagedFieldsOperationUpdate}
}

// owner is an entry with its fields as a set.
type owner struct {
	identity
	time   *metav1.Time
	set    *fieldpath.Set
	fields *metav1.FieldsV1 // of set; nil where they aren't encoded yet
}

// hand takes what changed and what was removed from all owners, and gives what
// changed to the writer. The owners are changed in place; those who own nothing
// any more are gone.
func hand(owners []owner, writer identity, c *comparison, now *metav1.Time) []owner {
	kept := owners[:0]
	written := c.changed.Empty()
	for _, o := range owners {
		if o.identity == writer && !c.changed.Empty() {
			written = true
			o.time = now
			o.give(c)
		} else {
			o.take(&c.changed)
			o.take(&c.removed)
		}
		if !o.set.Empty() {
			kept = append(kept, o)
		}
	}
	if !written {
		kept = append(kept, owner{identity: writer, time: now, set: &c.changed})
	}
	return kept
}

// give adds what changed, and takes what was removed.
func (o *owner) give(c *comparison) {
	o.take(&c.removed)
	if !contains(o.set, &c.changed) {
		o.set, o.fields = o.set.Union(&c.changed), nil
	}
}

// take removes the fields that are in s. Sets are shared, so a changed one is
// made anew.
func (o *owner) take(s *fieldpath.Set) {
	if overlap(o.set, s) {
		o.set, o.fields = o.set.Difference(s), nil
	}
}

// contains says whether all of b is in a. It is quick where b is small, as
// what one write changes mostly is.
func contains(a, b *fieldpath.Set) bool {
	all := true
	b.Members.Iterate(func(pe fieldpath.PathElement) { all = all && a.Members.Has(pe) })
	b.Children.Iterate(func(pe fieldpath.PathElement) {
		in, ok := a.Children.Get(pe)
		all = all && ok && contains(in, below(b, pe))
	})
	return all
}

// overlap says whether any of b is in a.
func overlap(a, b *fieldpath.Set) bool {
	found := false
	b.Members.Iterate(func(pe fieldpath.PathElement) { found = found || a.Members.Has(pe) })
	b.Children.Iterate(func(pe fieldpath.PathElement) {
		in, ok := a.Children.Get(pe)
		found = found || ok && overlap(in, below(b, pe))
	})
	return found
}

// below is the part of a set under one of its children.
func below(s *fieldpath.Set, pe fieldpath.PathElement) *fieldpath.Set {
	parts, _ := s.Children.Get(pe)
	return parts
}

// updaters counts those who write by Update.
func updaters(owners []owner) int {
	n := 0
	for _, o := range owners {
		if o.operation == metav1.ManagedFieldsOperationUpdate {
			n++
		}
	}
	return n
}
