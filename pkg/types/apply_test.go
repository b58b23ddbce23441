package types_test

import (
	"fmt"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
)

// told is an apply in one line: what it changes, what it finds, what it keeps.
func told(a types.Applied) string {
	var parts []string
	for _, c := range a.Changes {
		parts = append(parts, fmt.Sprintf("change %s %v>%v", c.Field, c.From, c.To))
	}
	for _, d := range a.Drifts {
		kind := "conflict"
		if d.Reverts {
			kind = "drift"
		}
		parts = append(parts, fmt.Sprintf("%s %s %v:%v|%v", kind, d.Field, d.Base, d.File, d.Live))
	}
	for _, f := range a.Kept {
		parts = append(parts, "kept "+f.String())
	}
	return strings.Join(parts, "; ")
}

// apply compares with a record that holds everything; nil is no record.
func apply(base, file, live types.Document, side types.ApplySide) types.Applied {
	if base == nil {
		return types.Apply(nil, file, live, types.ApplyOptions{Side: side})
	}
	return types.Apply(types.RecordOf(base), file, live, types.ApplyOptions{Side: side})
}

// The table of the contract, for each map that it speaks of. A value is written
// into its map as the row has it; - is an absent key.
func TestApplyFollowsTheTable(t *testing.T) {
	const absent, none = "-", "no record"
	for _, section := range []struct{ name, field, open, end string }{
		{"data", "data[k]", `{"data":{`, `}}`},
		{"binaryData", "data[k]", `{"binaryData":{`, `}}`},
		{"labels", "metadata.labels[k]", `{"metadata":{"labels":{`, `}}}`},
		{"annotations", "metadata.annotations[k]", `{"metadata":{"annotations":{`, `}}}`},
	} {
		doc := func(value string) types.Document {
			switch value {
			case none:
				return nil
			case absent:
				value = ""
			case "null":
				value = `"k":null`
			default:
				value = `"k":"` + value + `"`
			}
			return parse(t, section.open+value+section.end)
		}
		for _, row := range []struct {
			name, base, file, live string
			want                   string // K stands for the field
			result                 string // of the key with NeitherSide
		}{
			{"F = L, unchanged", "MQ==", "MQ==", "MQ==", "", "MQ=="},
			{"F = L, both changed alike", "MQ==", "Mg==", "Mg==", "", "Mg=="},
			{"F = L, both removed", "MQ==", absent, absent, "", absent},
			{"F = L, both empty", "MQ==", "", "", "", ""},
			{"L = B: written", "MQ==", "Mg==", "MQ==", "change K MQ==>Mg==", "Mg=="},
			{"L = B: added", absent, "Mg==", absent, "change K <nil>>Mg==", "Mg=="},
			{"L = B: added empty", absent, "", absent, "change K <nil>>", ""},
			{"L = B: removed", "MQ==", absent, "MQ==", "change K MQ==><nil>", absent},
			{"L = B: removed by null", "MQ==", "null", "MQ==", "change K MQ==><nil>", absent},
			{"F and B lack it: kept", absent, absent, "MQ==", "kept K", "MQ=="},
			{"F = B, changed live", "MQ==", "MQ==", "Mg==", "drift K MQ==:MQ==|Mg==", "Mg=="},
			{"F = B, emptied live", "MQ==", "MQ==", "", "drift K MQ==:MQ==|", ""},
			{"F = B, removed live", "MQ==", "MQ==", absent, "drift K MQ==:MQ==|<nil>", absent},
			{"F = B = null, added live", "null", "null", "Mg==", "drift K <nil>:<nil>|Mg==", "Mg=="},
			{"all differ", "MQ==", "Mg==", "Mw==", "conflict K MQ==:Mg==|Mw==", "Mw=="},
			{"all differ, removed by the file", "MQ==", absent, "Mw==", "conflict K MQ==:<nil>|Mw==", "Mw=="},
			{"all differ, removed live", "MQ==", "Mg==", absent, "conflict K MQ==:Mg==|<nil>", absent},
			{"both added differently", absent, "Mg==", "Mw==", "conflict K <nil>:Mg==|Mw==", "Mw=="},
			{"no record, F = L: adopted", none, "MQ==", "MQ==", "", "MQ=="},
			{"no record, F differs", none, "MQ==", "Mg==", "conflict K <nil>:MQ==|Mg==", "Mg=="},
			{"no record, only in the file", none, "MQ==", absent, "conflict K <nil>:MQ==|<nil>", absent},
			{"no record, only live", none, absent, "MQ==", "kept K", "MQ=="},
			{"no record, null on nothing", none, "null", absent, "", absent},
			{"no record, null on a live key", none, "null", "MQ==", "conflict K <nil>:<nil>|MQ==", "MQ=="},
			{"null on nothing, again", "null", "null", absent, "", absent},
		} {
			t.Run(section.name+": "+row.name, func(t *testing.T) {
				base, file, live := doc(row.base), doc(row.file), doc(row.live)
				a := apply(base, file, live, types.NeitherSide)
				if got, want := told(a), strings.ReplaceAll(row.want, "K", section.field); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
				if !sameFields(a.Document.Fields(), doc(row.result).Fields()) {
					t.Errorf("the document is %s, want the key as %q", text(t, a.Document), row.result)
				}
				if kept := apply(base, file, live, types.LiveSide); !kept.Document.Equal(a.Document) || told(kept) != told(a) {
					t.Errorf("with the live side it is %s, %s", text(t, kept.Document), told(kept))
				}
				forced := apply(base, file, live, types.FileSide)
				want := file.Fields()
				if len(a.Kept) > 0 {
					want = live.Fields()
				}
				if !sameFields(forced.Document.Fields(), want) || len(forced.Drifts) != len(a.Drifts) {
					t.Errorf("with the file's side it is %s, %s", text(t, forced.Document), told(forced))
				}
				if changed := !sameFields(forced.Document.Fields(), live.Fields()); changed != (len(forced.Changes) > 0) {
					t.Errorf("changed: %t, and it tells %v", changed, forced.Changes)
				}
			})
		}
	}
}

