package types_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
	"example.com/cmctl/pkg/types/lines"
)

// valued is a document in which one field has a value; nil is none.
func valued(f types.Field, value any) types.Document {
	d := types.NewDocument("n", "flags")
	d.Set(f, value)
	return d
}

// file writes a line for each word.
func file(words string) string { return strings.Join(strings.Fields(words), "\n") + "\n" }

func TestTextsAreMergedByLines(t *testing.T) {
	for _, c := range []struct {
		name             string
		field            types.Field
		base, mine, live any
		want             any    // nil: a conflict
		told             string // applied, already, lines, whole, or the beginning of a reason
	}{
		{"each another line", dataField("f"), file("a b c"), file("A b c"), file("a b C"), file("A b C"), "applied"},
		{"in an annotation", annotationField("f"), file("a b c"), file("A b c"), file("a b C"), file("A b C"), "applied"},
		{"a line more and a line less", dataField("f"), file("a b c"), file("a b c d"), file("b c"), file("b c d"), "applied"},
		{"live has it all", dataField("f"), file("a b c"), file("A b c"), file("A b C"), file("A b C"), "already"},
		{"mine has it all", dataField("f"), file("a b c"), file("A b C"), file("a b C"), file("A b C"), "applied"},
		{"the same line", dataField("f"), file("a b c"), file("a x c"), file("a y c"), nil, "lines"},
		{"lines that touch", dataField("f"), file("a b c d"), file("a x c d"), file("a b y d"), nil, "lines"},
		{"nothing in common", dataField("f"), file("a b"), file("x b"), file("a y"), nil, "whole"},
		{"one line", dataField("f"), "a", "b", "c", nil, "whole"},
		{"no base", dataField("f"), nil, file("a b c"), file("a b d"), nil, "whole"},
		{"removed by them", dataField("f"), file("a b c"), file("A b c"), nil, nil, "whole"},
		{"bytes", dataField("f"), file("a b c"), file("A b c"), types.Binary("YQ=="), nil, "whole"},
		{"a label", labelField("f"), file("a b c"), file("A b c"), file("a b C"), nil, "whole"},
		{"the record of the last apply", annotationField(types.LastApplied), file("a b c"), file("A b c"), file("a b C"), nil, "whole"},
		{"parts that moved, and fit in more than one way", dataField("f"), file("0 1 2 3 4 5 6 7 8"), file("3 4 5 0 1 2 10"), file("3 11 5 6 7 8"), nil,
			"both changes fit together in more than one way"},
		{"line ends are kept", dataField("f"), "a\r\nb\nc", "A\r\nb\nc", "a\r\nb\nC", "A\r\nb\nC", "applied"},

		{"YAML", dataField("f.yaml"), "a: 1\nb: 1\nc: 1\n", "a: 2\nb: 1\nc: 1\n", "a: 1\nb: 1\nc: 2\n", "a: 2\nb: 1\nc: 2\n", "applied"},
		{"a key that both added, at either end", dataField("f.yaml"), "a: 1\nb: 1\n", "x: 1\na: 1\nb: 1\n", "a: 1\nb: 1\nx: 2\n", nil,
			`with both changes it would not be valid YAML: line 4: key "x" is already set on line 1`},
		{"under another ending nobody knows", dataField("f.txt"), "a: 1\nb: 1\n", "x: 1\na: 1\nb: 1\n", "a: 1\nb: 1\nx: 2\n",
			"x: 1\na: 1\nb: 1\nx: 2\n", "applied"},
		{"a key that both added to JSON", dataField("f.json"), "{\n\"a\": 1,\n\"b\": 1\n}\n", "{\n\"x\": 1,\n\"a\": 1,\n\"b\": 1\n}\n", "{\n\"a\": 1,\n\"x\": 1,\n\"b\": 1\n}\n", nil,
			`with both changes it would not be valid JSON: line 4: key "x" is already set on line 2`},
		{"a section between a key and its place", dataField("f.ini"), "[a]\nx=1\ny=1\n", "[a]\n[b]\nx=1\ny=1\n", "[a]\nx=1\ny=1\nz=1\n", nil,
			`with both changes it would not say as INI`},
		{"a list that moved", dataField("f.yaml"), "- a\n- b\n- c\n", "- x\n- a\n- b\n- c\n", "- a\n- b\n- d\n", nil,
			`with both changes it would not say as YAML`},
		{"a list that grew", dataField("f.yaml"), "- a\n- b\n- c\n", "- a\n- b\n- c\n- d\n", "- x\n- b\n- c\n", "- x\n- b\n- c\n- d\n", "applied"},
		{"what was broken may stay so", dataField("f.yaml"), "a: {\nb: 1\nc: 1\n", "a: {\nb: 2\nc: 1\nd: 1\n", "A: {\nb: 1\nc: 1\n", nil, "lines"},
		{"a key that one side removed and the other broken one has twice", dataField("f.yaml"), "a: 1\nb: 1\nx: 1\n", "a: 1\nb: 1\n", "x: 1\na: 1\nb: 1\nx: 1\n", nil,
			`with both changes it would not say as YAML`},
		{"broken on one side", dataField("f.yaml"), "a: 1\nb: 1\nc: 1\n", "a: {\nb: 1\nc: 1\n", "a: 1\nb: 1\nc: 2\n", "a: {\nb: 1\nc: 2\n", "applied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := types.Merge(valued(c.field, c.base), valued(c.field, c.mine), valued(c.field, c.live))
			told := "nothing"
			switch {
			case len(m.Applied) == 1 && m.Applied[0].Merged && types.SameValue(m.Applied[0].To, c.want):
				told = "applied"
			case len(m.Already) == 1 && m.Already[0].Merged && types.SameValue(m.Already[0].To, c.want):
				told = "already"
			case len(m.Conflicts) == 1 && m.Conflicts[0].Reason != "":
				told = m.Conflicts[0].Reason
			case len(m.Conflicts) == 1 && m.Conflicts[0].Lines != nil:
				told = "lines"
			case len(m.Conflicts) == 1:
				told = "whole"
			}
			if !strings.HasPrefix(told, c.told) {
				t.Errorf("told as %q, want %q", told, c.told)
			}
			want := c.want
			if want == nil {
				want = c.live
			}
			if got := m.Document.Fields()[c.field]; !types.SameValue(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// Of a conflict by its structure, all changes are to be decided, so that
// nobody takes its lines for done.
func TestAConflictOfStructureHasAllItsLinesOpen(t *testing.T) {
	f := dataField("f.yaml")
	m := types.Merge(valued(f, "a: 1\nb: 1\n"), valued(f, "x: 1\na: 1\nb: 1\n"), valued(f, "a: 1\nb: 1\nx: 2\n"))
	if len(m.Conflicts) != 1 || m.Conflicts[0].Lines.Conflicts() != 2 {
		t.Fatalf("got %+v", m.Conflicts)
	}
	mine := m.Conflicts[0].Lines.Resolve(func(r lines.Region) string { return r.Mine })
	if mine != "x: 1\na: 1\nb: 1\n" {
		t.Errorf("my side of all is %q", mine)
	}
}

func TestTakeDecidesForOneSide(t *testing.T) {
	for _, c := range []struct {
		name             string
		field            types.Field
		base, mine, live any
		ours, theirs     any
	}{
		{"whole values", dataField("f"), "1", "2", "3", "2", "3"},
		{"a removal against a change", dataField("f"), "1", nil, "3", nil, "3"},
		{"a change against a removal", dataField("f"), "1", "2", nil, "2", nil},
		{"the region alone", dataField("f"), file("a b c d e f g"), file("a b x d e f G"), file("A b y d e f g"), file("A b x d e f G"), file("A b y d e f G")},
		{"the region alone, by lines that overlap", dataField("f"), file("a b c d e"), file("a x c d E"), file("a y c d e"), file("a x c d E"), file("a y c d E")},
		{"all of a text that would be unsound", dataField("f.yaml"), "a: 1\nb: 1\nc: 1\n", "x: 1\na: 1\nb: 1\nc: 2\n", "a: 1\nb: 1\nc: 3\nx: 1\n",
			"x: 1\na: 1\nb: 1\nc: 2\n", "a: 1\nb: 1\nc: 3\nx: 1\n"},
		{"all of a text whose structure is in the way", dataField("f.yaml"), "a: 1\nb: 1\n", "x: 1\na: 1\nb: 1\n", "a: 1\nb: 1\nx: 2\n",
			"x: 1\na: 1\nb: 1\n", "a: 1\nb: 1\nx: 2\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := types.Merge(valued(c.field, c.base), valued(c.field, c.mine), valued(c.field, c.live))
			before := text(t, m.Document)
			for side, want := range map[types.Side]any{types.Mine: c.ours, types.Theirs: c.theirs} {
				taken := m.Take(side)
				if got := taken.Document.Fields()[c.field]; !types.SameValue(got, want) || len(taken.Conflicts) > 0 {
					t.Errorf("side %d: got %q, want %q", side, got, want)
				}
				if told := len(taken.Applied) + len(taken.Theirs); told != 1 {
					t.Errorf("side %d: told %d times", side, told)
				}
				// Made again on what was written, nothing is left to do.
				again := types.Merge(valued(c.field, c.base), valued(c.field, c.mine), taken.Document).Take(side)
				if len(again.Applied) > 0 {
					t.Errorf("side %d: made again, it changes %v", side, again.Applied)
				}
			}
			if text(t, m.Document) != before {
				t.Error("the merge was changed")
			}
		})
	}
}

// randomYAML writes maps within maps, and lists, with keys in random order.
func randomYAML(r *rand.Rand, b *strings.Builder, indent string, depth int) {
	for _, i := range r.Perm(5) {
		key := indent + string(rune('a'+i))
		switch n := r.IntN(10); {
		case n == 0:
		case n < 4 && depth > 0:
			b.WriteString(key + ":\n")
			b.WriteString(indent + "  self: 1\n")
			randomYAML(r, b, indent+"  ", depth-1)
		case n < 6:
			b.WriteString(key + ":\n")
			for range 1 + r.IntN(3) {
				fmt.Fprintf(b, "%s- %d\n", indent, r.IntN(5))
			}
		default:
			fmt.Fprintf(b, "%s: %d\n", key, r.IntN(3))
		}
	}
}

// edited has some lines changed, moved, removed or added.
func edited(r *rand.Rand, text string) string {
	all := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	for range 1 + r.IntN(3) {
		i, j := r.IntN(len(all)), r.IntN(len(all))
		switch r.IntN(4) {
		case 0:
			all[i] = strings.Replace(all[i], ": ", ": 1", 1)
		case 1:
			all[i] += fmt.Sprintf("%sn%d: 1\n", all[j][:len(all[j])-len(strings.TrimLeft(all[j], " "))], r.IntN(2))
		case 2:
			all[i], all[j] = all[j], all[i]
		default:
			all[i] = ""
		}
	}
	return strings.Join(all, "")
}

// paths is what a YAML text says, path by path; ok if it is sound.
func paths(text string) (out map[string]string, ok bool) {
	asJSON, err := types.YAMLToJSON([]byte(text))
	var value any
	if err != nil || json.Unmarshal(asJSON, &value) != nil {
		return nil, false
	}
	out = map[string]string{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, child := range value {
				walk(path+"."+key, child)
			}
		case []any:
			for i, child := range value {
				walk(fmt.Sprintf("%s[%d]", path, i), child)
			}
		default:
			out[path] = fmt.Sprint(value)
		}
	}
	walk("", value)
	return out, true
}

// What was sound on both sides is sound when it is merged, and has each side's
// changes at their paths.
func TestMergedYAMLHoldsTheChangesOfBothSides(t *testing.T) {
	t.Parallel()
	t.Logf("-property-seed=%d", *propertySeed)
	r := rand.New(rand.NewPCG(*propertySeed, 6))
	f := dataField("f.yaml")
	merged, refused := 0, 0
	for range 2000 {
		var b strings.Builder
		b.WriteString("first: 1\n")
		randomYAML(r, &b, "", 2)
		texts := [4]string{b.String(), edited(r, b.String()), edited(r, b.String())}
		m := types.Merge(valued(f, texts[0]), valued(f, texts[1]), valued(f, texts[2]))
		if len(m.Conflicts) > 0 && m.Conflicts[0].Reason != "" {
			refused++
		}
		if len(m.Applied) == 0 || !m.Applied[0].Merged {
			continue
		}
		texts[3] = m.Applied[0].To.(string)
		var says [4]map[string]string
		sound := true
		for i := range 3 {
			var ok bool
			says[i], ok = paths(texts[i])
			sound = sound && ok
		}
		if !sound {
			continue
		}
		merged++
		var ok bool
		if says[3], ok = paths(texts[3]); !ok {
			t.Fatalf("base\n%smine\n%stheirs\n%smerged to the unsound\n%s", texts[0], texts[1], texts[2], texts[3])
		}
		for _, side := range says[1:3] {
			for _, set := range says {
				for path := range set {
					if side[path] != says[0][path] && says[3][path] != side[path] {
						t.Fatalf("base\n%smine\n%stheirs\n%smerged to\n%s%s is lost", texts[0], texts[1], texts[2], texts[3], path)
					}
				}
			}
		}
	}
	t.Logf("%d merged, %d refused for what they say", merged, refused)
	if merged == 0 || refused == 0 {
		t.Errorf("%d merged, %d refused: the texts show nothing", merged, refused)
	}
}
