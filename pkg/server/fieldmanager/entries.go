package fieldmanager

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/types"
)

// stamps are the times of entries, by identity: apimachinery keeps the pointer
// of a time that it doesn't renew.
type stamps map[*metav1.Time]bool

// stampsOf are the times that the objects' entries have.
func stampsOf(objects ...types.Object) stamps {
	s := stamps{}
	for _, o := range objects {
		for _, e := range o.GetManagedFields() {
			s[e.Time] = true
		}
	}
	return s
}

// stamp is the time of a write, in the precision that entries have.
func stamp(now time.Time) *metav1.Time {
	return &metav1.Time{Time: now.UTC().Truncate(time.Second)}
}

// restamp gives the time now to the entries whose time is new, and puts all
// back in order. An entry that was added without a change of the object has no
// time, and stays so.
func restamp(entries []metav1.ManagedFieldsEntry, before stamps, now time.Time) []metav1.ManagedFieldsEntry {
	for i := range entries {
		if t := entries[i].Time; t != nil && !before[t] {
			entries[i].Time = stamp(now)
		}
	}
	sortEntries(entries)
	return entries
}

// sortEntries sorts by operation, time and manager, as Kubernetes does.
func sortEntries(entries []metav1.ManagedFieldsEntry) {
	slices.SortFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(
			cmp.Compare(a.Operation, b.Operation),
			cmp.Compare(seconds(a.Time), seconds(b.Time)),
			cmp.Compare(a.Manager, b.Manager),
			cmp.Compare(a.APIVersion, b.APIVersion),
			cmp.Compare(a.Subresource, b.Subresource),
		)
	})
}

func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}

// keepTimes takes the times of entries back where they are all that differs
// between live and next, so that such a write is none.
func keepTimes(live, next types.Object) {
	before, after := live.GetManagedFields(), next.GetManagedFields()
	if len(before) != len(after) {
		return
	}
	renewed := false
	for i := range after {
		a, b := before[i], after[i]
		renewed = renewed || !a.Time.Equal(b.Time)
		a.Time, b.Time = nil, nil
		if !reflect.DeepEqual(a, b) {
			return
		}
	}
	if renewed && sameBesidesManagedFields(live, next) {
		next.SetManagedFields(before)
	}
}

// sameBesidesManagedFields compares also without versions, which a client may
// leave out.
func sameBesidesManagedFields(live, next types.Object) bool {
	return equality.Semantic.DeepEqualWithNilDifferentFromEmpty(bare(live), bare(next))
}

// bare is a shallow copy without managedFields and resourceVersion.
func bare(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.ConfigMap:
		c := *o
		c.ManagedFields, c.ResourceVersion = nil, ""
		return &c
	case *types.Namespace:
		c := *o
		c.ManagedFields, c.ResourceVersion = nil, ""
		return &c
	}
	return o
}
