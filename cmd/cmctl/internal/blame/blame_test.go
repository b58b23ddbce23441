package blame_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/blame"
	"example.com/cmctl/pkg/types"
)

func field(key string) types.Field { return types.Field{Section: "data", Key: key} }

// version is an object whose data are those, key and value in turn.
func version(data ...string) types.Document {
	d := types.NewDocument("team-a", "flags")
	for i := 0; i < len(data); i += 2 {
		d.Set(field(data[i]), data[i+1])
	}
	return d
}

func entry(n int, verb string) types.HistoryEntry {
	return types.HistoryEntry{
		ResourceVersion: fmt.Sprint(n), Verb: verb, FieldManager: fmt.Sprintf("tool-%d", n), User: "ann",
		Time: types.HistoryTime{Time: time.Unix(int64(n), 0)},
	}
}

// told words an origin: field, tool, version, and whether it is the very write.
func told(o blame.Origin) string {
	text := fmt.Sprintf("%s %s %s", o.Field.Key, o.Manager, o.Version)
	if !o.Exact {
		text += " or before"
	}
	return text
}

func TestEachFieldIsFromTheVersionThatChangedItLast(t *testing.T) {
	versions := []types.Document{ // newest first
		version("a", "3", "b", "1", "c", "1"),
		version("a", "2", "b", "1", "c", "1"),
		version("a", "2", "b", "1", "gone", "1"),
		version("a", "1", "b", "1"),
	}
	for name, c := range map[string]struct {
		begin bool
		want  []string
	}{
		"all the way to its creation": {true, []string{"a tool-4 4", "b tool-1 1", "c tool-3 3"}},
		"not all the way":             {false, []string{"a tool-4 4", "b  1 or before", "c tool-3 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := blame.New(versions[0])
			for i, v := range versions {
				b.Add(entry(len(versions)-i, "update"), v)
			}
			if c.begin {
				b.Begin()
			}
			if b.Complete() != c.begin {
				t.Errorf("complete is %v", b.Complete())
			}
			var got []string
			for _, o := range b.Origins() {
				got = append(got, told(o))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

const managed = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags","namespace":"team-a",
	"labels":{"tier":"web"},"annotations":{"note":"x"},"managedFields":[
	{"manager":"first","time":"2026-01-01T00:00:00Z","fieldsV1":{"f:data":{".":{},"f:a":{},"f:both":{}},"f:metadata":{"f:labels":{"f:tier":{}}}}},
	{"manager":"second","time":"2026-01-02T00:00:00Z","fieldsV1":{"f:data":{"f:both":{}},"f:binaryData":{"f:bin":{}}}},
	{"manager":"broken","fieldsV1":7}, 9]},
	"data":{"a":"1","both":"2","nobody":"3"},"binaryData":{"bin":"aGk="}}`

func TestWithoutHistoryManagedFieldsTell(t *testing.T) {
	live, err := types.ParseDocument([]byte(managed))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range blame.New(live).Origins() {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", o.Field, o.Manager, o.Time.Format(time.DateOnly))))
		if o.Exact || o.Version != "" {
			t.Errorf("%s passes for exact", o.Field)
		}
	}
	want := []string{"data[a] first 2026-01-01", "data[bin] second 2026-01-02", "data[both] second 2026-01-02", "data[nobody]  0001-01-01",
		"metadata.labels[tier] first 2026-01-01", "metadata.annotations[note]  0001-01-01"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestOnlyOneField(t *testing.T) {
	b := blame.New(version("a", "1", "b", "1"))
	if !b.Only(field("b")) {
		t.Error("b is there")
	}
	if got := b.Origins(); len(got) != 1 || got[0].Field != field("b") {
		t.Errorf("got %v", got)
	}
	if blame.New(version("a", "1")).Only(field("b")) {
		t.Error("b is not there")
	}
}

// Where each line tells the version that it was written in, blame must say the
// same, for any order of lines that are added and removed.
func TestLinesAreFromTheVersionThatWroteThem(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	for range 200 {
		var lines []string
		var versions []types.Document // oldest first
		for n := 1; n <= 1+r.IntN(8); n++ {
			for range r.IntN(3) {
				if len(lines) > 0 {
					lines = slices.Delete(lines, 0, 1)
				}
			}
			for i := range 1 + r.IntN(3) {
				lines = slices.Insert(lines, r.IntN(len(lines)+1), fmt.Sprintf("%d:%d", n, i))
			}
			versions = append(versions, version("text", strings.Join(lines, "\n")+"\n"))
		}
		live := versions[len(versions)-1]
		l := blame.NewLines(live, field("text"))
		for i, v := range slices.Backward(versions) {
			l.Add(entry(i+1, "update"), v)
		}
		l.Begin()
		for _, line := range l.Origins() {
			if want, _, _ := strings.Cut(line.Text, ":"); line.Version != want || !line.Exact {
				t.Fatalf("seed %d: line %q is said to be from version %s\n%v", seed, line.Text, line.Version, versions)
			}
		}
		if !l.Complete() || len(l.Origins()) != len(lines) {
			t.Fatalf("seed %d: %d lines of %d", seed, len(l.Origins()), len(lines))
		}
	}
}

func TestLinesWithoutAllVersions(t *testing.T) {
	live := version("text", "a\nb")
	l := blame.NewLines(live, field("text"))
	l.Add(entry(9, "update"), live)
	l.Add(entry(8, "update"), version("text", "a\n"))
	got := l.Origins()
	if len(got) != 2 || got[0].Exact || got[0].Version != "8" || got[0].Manager != "" || !got[1].Exact || got[1].Version != "9" {
		t.Errorf("got %+v", got)
	}
	if got := blame.NewLines(version("text", ""), field("text")).Origins(); len(got) != 0 {
		t.Errorf("an empty value has lines: %v", got)
	}
}