func TestApplyTakesOtherFieldsAsAWhole(t *testing.T) {
	for _, c := range []struct {
		name, base, file, live, want string
	}{
		{"a move between the maps", `{"data":{"k":"1"}}`, `{"binaryData":{"k":"MQ=="}}`, `{"data":{"k":"1"}}`, `change data[k] 1>MQ==`},
		{"a move told by null", `{"data":{"k":"1"}}`, `{"data":{"k":null},"binaryData":{"k":"MQ=="}}`, `{"data":{"k":"1"}}`, `change data[k] 1>MQ==`},
		{"null in one map means the key", `{"data":{"k":"1"}}`, `{"data":{"k":null}}`, `{"binaryData":{"k":"MQ=="}}`, `conflict data[k] 1:<nil>|MQ==`},
		{"base64 spelled differently", `{"binaryData":{"k":"MQ=="}}`, `{"binaryData":{"k":"MQ\n=="}}`, `{"binaryData":{"k":"MQ=="}}`, ``},
		{"immutable", `{}`, `{"immutable":true}`, `{}`, `change immutable <nil>>true`},
		{"finalizers of another's", `{}`, `{}`, `{"metadata":{"finalizers":["f"]}}`, `kept metadata.finalizers`},
		{"an empty list, which no server keeps", `{"metadata":{"finalizers":[]}}`, `{"metadata":{"finalizers":[]}}`, `{}`, ``},
		{"the record itself", `{}`, `{"metadata":{"annotations":{"` + types.LastApplied + `":"x"}}}`, `{"metadata":{"annotations":{"` + types.LastApplied + `":"y"}}}`, ``},
		{"identity and server fields", `{}`, `{"metadata":{"name":"a","uid":"x","generation":1},"status":1}`, `{"metadata":{"name":"a","uid":"y","resourceVersion":"7"}}`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := apply(parse(t, c.base), parse(t, c.file), parse(t, c.live), types.NeitherSide)
			if got := told(a); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestApplyCarriesTheLiveVersionAndUnknownFields(t *testing.T) {
	live := parse(t, `{"future":[1],"metadata":{"resourceVersion":"7","uid":"u","annotations":{"`+types.LastApplied+`":"r"}},"data":{"a":"1"}}`)
	before := text(t, live)
	a := apply(parse(t, `{"data":{"a":"1"}}`), parse(t, `{"data":{"a":"2"}}`), live, types.NeitherSide)
	if got, want := text(t, a.Document), strings.Replace(before, `"a":"1"`, `"a":"2"`, 1); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if told(a) != `change data[a] 1>2; kept future` {
		t.Errorf("it tells %s", told(a))
	}
	if text(t, live) != before {
		t.Errorf("the live copy became %s", text(t, live))
	}
}
