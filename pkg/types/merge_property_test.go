package types_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
)

var propertySeed = flag.Uint64("property-seed", rand.Uint64(), "seed of the property tests")

// drawn calls check with random documents until it has seen 10,000 cases.
func drawn(t *testing.T, check func(t *testing.T, draw func() types.Document)) {
	t.Parallel()
	t.Logf("-property-seed=%d", *propertySeed)
	r := rand.New(rand.NewPCG(*propertySeed, 0))
	for range 10_000 {
		var docs []types.Document
		check(t, func() types.Document {
			docs = append(docs, randomDocument(r))
			return docs[len(docs)-1]
		})
		if t.Failed() {
			for _, d := range docs {
				t.Log(text(t, d))
			}
			t.FailNow()
		}
	}
}

// randomDocument draws from few keys and values, so that two documents often
// agree, and as often do not.
func randomDocument(r *rand.Rand) types.Document {
	d := types.NewDocument("n", "flags")
	d.SetMeta("resourceVersion", pick(r, "1", "2", "3"))
	d.SetMeta("managedFields", []any{pick(r, "x", "y")})
	for _, key := range []string{"a", "b", "c"} {
		d.Set(dataField(key), pick(r, nil, nil, any(""), any("1"), any("MQ=="), any(types.Binary("")),
			any(types.Binary("MQ==")), any(types.Binary("MQ\n==")), any(types.Binary("no base64"))))
	}
	for _, f := range []types.Field{dataField("lines"), annotationField("lines")} {
		d.Set(f, pick(r, nil, any(randomLines(r, "a", "b", "c", "d")), any(randomLines(r, "a", "b", "c", "d"))))
	}
	d.Set(dataField("lines.yaml"), pick(r, nil, any(randomLines(r, "a: 1", "b: 1", "c: 1", "d: 1"))))
	for _, f := range []types.Field{labelField("l"), labelField("m"), annotationField("n"), annotationField(types.LastApplied)} {
		d.Set(f, pick(r, nil, any(""), any("1")))
	}
	d.Set(types.Field{Section: "metadata", Key: "finalizers"}, pick(r, nil, any([]any{}), any([]any{"f"}), any([]any{"f", "g"})))
	d.Set(types.Field{Key: "immutable"}, pick(r, nil, nil, any(true), any(false)))
	d.Set(types.Field{Key: "future"}, pick(r, nil, nil, any([]any{}), any(map[string]any{"x": "1"}), any(map[string]any{"x": "2"})))
	return d
}

