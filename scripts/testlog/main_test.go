package main

import (
	"strings"
	"testing"
)

// What go test -json tells in each way that a test can end.
func TestTheLogTellsWhatFailedAndWhatWasSkipped(t *testing.T) {
	for _, c := range []struct {
		name, events, want string
		failed             bool
		skipped            int
	}{
		{name: "passed", events: `
			{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
			{"Action":"pass","Package":"p","Test":"TestA"}
			{"Action":"output","Package":"p","Output":"PASS\n"}
			{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
			{"Action":"pass","Package":"p"}`,
			want: "ok  \tp\t0.1s\n0 tests were skipped\n"},
		{name: "failed", events: `
			{"Action":"output","Package":"p","Test":"TestA","Output":"--- FAIL: TestA\n"}
			{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: no\n"}
			{"Action":"output","Package":"p","Test":"TestB","Output":"quiet\n"}
			{"Action":"fail","Package":"p","Test":"TestA"}
			{"Action":"pass","Package":"p","Test":"TestB"}
			{"Action":"output","Package":"p","Output":"FAIL\n"}
			{"Action":"fail","Package":"p"}`,
			want: "--- FAIL: TestA\n    a_test.go:1: no\nFAIL\n0 tests were skipped\n", failed: true},
		{name: "never ended", events: `
			{"Action":"output","Package":"p","Test":"TestA","Output":"panic: timed out\n"}
			{"Action":"output","Package":"q","Test":"TestA","Output":"of another package\n"}
			{"Action":"fail","Package":"p"}`,
			want: "panic: timed out\n0 tests were skipped\n", failed: true},
		{name: "not built", events: `
			{"Action":"build-output","ImportPath":"p","Output":"a.go:1: no\n"}
			{"Action":"build-fail","ImportPath":"p"}`,
			want: "a.go:1: no\n0 tests were skipped\n", failed: true},
		{name: "skipped", events: `
			{"Action":"output","Package":"p","Test":"TestA/b","Output":"=== RUN   TestA/b\n"}
			{"Action":"output","Package":"p","Test":"TestA/b","Output":"    a_test.go:1: no kubectl\n        more\n"}
			{"Action":"output","Package":"p","Test":"TestA/b","Output":"--- SKIP: TestA/b\n"}
			{"Action":"skip","Package":"p","Test":"TestA/b"}
			{"Action":"skip","Package":"p","Test":"FuzzA/seed#1"}
			{"Action":"skip","Package":"without-tests"}`,
			want: "1 tests were skipped\n  p TestA/b: a_test.go:1: no kubectl\n", skipped: 1},
		{name: "no event", events: "panic: of go test itself\n",
			want: "panic: of go test itself\n0 tests were skipped\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			l := &testlog{out: &out, said: map[test]*strings.Builder{}}
			if err := l.read(strings.NewReader(strings.ReplaceAll(strings.TrimLeft(c.events, "\n"), "\t\t\t", ""))); err != nil {
				t.Fatal(err)
			}
			l.end()
			if out.String() != c.want {
				t.Errorf("printed %q, want %q", out.String(), c.want)
			}
			if l.failed != c.failed || len(l.skipped) != c.skipped {
				t.Errorf("failed %v, skipped %d, want %v, %d", l.failed, len(l.skipped), c.failed, c.skipped)
			}
		})
	}
}
