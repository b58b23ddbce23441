package main

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
)

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// What can't be printed is an error, and one that says if something was done.
func TestWhatCantBePrintedIsAnError(t *testing.T) {
	b := newBench(t)
	b.past("create", "app", "--from-literal=a=1")
	for args, want := range map[string]string{
		"--help":                "error: no space left\n",
		"get --help":            "error: no space left\n",
		"help get":              "error: no space left\n",
		"auth":                  "error: no space left\n",
		"version":               "error: no space left\n",
		"version --client":      "error: no space left\n",
		"set app a=2 -o json":   "it is done, but the result can't be printed: no space left",
		"label app a=b -o yaml": "it is done, but the result can't be printed: no space left",
	} {
		var errs bytes.Buffer
		code := run(t.Context(), strings.Fields(args), streams{In: strings.NewReader(""), Out: full{}, Err: &errs}, nil)
		if code != exitFailed || !strings.Contains(errs.String(), want) {
			t.Errorf("%s ended with %d, want %q in\n%s", args, code, want, &errs)
		}
	}
	b.holds("a: \"2\"", "a: b")
}

// Somebody takes an object out of the selection between the list and the write.
func TestLabelPassesOverWhatLeftTheSelection(t *testing.T) {
	b := newBench(t)
	b.past("create", "app", "--from-literal=a=1")
	b.past("label", "app", "own=z")
	left := false
	b.meddle = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/app") && !left {
			left = true
			b.past("label", "app", "own=me", "--overwrite")
		}
		return false
	}
	e := b.cmctl("label", "-l", "own=z", "x=1")
	if e.code != 0 || e.out != "" || !strings.Contains(e.err, "configmap/app is passed over") {
		t.Errorf("it ended with %d:\n%s%s", e.code, e.out, e.err)
	}
	if text := b.must("get", "app", "-o", "yaml"); strings.Contains(text, "x:") {
		t.Errorf("it was labeled:\n%s", text)
	}
}

// An expression about what one object lacks names the object.
func TestAMissingFieldNamesItsObject(t *testing.T) {
	b := newBench(t)
	b.past("create", "app", "--from-literal=a=1")
	e := b.cmctl("get", "app", "-o", "jsonpath={.data.b}")
	if e.code != exitNotFound || !strings.Contains(e.err, `configmaps "app" in namespace "default"`) {
		t.Errorf("it ended with %d:\n%s", e.code, e.err)
	}
}

// A server that wants to be left alone for hours gets no write, and the person is
// told when to come again.
func TestALongWishToBeLeftAloneIsPassedOn(t *testing.T) {
	b := newBench(t)
	b.past("create", "app", "--from-literal=a=1")
	b.meddle = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Retry-After", "7200")
		return refusing(http.StatusTooManyRequests)(w, r)
	}
	e := b.cmctl("set", "app", "a=2")
	if e.code != exitUnreachable || !strings.Contains(e.err, "left alone for 2h0m0s: try again after that") || strings.Contains(e.err, "attempt 0") {
		t.Errorf("it ended with %d:\n%s", e.code, e.err)
	}
}