// randomLines has most of the given lines, some of them changed, and new ones at
// the ends.
func randomLines(r *rand.Rand, from ...string) string {
	var b strings.Builder
	b.WriteString(pick(r, "", "", "", "x: 1\n"))
	for _, line := range from {
		b.WriteString(pick(r, line+"\n", line+"\n", line+"\n", line+"\n", line+"2\n", ""))
	}
	b.WriteString(pick(r, "", "", "", "x: 1\n", "z"))
	return b.String()
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// checkMerge holds for all documents, also for those that no server would take.
func checkMerge(t *testing.T, base, mine, live types.Document) {
	m := types.Merge(base, mine, live)
	b, i, l, got := base.Fields(), mine.Fields(), live.Fields(), m.Document.Fields()
	all := map[types.Field]bool{}
	for _, fields := range []map[types.Field]any{b, i, l, got} {
		for f := range fields {
			all[f] = true
		}
	}
	told, merged := map[types.Field]string{}, map[types.Field]bool{}
	for name, changes := range map[string][]types.Change{"applied": m.Applied, "already": m.Already, "theirs": m.Theirs} {
		for _, c := range changes {
			told[c.Field] += name
			merged[c.Field] = c.Merged
		}
	}
	for _, c := range m.Conflicts {
		told[c.Field] += "conflict"
	}
	for f := range all {
		if merged[f] {
			checkMergedText(t, f, told[f], b[f], i[f], l[f], got[f])
			continue
		}
		mineChanged, theirsChanged := !types.SameValue(b[f], i[f]), !types.SameValue(b[f], l[f])
		want, as := l[f], ""
		switch {
		case mineChanged && theirsChanged && types.SameValue(i[f], l[f]):
			as = "already"
		case mineChanged && theirsChanged:
			as = "conflict"
		case mineChanged:
			want, as = i[f], "applied"
		case theirsChanged:
			as = "theirs"
		}
		if !types.SameValue(got[f], want) || told[f] != as {
			t.Errorf("%s became %v and is told as %q; want %v as %q", f, got[f], told[f], want, as)
		}
	}
	if len(m.Applied) == 0 && !m.Document.Equal(live) {
		t.Errorf("nothing was applied, but live became %s", text(t, m.Document))
	}

	if same := types.Merge(base, base, live); len(same.Applied)+len(same.Conflicts) > 0 || !same.Document.Equal(live) {
		t.Errorf("an edit that changed nothing makes of live %s", text(t, same.Document))
	}
	alone := types.Merge(base, mine, base)
	if len(alone.Conflicts)+len(alone.Theirs) > 0 || !sameFields(alone.Document.Fields(), i) {
		t.Errorf("an edit that nobody interfered with makes %s", text(t, alone.Document))
	}
	// Made again on its own result, an edit finds nothing left to do: so a
	// write whose answer was lost can be told from one that did not land.
	again := types.Merge(base, mine, m.Document)
	if len(again.Applied) > 0 || len(again.Conflicts) != len(m.Conflicts) || !again.Document.Equal(m.Document) {
		t.Errorf("made again, it makes %s of %s", text(t, again.Document), text(t, m.Document))
	}

	other := types.Merge(base, live, mine)
	if len(other.Conflicts) != len(m.Conflicts) {
		t.Errorf("conflicts %v one way, %v the other", m.Conflicts, other.Conflicts)
	}
	if len(m.Conflicts) == 0 && !sameFields(other.Document.Fields(), got) {
		t.Errorf("one way makes %s, the other %s", text(t, m.Document), text(t, other.Document))
	}
	checkTake(t, base, mine, m)
}

// checkTake decides all conflicts for a side.
func checkTake(t *testing.T, base, mine types.Document, m types.Merged) {
	ours, theirs := m.Take(types.Mine), m.Take(types.Theirs)
	if told := len(ours.Applied) + len(ours.Theirs); len(ours.Conflicts) > 0 || told != len(m.Applied)+len(m.Theirs)+len(m.Conflicts) {
		t.Errorf("of %d conflicts, %d are left and %d told of", len(m.Conflicts), len(ours.Conflicts), told)
	}
	for side, taken := range map[types.Side]types.Merged{types.Mine: ours, types.Theirs: theirs} {
		if again := types.Merge(base, mine, taken.Document).Take(side); len(again.Applied) > 0 {
			t.Errorf("side %d: made again, %v is left to do", side, again.Applied)
		}
	}
}

// checkMergedText counts lines: what either side added is there, and what both
// lack is not. That no line's removal is dropped is for pkg/types/lines to show.
func checkMergedText(t *testing.T, f types.Field, told string, base, mine, live, got any) {
	texts := make([]map[string]int, 4)
	for i, v := range []any{base, mine, live, got} {
		text, ok := v.(string)
		if !ok || types.SameValue(mine, base) || types.SameValue(live, base) {
			t.Errorf("%s is told as merged from %v, %v and %v", f, base, mine, live)
			return
		}
		texts[i] = map[string]int{}
		for line := range strings.SplitAfterSeq(text, "\n") {
			texts[i][line]++
		}
	}
	if told != "applied" && (told != "already" || !types.SameValue(got, live)) {
		t.Errorf("%s is told as merged and %q", f, told)
	}
	for i, side := range texts[1:3] {
		for line := range side {
			if texts[0][line] == 0 && texts[3][line] < side[line] {
				t.Errorf("%s: side %d added %q, and it is not in %q", f, i, line, got)
			}
		}
	}
	for line := range texts[3] {
		if texts[1][line] == 0 && texts[2][line] == 0 {
			t.Errorf("%s: neither side has %q, and it is in %q", f, line, got)
		}
	}
}

func TestMergeDropsNoChange(t *testing.T) {
	merged, conflicts, texts := 0, 0, 0
	drawn(t, func(t *testing.T, draw func() types.Document) {
		base, mine, live := draw(), draw(), draw()
		checkMerge(t, base, mine, live)
		m := types.Merge(base, mine, live)
		merged += len(m.Applied) + len(m.Theirs) + len(m.Already)
		conflicts += len(m.Conflicts)
		for _, c := range m.Applied {
			if c.Merged {
				texts++
			}
		}
	})
	if merged == 0 || conflicts == 0 || texts == 0 {
		t.Errorf("%d changes, %d texts merged by lines and %d conflicts: the documents show nothing", merged, texts, conflicts)
	}
}

// Changes of different fields never get into each other's way.
func TestMergeOfDisjointChangesKeepsAll(t *testing.T) {
	drawn(t, func(t *testing.T, draw func() types.Document) {
		base, a, b := draw(), draw(), draw()
		mine, live := base.Clone(), base.Clone()
		for n, c := range types.Diff(base, a) {
			if n%2 == 0 {
				mine.Set(c.Field, c.To)
			}
		}
		touched := types.Diff(base, mine)
		for _, c := range types.Diff(base, b) {
			if !slices.ContainsFunc(touched, func(t types.Change) bool { return t.Field == c.Field }) {
				live.Set(c.Field, c.To)
			}
		}
		m := types.Merge(base, mine, live)
		want := live.Fields()
		for _, c := range touched {
			want[c.Field] = c.To
		}
		if len(m.Conflicts) > 0 || !sameFields(m.Document.Fields(), want) {
			t.Errorf("got %s with conflicts %v", text(t, m.Document), m.Conflicts)
		}
	})
}

// The diff of two documents, made on the first, gives the second.
func TestDiffLeadsFromOneToTheOther(t *testing.T) {
	drawn(t, func(t *testing.T, draw func() types.Document) {
		from, to := draw(), draw()
		got := from.Clone()
		for _, c := range types.Diff(from, to) {
			got.Set(c.Field, c.To)
		}
		if !sameFields(got.Fields(), to.Fields()) || len(types.Diff(got, to)) > 0 {
			t.Errorf("got %s", text(t, got))
		}
	})
}

// FuzzMerge re-applies edits between documents that nobody has checked: it
// must not panic, and must drop nothing of what can be taken apart.
func FuzzMerge(f *testing.F) {
	for _, seed := range [][3]string{
		{`{}`, `{"data":{"a":"1"}}`, `{"data":{"a":"2"}}`},
		{`{"data":{"k":"1"}}`, `{"binaryData":{"k":"MQ=="}}`, `{"data":{"k":null},"binaryData":{"k":"MQ\n=="}}`},
		{`{"data":5}`, `{"metadata":"x"}`, `{"metadata":null,"data":[]}`},
		{`{"metadata":{"labels":5}}`, `{"metadata":{"labels":{"l":"1"}}}`, `{"metadata":{"labels":[],"annotations":{"a":{}}}}`},
		{`{"binaryData":{"k":5}}`, `{"data":{"k":"1"},"binaryData":{"k":[]}}`, `{"binaryData":{"k":{}}}`},
		{`{"metadata":{"finalizers":[]}}`, `{"metadata":{"finalizers":["a"]}}`, `{"metadata":{"finalizers":null}}`},
		{`{"x":1.0}`, `{"x":1}`, `{"x":1e0,"":{}}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]), []byte(seed[2]))
	}
	f.Fuzz(func(t *testing.T, base, mine, live []byte) {
		var docs [3]types.Document
		for i, in := range [][]byte{base, mine, live} {
			var err error
			if docs[i], err = types.ParseDocument(in); err != nil {
				return
			}
		}
		before := text(t, docs[0]) + text(t, docs[1]) + text(t, docs[2])
		checkMerge(t, docs[0], docs[1], docs[2])
		checkApply(t, docs[0], docs[1], docs[2])
		checkApply(t, nil, docs[1], docs[2])
		if text(t, docs[0])+text(t, docs[1])+text(t, docs[2]) != before {
			t.Error("an argument was changed")
		}
	})
}
