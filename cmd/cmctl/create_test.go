package main

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

// Nobody can tell what became of it, so that is what is said, and a second one is
// not made.
func TestALostCreateUnderAGeneratedNameIsNotRepeated(t *testing.T) {
	b := newBench(t)
	b.answered = func(r *http.Response) {
		if r.Request.Method == http.MethodPost {
			r.Body.Close()
			panic(http.ErrAbortHandler) // it landed; its answer goes nowhere
		}
	}
	file := t.TempDir() + "/run.yaml"
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: run-}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := b.cmctl("create", "-f", file)
	if e.code != exitUnreachable || e.out != "" || !strings.Contains(e.err, "is unknown") || !strings.Contains(e.err, `begins with "run-"`) {
		t.Errorf("it ended with %d:\n%s%s", e.code, e.out, e.err)
	}
	if strings.Contains(e.err, "finding out") || !strings.Contains(e.err, "only its answer tells") {
		t.Errorf("it said\n%s", e.err)
	}
	if names := b.must("get", "-o", "name"); strings.Count(names, "run-") != 1 {
		t.Errorf("there are\n%s", names)
	}
}
