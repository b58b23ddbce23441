package view

import (
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/cmctl/cmd/cmctl/internal/markers"
	"example.com/cmctl/pkg/types"
)

func usual(types.Conflict) markers.Marks {
	return markers.Marks{Mine: "yours", Base: "when you opened it", Theirs: "now, by cmctl-set"}
}

// flags is an object whose fields are base but for the changes: data[mode] is set
// by "data mode", with nothing to remove it.
func object(t *testing.T, text string) types.Document {
	t.Helper()
	doc, err := types.ParseDocument([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

const empty = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"}}`

func TestAConflictIsMarkedWhereItStands(t *testing.T) {
	const head = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"`
	for _, c := range []struct {
		name             string
		base, mine, live string
		format           string
		want             string
	}{
		{"one line, beside what stays",
			head + `},"data":{"a":"1","mode":"green","z":"9"}}`,
			head + `},"data":{"a":"2","mode":"red","z":"9"}}`,
			head + `},"data":{"a":"1","mode":"white","z":"8"}}`,
			"yaml", `apiVersion: v1
data:
  a: "2"
<<<<<<< yours
  mode: red
||||||| when you opened it
  mode: green
=======
  mode: white
>>>>>>> now, by cmctl-set
  z: "8"
kind: ConfigMap
metadata:
  name: flags
`},
		{"lines of a value",
			head + `},"data":{"app.conf":"one\ntwo\nthree\nfour\n"}}`,
			head + `},"data":{"app.conf":"one\nzwei\nthree\nfour\n"}}`,
			head + `},"data":{"app.conf":"one\ndeux\nthree\nquatre\n"}}`,
			"yaml", `apiVersion: v1
data:
  app.conf: |
    one
    <<<<<<< yours
    zwei
    ||||||| when you opened it
    two
    =======
    deux
    >>>>>>> now, by cmctl-set
    three
    quatre
kind: ConfigMap
metadata:
  name: flags
`},
		{"lines at the end of a value without a line feed",
			head + `},"data":{"app.conf":"one\ntwo"}}`,
			head + `},"data":{"app.conf":"one\nzwei"}}`,
			head + `},"data":{"app.conf":"one\ndeux"}}`,
			"yaml", `apiVersion: v1
data:
  app.conf: |-
    one
    <<<<<<< yours
    zwei
    ||||||| when you opened it
    two
    =======
    deux
    >>>>>>> now, by cmctl-set
kind: ConfigMap
metadata:
  name: flags
`},
		{"a label that one side removed, and a field of metadata",
			head + `,"labels":{"tier":"web"},"finalizers":["a/b"]}}`,
			head + `,"finalizers":["a/c"]}}`,
			head + `,"labels":{"tier":"db"},"finalizers":["a/d"]}}`,
			"yaml", `apiVersion: v1
kind: ConfigMap
metadata:
<<<<<<< yours
  finalizers:
  - a/c
||||||| when you opened it
  finalizers:
  - a/b
=======
  finalizers:
  - a/d
>>>>>>> now, by cmctl-set
  labels:
<<<<<<< yours
||||||| when you opened it
    tier: web
=======
    tier: db
>>>>>>> now, by cmctl-set
  name: flags
`},
		{"text on one side, bytes on the other",
			head + `},"data":{"k":"1"}}`,
			head + `},"data":{"k":"2"}}`,
			head + `},"binaryData":{"k":"AP8="}}`,
			"yaml", `apiVersion: v1
binaryData:
<<<<<<< yours
||||||| when you opened it
=======
  k: AP8=
>>>>>>> now, by cmctl-set
data:
<<<<<<< yours
  k: "2"
||||||| when you opened it
  k: "1"
=======
>>>>>>> now, by cmctl-set
kind: ConfigMap
metadata:
  name: flags
`},
		{"values that hold markers",
			head + `},"data":{"k":"<<<<<<< yours\n=========\n"}}`,
			head + `},"data":{"k":"mine"}}`,
			head + `},"data":{"k":"theirs"}}`,
			"yaml", `apiVersion: v1
data:
<<<<<<<<<< yours
  k: mine
|||||||||| when you opened it
  k: |
    <<<<<<< yours
    =========
==========
  k: theirs
>>>>>>>>>> now, by cmctl-set
kind: ConfigMap
metadata:
  name: flags
`},
		{"JSON, the last entry removed by one side",
			head + `},"data":{"a":"1","k":"1"}}`,
			head + `},"data":{"a":"1"}}`,
			head + `},"data":{"a":"1","k":"2"}}`,
			"json", `{
    "apiVersion": "v1",
    "data": {
        "a": "1",
<<<<<<< yours
||||||| when you opened it
        "k": "1"
=======
        "k": "2"
>>>>>>> now, by cmctl-set
    },
    "kind": "ConfigMap",
    "metadata": {
        "name": "flags"
    }
}
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := types.Merge(object(t, c.base), object(t, c.mine), object(t, c.live))
			got, err := Whole(c.format).Mark(m, usual)
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Text) != c.want {
				t.Errorf("got\n%s\nwant\n%s", got.Text, c.want)
			}
		})
	}
}

func TestAValueAloneIsMarkedAsAFile(t *testing.T) {
	value := func(s string) types.Document {
		doc := object(t, empty)
		doc.Set(types.Field{Section: "data", Key: "k"}, s)
		return doc
	}
	v := Key("k")
	got, err := v.Mark(types.Merge(value("a\nb\nc"), value("a\nmine\nc"), value("a\ntheirs\nC")), usual)
	want := "a\n<<<<<<< yours\nmine\nc\n||||||| when you opened it\nb\nc\n=======\ntheirs\nC\n>>>>>>> now, by cmctl-set\n"
	if err != nil || string(got.Text) != want {
		t.Errorf("%v\n%s", err, got.Text)
	}
	if got, err = v.Mark(types.Merge(value("a"), value("b"), object(t, empty)), usual); err != nil ||
		string(got.Text) != "<<<<<<< yours\nb\n||||||| when you opened it\na\n=======\n>>>>>>> now, by cmctl-set\n" {
		t.Errorf("%v\n%s", err, got.Text)
	}
}

// Whatever three versions of an object hold, their conflicts can be marked, and
// a person who takes one side everywhere saves that side's object; with a marker
// left the text is known to be unfinished.
func FuzzMarkedConflictsCanBeResolved(f *testing.F) {
	f.Add("app.conf", "a\nb\n", "a\nc\n", "d\nb\n", byte(0))
	f.Add("k", "", "x", " y\n z\n", byte(1))
	f.Add("k", "1\n2\n\n", "1\n\n3\n\n\n", "\n\n", byte(2))
	f.Add("k", "\t=======\n<<<<<<< yours", "a \nb\t\n", "\r\n", byte(3))
	f.Add("yes", "- a\n- b", "{", "\u2028 ...\n---\n", byte(7))
	f.Add(strings.Repeat("k", 200), "1", "2", "3", byte(8))
	f.Fuzz(func(t *testing.T, key, base, mine, live string, kind byte) {
		if len(types.ValidateKey(key)) > 0 || !utf8.ValidString(base) || !utf8.ValidString(mine) || !utf8.ValidString(live) {
			t.Skip()
		}
		field := types.Field{Section: "data", Key: key}
		if kind&4 != 0 {
			field.Section = "metadata.annotations"
		}
		sides := make([]types.Document, 3)
		for i, value := range []string{base, mine, live} {
			sides[i] = object(t, empty)
			sides[i].Set(types.Field{Section: "data", Key: "k~"}, value) // no key, but a neighbour
			switch {
			case value == "" && kind&1 != 0: // absent
			case kind&2 != 0 && i == 2 && kind&4 == 0:
				sides[i].Set(field, types.Binary(base64.StdEncoding.EncodeToString([]byte(value))))
			default:
				sides[i].Set(field, value)
			}
		}
		m := types.Merge(sides[0], sides[1], sides[2])
		if len(m.Conflicts) == 0 {
			return
		}
		for _, format := range formats {
			v := Whole(format)
			marked, err := v.Mark(m, usual)
			if err != nil {
				t.Fatalf("%s: %v\n%s", format, err, marked.Text)
			}
			left := markers.Left(string(marked.Text), marked.Size)
			if len(left) == 0 || len(left)%4 != 0 {
				t.Fatalf("%d markers in\n%s", len(left), marked.Text)
			}
			for s, want := range map[markers.Side]types.Side{markers.Mine: types.Mine, markers.Theirs: types.Theirs} {
				got, err := v.(wholeView).parse([]byte(markers.Take(string(marked.Text), marked.Size, s)))
				if err != nil {
					t.Fatalf("side %d: %v of\n%s", s, err, marked.Text)
				}
				for _, c := range m.Conflicts {
					value := sideOf(c, s)
					if c.Lines != nil {
						value = markers.Resolve(c.Lines, s)
					}
					if !types.SameValue(got.Fields()[c.Field], value) {
						t.Fatalf("side %v of %s is %q, want %q:\n%s", want, c.Field, got.Fields()[c.Field], value, marked.Text)
					}
				}
			}
		}
	})
}
