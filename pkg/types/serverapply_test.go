package types_test

import (
	"slices"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
)

// toldByServer is a server-side apply in one line.
func toldByServer(a types.AppliedByServer) string {
	text := told(a.Applied)
	for _, d := range a.Contested {
		text = strings.Join(slices.DeleteFunc([]string{text, "contested " + d.Field.String()}, func(s string) bool { return s == "" }), "; ")
	}
	return text
}

func TestApplyByServerUndoesNothingInSilence(t *testing.T) {
	const absent, none = "-", "no record"
	doc := func(value string) types.Document {
		switch value {
		case none:
			return nil
		case absent:
			return parse(t, `{"data":{}}`)
		}
		return parse(t, `{"data":{"k":"`+value+`"}}`)
	}
	nobody, ours, theirs, both := types.Owners{}, types.Owners{Ours: true}, types.Owners{Others: true}, types.Owners{Ours: true, Others: true}
	for _, row := range []struct {
		name, base, file, live string
		who                    types.Owners
		want                   string
	}{
		{"the same value", "1", "2", "2", theirs, ""},
		{"a new key", none, "1", absent, nobody, "change K <nil>>1"},
		{"a new key beside recorded ones", absent, "1", absent, nobody, "change K <nil>>1"},
		{"as it was applied", "1", "2", "1", ours, "change K 1>2"},
		{"as it was applied, and removed from the file", "1", absent, "1", ours, "change K 1><nil>"},
		{"removed from the file, and another's too", "1", absent, "1", both, "kept K"},
		{"another's, and not in the file", absent, absent, "1", theirs, "kept K"},
		{"another's, with another value", "1", "1", "2", theirs, "contested K"},
		{"another's too, with another value", "1", "2", "1", both, "contested K"},
		{"our manager's by another way: changed", "1", "1", "2", ours, "drift K 1:1|2"},
		{"our manager's by another way: changed, and the file too", "1", "3", "2", ours, "conflict K 1:3|2"},
		{"our manager's, and no record", none, "1", "2", ours, "conflict K <nil>:1|2"},
		{"our manager's key that the record doesn't name", absent, absent, "1", ours, "drift K <nil>:<nil>|1"},
		{"our manager's key, and no record at all", none, absent, "1", ours, "conflict K <nil>:<nil>|1"},
		{"our manager's key, changed and removed from the file", "1", absent, "2", ours, "conflict K 1:<nil>|2"},
		{"applied, and removed live", "1", "1", absent, nobody, "drift K 1:1|<nil>"},
		{"nobody's, with another value", none, "1", "2", nobody, "conflict K <nil>:1|2"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var base types.Base
			if b := doc(row.base); b != nil {
				base = types.RecordOf(b)
			}
			owners := func(types.Field) types.Owners { return row.who }
			got := types.ApplyByServer(base, doc(row.file), doc(row.live), owners, types.ServerApplyOptions{})
			if toldByServer(got) != strings.ReplaceAll(row.want, "K", "data[k]") {
				t.Errorf("got %q, want %q", toldByServer(got), row.want)
			}
		})
	}
}

// For all documents: what differs is changed, told or kept; what others own is
// not touched without force; and force leaves the file's side everywhere.
func TestApplyByServerAccountsForEachDifference(t *testing.T) {
	drawn(t, func(t *testing.T, draw func() types.Document) {
		base, file, live, own := types.DigestsOf(draw()), draw().WithoutNulls(), draw(), draw()
		owners := func(f types.Field) types.Owners {
			v := own.Fields()[f]
			return types.Owners{Ours: v != nil, Others: v == any("1")}
		}
		apply := func(o types.ServerApplyOptions) types.AppliedByServer {
			return types.ApplyByServer(base, file, live, owners, o)
		}
		plain, forced := apply(types.ServerApplyOptions{}), apply(types.ServerApplyOptions{Side: types.FileSide})
		for _, c := range types.Diff(live, file) {
			if c.Field.Bookkeeping() || c.Field.Section == "metadata" {
				continue
			}
			has := func(d types.Drift) bool { return d.Field == c.Field }
			n := 0
			for _, in := range []bool{
				slices.ContainsFunc(plain.Changes, func(d types.Change) bool { return d.Field == c.Field }),
				slices.ContainsFunc(plain.Drifts, has), slices.ContainsFunc(plain.Contested, has), slices.Contains(plain.Kept, c.Field),
			} {
				if in {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s is accounted for %d times: %s", c.Field, n, toldByServer(plain))
			}
			if f := file.Fields()[c.Field]; f != nil && !types.SameValue(forced.Document.Fields()[c.Field], f) {
				t.Errorf("%s has not the file's value in spite of force", c.Field)
			}
		}
		for _, c := range plain.Changes {
			if who := owners(c.Field); who.Others && c.From != nil {
				t.Errorf("%s is another's, and changed", c.Field)
			}
			if !base.Same(c.Field, c.From) {
				t.Errorf("%s was %v, which was not applied, and is changed", c.Field, c.From)
			}
		}
		if again := types.ApplyByServer(types.DigestsOf(file), file, forced.Document, owners, types.ServerApplyOptions{}); len(again.Changes)+len(again.Contested) > 0 {
			t.Errorf("a second run does %s", toldByServer(again))
		}
	})
}
