package types_test

import (
	"slices"
	"testing"

	"example.com/cmctl/pkg/types"
)

// checkApply holds for all documents, also for those that no server would take.
// A nil base is no record.
func checkApply(t *testing.T, base, file, live types.Document) {
	neither := apply(base, file, live, types.NeitherSide)
	forced := apply(base, file, live, types.FileSide)
	kept := apply(base, file, live, types.LiveSide)
	b, f, l := types.Document{}.Fields(), file.Fields(), live.Fields()
	if base != nil {
		b = base.Fields()
	}

	if !kept.Document.Equal(neither.Document) {
		t.Errorf("keeping the live side makes %s, leaving it open %s", text(t, kept.Document), text(t, neither.Document))
	}
	for _, a := range []types.Applied{neither, forced} {
		got := a.Document.Fields()
		for _, c := range a.Changes {
			if !types.SameValue(c.From, l[c.Field]) || !types.SameValue(c.To, f[c.Field]) || types.SameValue(c.From, c.To) {
				t.Errorf("change %v of %v to %v", c, l[c.Field], f[c.Field])
			}
			l[c.Field] = c.To
		}
		if !sameFields(got, l) {
			t.Errorf("%v makes of live %s", a.Changes, text(t, a.Document))
		}
		l = live.Fields()
	}
	for _, c := range neither.Changes {
		if types.SameValue(b[c.Field], f[c.Field]) {
			t.Errorf("%s was changed, though the file has what was last applied", c.Field)
		}
		if base == nil {
			t.Errorf("%s was changed without a record", c.Field)
		}
	}
	for _, field := range neither.Kept {
		if f[field] != nil || b[field] != nil {
			t.Errorf("%s is kept as nobody's, but file has %v and record %v", field, f[field], b[field])
		}
	}

	// Each difference is changed, told, or kept: none is passed over.
	for _, c := range types.Diff(live, file) {
		told := slices.ContainsFunc(neither.Changes, func(d types.Change) bool { return d.Field == c.Field }) ||
			slices.ContainsFunc(neither.Drifts, func(d types.Drift) bool { return d.Field == c.Field }) ||
			slices.Contains(neither.Kept, c.Field)
		if told == (c.Field == annotationField(types.LastApplied)) {
			t.Errorf("%s differs, and that it is told is %t", c.Field, told)
		}
	}

	// With the file's side, what is left to differ is what nobody applied, and
	// a second run has nothing to do.
	for _, c := range types.Diff(forced.Document, file) {
		if !slices.Contains(forced.Kept, c.Field) && c.Field != annotationField(types.LastApplied) {
			t.Errorf("%s is %v in spite of force, the file has %v", c.Field, c.From, c.To)
		}
	}
	again := apply(file, file, forced.Document, types.NeitherSide)
	if len(again.Changes)+len(again.Drifts) > 0 || !again.Document.Equal(forced.Document) {
		t.Errorf("a second run does %s", told(again))
	}
}

func TestApplyOverwritesNobodysChange(t *testing.T) {
	changes, drifts := 0, 0
	drawn(t, func(t *testing.T, draw func() types.Document) {
		base, file, live := draw(), draw(), draw()
		if base.ResourceVersion() == "3" {
			base = nil // no record
		}
		checkApply(t, base, file, live)
		a := apply(base, file, live, types.NeitherSide)
		changes, drifts = changes+len(a.Changes), drifts+len(a.Drifts)
	})
	if changes == 0 || drifts == 0 {
		t.Errorf("%d changes and %d disagreements: the documents show nothing", changes, drifts)
	}
}

// What was applied and not touched since can always be changed by the file.
func TestApplyOnItsOwnRecordNeedsNoForce(t *testing.T) {
	drawn(t, func(t *testing.T, draw func() types.Document) {
		first, second := draw(), draw()
		a := apply(first, second, first, types.NeitherSide)
		if len(a.Drifts) > 0 || !sameButRecord(a.Document, second) {
			t.Errorf("got %s: %s", text(t, a.Document), told(a))
		}
	})
}

func sameButRecord(a, b types.Document) bool {
	return !slices.ContainsFunc(types.Diff(a, b), func(c types.Change) bool { return c.Field != annotationField(types.LastApplied) })
}
