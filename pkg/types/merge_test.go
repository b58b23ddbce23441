package types_test

import (
	"fmt"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
)

// verdict is a merge in one line: what happened to which field.
func verdict(m types.Merged) string {
	var parts []string
	add := func(how string, c types.Change) {
		if c.Merged {
			how = "merged and " + how
		}
		parts = append(parts, fmt.Sprintf("%s %s %v>%v", how, c.Field, c.From, c.To))
	}
	for _, c := range m.Applied {
		add("applied", c)
	}
	for _, c := range m.Already {
		add("already", c)
	}
	for _, c := range m.Theirs {
		add("theirs", c)
	}
	for _, c := range m.Conflicts {
		parts = append(parts, fmt.Sprintf("conflict %s %v:%v|%v", c.Field, c.Base, c.Mine, c.Live))
	}
	return strings.Join(parts, "; ")
}

func TestMergeReappliesChanges(t *testing.T) {
	for _, c := range []struct {
		name, base, mine, live string
		verdict, want          string
	}{
		{"nobody changed anything", `{"data":{"a":"1"}}`, `{"data":{"a":"1"}}`, `{"data":{"a":"1"}}`, ``, `{"data":{"a":"1"}}`},
		{"mine alone", `{"data":{"a":"1"}}`, `{"data":{"a":"2"}}`, `{"data":{"a":"1"}}`, `applied data[a] 1>2`, `{"data":{"a":"2"}}`},
		{"theirs alone", `{"data":{"a":"1"}}`, `{"data":{"a":"1"}}`, `{"data":{"a":"2"}}`, `theirs data[a] 1>2`, `{"data":{"a":"2"}}`},
		{"each another key", `{"data":{"a":"1","b":"1"}}`, `{"data":{"a":"2","b":"1"}}`, `{"data":{"a":"1","b":"7"}}`,
			`applied data[a] 1>2; theirs data[b] 1>7`, `{"data":{"a":"2","b":"7"}}`},
		{"both alike", `{"data":{"a":"1"}}`, `{"data":{"a":"2"}}`, `{"data":{"a":"2"}}`, `already data[a] 1>2`, `{"data":{"a":"2"}}`},
		{"both differently", `{"data":{"a":"1"}}`, `{"data":{"a":"2"}}`, `{"data":{"a":"3"}}`, `conflict data[a] 1:2|3`, `{"data":{"a":"3"}}`},
		{"both added it differently", `{}`, `{"data":{"a":"2"}}`, `{"data":{"a":"3"}}`, `conflict data[a] <nil>:2|3`, `{"data":{"a":"3"}}`},
		{"a conflict beside a change", `{"data":{"a":"1","b":"1"}}`, `{"data":{"a":"2","b":"2"}}`, `{"data":{"a":"3","b":"1"}}`,
			`applied data[b] 1>2; conflict data[a] 1:2|3`, `{"data":{"a":"3","b":"2"}}`},

		{"they added what mine lacks", `{}`, `{}`, `{"data":{"a":"1"}}`, `theirs data[a] <nil>>1`, `{"data":{"a":"1"}}`},
		{"I removed it", `{"data":{"a":"1","b":"1"}}`, `{"data":{"b":"1"}}`, `{"data":{"a":"1","b":"1"}}`, `applied data[a] 1><nil>`, `{"data":{"b":"1"}}`},
		{"they removed it", `{"data":{"a":"1"}}`, `{"data":{"a":"1"}}`, `{}`, `theirs data[a] 1><nil>`, `{}`},
		{"both removed it", `{"data":{"a":"1"}}`, `{}`, `{}`, `already data[a] 1><nil>`, `{}`},
		{"I removed what they changed", `{"data":{"a":"1"}}`, `{}`, `{"data":{"a":"2"}}`, `conflict data[a] 1:<nil>|2`, `{"data":{"a":"2"}}`},
		{"I changed what they removed", `{"data":{"a":"1"}}`, `{"data":{"a":"2"}}`, `{}`, `conflict data[a] 1:2|<nil>`, `{}`},

		{"empty is not absent", `{}`, `{"data":{"a":""}}`, `{}`, `applied data[a] <nil>>`, `{"data":{"a":""}}`},
		{"emptied is not removed", `{"data":{"a":"1"}}`, `{"data":{"a":""}}`, `{}`, `conflict data[a] 1:|<nil>`, `{}`},
		{"null is absent", `{"data":{"a":"1"}}`, `{"data":{"a":null}}`, `{"data":{"a":"1"}}`, `applied data[a] 1><nil>`, `{}`},

		{"text becomes binary", `{"data":{"a":"1"}}`, `{"binaryData":{"a":"MQ=="}}`, `{"data":{"a":"1","b":"2"}}`,
			`applied data[a] 1>MQ==; theirs data[b] <nil>>2`, `{"binaryData":{"a":"MQ=="},"data":{"b":"2"}}`},
		{"binary becomes text", `{"binaryData":{"a":"MQ=="}}`, `{"data":{"a":"1"}}`, `{"binaryData":{"a":"MQ=="}}`,
			`applied data[a] MQ==>1`, `{"data":{"a":"1"}}`},
		{"a move against a change", `{"data":{"a":"1"}}`, `{"binaryData":{"a":"MQ=="}}`, `{"data":{"a":"2"}}`,
			`conflict data[a] 1:MQ==|2`, `{"data":{"a":"2"}}`},
		{"a move against a removal", `{"data":{"a":"1"}}`, `{"binaryData":{"a":"MQ=="}}`, `{}`, `conflict data[a] 1:MQ==|<nil>`, `{}`},
		{"base64 spelled differently is no change", `{"binaryData":{"a":"MQ=="}}`, `{"binaryData":{"a":"MQ=="}}`, `{"binaryData":{"a":"MQ\n=="}}`,
			``, `{"binaryData":{"a":"MQ\n=="}}`},
		{"nor one of mine", `{"binaryData":{"a":"MQ=="}}`, `{"binaryData":{"a":"MQ\n=="}}`, `{"binaryData":{"a":"Mg=="}}`,
			`theirs data[a] MQ==>Mg==`, `{"binaryData":{"a":"Mg=="}}`},
		{"both to the same bytes", `{}`, `{"binaryData":{"a":"MQ\n=="}}`, `{"binaryData":{"a":"MQ=="}}`, `already data[a] <nil>>MQ
==`, `{"binaryData":{"a":"MQ=="}}`},

		{"labels and annotations key by key", `{"metadata":{"labels":{"l":"1","m":"1"},"annotations":{"n":"1"}}}`,
			`{"metadata":{"labels":{"l":"2","m":"1"}}}`, `{"metadata":{"labels":{"l":"1","m":"7"},"annotations":{"n":"1","o":"7"}}}`,
			`applied metadata.labels[l] 1>2; applied metadata.annotations[n] 1><nil>; theirs metadata.labels[m] 1>7; theirs metadata.annotations[o] <nil>>7`,
			`{"metadata":{"annotations":{"o":"7"},"labels":{"l":"2","m":"7"}}}`},
		{"a list is one field", `{"metadata":{"finalizers":["a"]}}`, `{"metadata":{"finalizers":["a","b"]}}`, `{"metadata":{"finalizers":["a","c"]}}`,
			`conflict metadata.finalizers [a]:[a b]|[a c]`, `{"metadata":{"finalizers":["a","c"]}}`},
		{"a list changed by one side", `{"metadata":{"finalizers":["a"]}}`, `{"metadata":{"finalizers":["a","b"]}}`, `{"metadata":{"finalizers":["a"]}}`,
			`applied metadata.finalizers [a]>[a b]`, `{"metadata":{"finalizers":["a","b"]}}`},
		{"an emptied list is no list", `{"metadata":{"finalizers":["a"]}}`, `{"metadata":{"finalizers":[]}}`, `{"metadata":{"finalizers":["a"]}}`,
			`applied metadata.finalizers [a]><nil>`, `{"metadata":{}}`},
		{"unknown fields as a whole", `{"future":{"x":1}}`, `{"future":{"x":2}}`, `{"future":{"x":1},"other":[1]}`,
			`applied future map[x:1]>map[x:2]; theirs other <nil>>[1]`, `{"future":{"x":2},"other":[1]}`},
		{"big numbers exactly", `{"n":9007199254740993}`, `{"n":9007199254740992}`, `{"n":9007199254740993}`,
			`applied n 9007199254740993>9007199254740992`, `{"n":9007199254740992}`},
		{"immutable", `{}`, `{"immutable":true}`, `{}`, `applied immutable <nil>>true`, `{"immutable":true}`},
		{"false is not absent", `{}`, `{}`, `{"immutable":false}`, `theirs immutable <nil>>false`, `{"immutable":false}`},

		{"identity, version and server fields stay live's",
			`{"metadata":{"name":"n","uid":"u","resourceVersion":"1","managedFields":[1]},"status":1}`,
			`{"metadata":{"name":"x","uid":"y","generation":2},"status":2,"data":{"a":"1"}}`,
			`{"metadata":{"name":"n","uid":"u","resourceVersion":"2","managedFields":[2]},"status":3}`,
			`applied data[a] <nil>>1`,
			`{"data":{"a":"1"},"metadata":{"managedFields":[2],"name":"n","resourceVersion":"2","uid":"u"},"status":3}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			base, mine, live := parse(t, c.base), parse(t, c.mine), parse(t, c.live)
			m := types.Merge(base, mine, live)
			if got := verdict(m); got != c.verdict {
				t.Errorf("verdict\n  %s, want\n  %s", got, c.verdict)
			}
			if got := text(t, m.Document); got != c.want {
				t.Errorf("document\n  %s, want\n  %s", got, c.want)
			}
			if !base.Equal(parse(t, c.base)) || !mine.Equal(parse(t, c.mine)) || !live.Equal(parse(t, c.live)) {
				t.Error("an argument was changed")
			}
		})
	}
}

// The diff is against what the person was shown: what moved on since then is
// not undone (C06).
func TestMergeDoesNotUndoWhatMovedOn(t *testing.T) {
	base := parse(t, `{"data":{"a":"1","b":"1"}}`)
	mine := parse(t, `{"data":{"a":"9","b":"1"}}`)
	live := parse(t, `{"data":{"a":"1","b":"7","c":"7"}}`)
	if got := text(t, types.Merge(base, mine, live).Document); got != `{"data":{"a":"9","b":"7","c":"7"}}` {
		t.Errorf("got %s", got)
	}
}

func TestMergedDocumentSharesNothingWithItsSources(t *testing.T) {
	mine := parse(t, `{"future":{"x":["mine"]}}`)
	live := parse(t, `{"other":{"x":["live"]}}`)
	m := types.Merge(types.Document{}, mine, live)
	m.Document["future"].(map[string]any)["x"].([]any)[0] = "changed"
	m.Document["other"].(map[string]any)["x"].([]any)[0] = "changed"
	if text(t, mine) != `{"future":{"x":["mine"]}}` || text(t, live) != `{"other":{"x":["live"]}}` {
		t.Errorf("they became %s and %s", text(t, mine), text(t, live))
	}
}

func TestDiffListsChangesInOrder(t *testing.T) {
	from := parse(t, `{"immutable":true,"data":{"b":"1","gone":"1"},"metadata":{"labels":{"l":"1"},"resourceVersion":"1"}}`)
	to := parse(t, `{"data":{"b":"2","a":""},"metadata":{"labels":{"l":"2"},"annotations":{"n":"1"},"finalizers":["f"],"resourceVersion":"2"}}`)
	var got []string
	for _, c := range types.Diff(from, to) {
		got = append(got, fmt.Sprintf("%s %v>%v", c.Field, c.From, c.To))
	}
	want := "data[a] <nil>>; data[b] 1>2; data[gone] 1><nil>; metadata.labels[l] 1>2; metadata.annotations[n] <nil>>1; " +
		"metadata.finalizers <nil>>[f]; immutable true><nil>"
	if got := strings.Join(got, "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if changes := types.Diff(from, from.Clone()); changes != nil {
		t.Errorf("a document differs from its clone by %v", changes)
	}
}

func TestConflictErrorNamesTheFields(t *testing.T) {
	err := &types.ConflictError{Conflicts: []types.Conflict{{Field: dataField("mode")}, {Field: labelField("tier")}}}
	if got := err.Error(); got != "changed on both sides: data[mode], metadata.labels[tier]" {
		t.Errorf("got %s", got)
	}
}
