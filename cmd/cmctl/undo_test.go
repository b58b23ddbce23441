package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
)

// An undo that meets another write on the way is made again on what is there then, or
// is a conflict.
func TestAnUndoMeetsAnotherWrite(t *testing.T) {
	for _, c := range []struct {
		name  string
		other []string // what somebody else does before the undo is written
		args  []string
		code  int
		told  string
		holds []string
	}{
		{"another key stays", []string{"set", "app", "b=3"}, nil,
			0, `kept theirs:   data[b]: "2" -> "3"`, []string{`a: "1"`, `b: "3"`}},
		{"the same key is a conflict", []string{"set", "app", "a=3", "--field-manager=bob"}, nil,
			exitConflict, `"3"   (by bob `, []string{`a: "3"`}},
		{"the same key, decided for the undo", []string{"set", "app", "a=3"}, []string{"--on-conflict=ours"},
			0, `ours taken:    data[a]: "1", not "3"`, []string{`a: "1"`}},
		{"the same key, decided for the other", []string{"set", "app", "a=3"}, []string{"--on-conflict=theirs"},
			0, `theirs taken:  data[a]: "3", not "1"`, []string{`a: "3"`}},
		{"undone by somebody else", []string{"undo", "app"}, nil,
			0, "nothing to take back: all of it is so already", []string{`a: "1"`}},
		{"any write, where none may come in between", []string{"set", "app", "b=3"}, []string{"--on-conflict=fail"},
			exitConflict, "nothing was written", []string{`a: "2"`, `b: "3"`}},
		{"deleted and made anew", []string{"replace", "app"}, nil,
			exitConflict, "deleted and recreated", []string{`a: "2"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.past("create", "app", "--from-literal=a=1", "--from-literal=b=2")
			b.past("set", "app", "a=2")
			b.meddle = once("PUT", func() {
				if c.other[0] == "replace" {
					b.past("delete", "app")
					b.past("create", "app", "--from-literal=a=2", "--from-literal=b=2")
					return
				}
				b.past(c.other...)
			})
			e := b.cmctl(append([]string{"undo", "app"}, c.args...)...)
			if e.code != c.code || !strings.Contains(e.err, c.told) {
				t.Errorf("it ended with %d, want %d and %q:\n%s", e.code, c.code, c.told, e.err)
			}
			b.holds(c.holds...)
		})
	}
}

// What is done again by somebody while the answer to an undo is lost is not undone a
// second time.
func TestAnUndoIsNotDoneTwice(t *testing.T) {
	b := newBench(t)
	b.past("create", "app", "--from-literal=a=1")
	b.past("set", "app", "a=2")
	b.answered = func(r *http.Response) {
		if r.Request.Method == http.MethodPut {
			b.answered = nil
			b.past("set", "app", "a=2")
			panic(http.ErrAbortHandler)
		}
	}
	if e := b.cmctl("undo", "app"); e.code != 0 || !strings.Contains(e.err, "it did") {
		t.Errorf("it ended with %d:\n%s", e.code, e.err)
	}
	b.holds(`a: "2"`)
}

// Another object of the name, made between the reading of the history and that of the
// object, is not what was to be undone.
func TestAnUndoIsOfOneObject(t *testing.T) {
	b := newBench(t)
	b.past("create", "app", "--from-literal=a=1")
	b.past("set", "app", "a=2")
	b.meddle = once("GET", func() {
		b.past("delete", "app")
		b.past("create", "app", "--from-literal=a=2")
	})
	if e := b.cmctl("undo", "app"); e.code != exitConflict || !strings.Contains(e.err, "nothing was written") {
		t.Errorf("it ended with %d:\n%s", e.code, e.err)
	}
	b.holds(`a: "2"`)
}

// A name that was taken meanwhile is not written to, and a lost answer brings nothing
// back twice.
func TestBringingBackMeetsAnother(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		t.Run("made anew before the "+method, func(t *testing.T) {
			b := newBench(t)
			b.past("create", "app", "--from-literal=a=1")
			b.past("delete", "app")
			b.meddle = once(method, func() { b.past("create", "app", "--from-literal=a=new") })
			e := b.cmctl("undo", "app")
			if e.code != exitConflict || !strings.Contains(e.err, "one of this name was made meanwhile") {
				t.Errorf("it ended with %d:\n%s", e.code, e.err)
			}
			b.holds("a: new")
		})
	}
	t.Run("lost answer", func(t *testing.T) {
		b := newBench(t)
		b.past("create", "app", "--from-literal=a=1")
		b.past("delete", "app")
		b.answered = func(r *http.Response) {
			if r.Request.Method == http.MethodPost {
				b.answered = nil
				panic(http.ErrAbortHandler)
			}
		}
		if e := b.cmctl("undo", "app"); e.code != 0 || !strings.Contains(e.out, "restored") {
			t.Errorf("it ended with %d:\n%s", e.code, e.err)
		}
		b.holds(`a: "1"`)
	})
}

// What the server gave up while it was looked for is said to be gone, and nothing is
// written.
func TestAnUndoOfWhatIsNotKept(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		keep int // how many of the newest versions are in the history
		told string
	}{
		{"the newest, and nothing before it", nil, 1, "the version before 3 is no longer kept"},
		{"one whose version before is gone", []string{"--change=2"}, 2, "the version before 2 is no longer kept"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.past("create", "app", "--from-literal=a=1")
			b.past("set", "app", "a=2")
			b.past("set", "app", "a=3")
			b.meddle = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/history") || r.URL.RawQuery != "" {
					return false
				}
				list := `{"kind":"ConfigMapHistory","apiVersion":"v1","metadata":{"name":"app","namespace":"default","resourceVersion":"3"},"items":[`
				for i := range c.keep {
					list += fmt.Sprintf(`%s{"resourceVersion":"%d","uid":"u","verb":"update","time":"2024-05-06T12:00:00Z"}`, strings.Repeat(",", min(i, 1)), 3-i)
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, list+"]}")
				return true
			}
			e := b.cmctl(append([]string{"undo", "app"}, c.args...)...)
			if e.code != exitNotFound || !strings.Contains(e.err, c.told) {
				t.Errorf("it ended with %d, want %q:\n%s", e.code, c.told, e.err)
			}
			if e := b.cmctl("history", "app"); !strings.Contains(e.err, "older ones are no longer kept") {
				t.Errorf("the history ends with\n%s", e.err)
			}
			b.holds(`a: "3"`)
		})
	}
}

func TestAuthors(t *testing.T) {
	for e, want := range map[types.HistoryEntry]string{
		{FieldManager: "flux"}:                            "flux",
		{FieldManager: "flux-sync"}:                       "flux-sync",
		{FieldManager: "cmctl-edit"}:                      "cmctl",
		{FieldManager: "cmctl"}:                           "cmctl",
		{FieldManager: "kubectl-client-side-apply"}:       "kubectl",
		{FieldManager: "cmctl-edit", User: "ada"}:         "ada",
		{FieldManager: "kubectl-edit", User: "ada"}:       "ada",
		{FieldManager: "flux", User: "system:serviceacc"}: "system:serviceacc",
	} {
		if got := author(e); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}

// Where a version came from is told by the entry before it, unless that is another
// object, or not there.
func TestWhatAVersionWasMadeFrom(t *testing.T) {
	items := []types.HistoryEntry{
		{ResourceVersion: "9", UID: "c", Verb: "update"},
		{ResourceVersion: "8", UID: "c", Verb: "apply"}, // which made it
		{ResourceVersion: "7", UID: "b", Verb: "delete", Deleted: true},
		{ResourceVersion: "6", UID: "b", Verb: "update"},
		{ResourceVersion: "5", UID: "b", Verb: "create"},
		{ResourceVersion: "4", UID: "a", Verb: "delete", Deleted: true},
		{ResourceVersion: "3", UID: "a", Verb: "update"},
		{ResourceVersion: "2", UID: "other", Verb: "update"},
	}
	for i, want := range []struct {
		before  int
		creates bool
	}{{1, false}, {-1, true}, {3, false}, {4, false}, {-1, true}, {6, false}, {-1, true}, {-1, false}} {
		if got := before(items, i); got != want.before || creates(items, i) != want.creates {
			t.Errorf("version %s: %d, made it: %t", items[i].ResourceVersion, got, creates(items, i))
		}
	}
}
