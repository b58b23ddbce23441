package inject

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"  ", ""},
		{"conflict=10%,seed=7", "conflict=10%,seed=7"},
		{" lost=1x , seed=7 ", "lost=1x,seed=7"},
		{"seed=7,429=0.5%,conflict=100%", "conflict=100%,429=0.5%,seed=7"},
		{"latency=50ms,seed=0", "latency=50ms@100%,seed=0"},
		{"latency=10ms-2s@25%,seed=7", "latency=10ms-2s@25%,seed=7"},
		{"watch-close=1s@3x,gone=1%,reset=2%,500=3%,503=4%,504=5%,retry-after=2s,seed=18446744073709551615",
			"reset=2%,500=3%,503=4%,504=5%,gone=1%,watch-close=1s@3x,retry-after=2s,seed=18446744073709551615"},
	} {
		s, err := Parse(c.text)
		if err != nil || s.String() != c.want || s.Empty() != (c.want == "") {
			t.Errorf("%q: got %q, %v; want %q", c.text, s, err, c.want)
		}
	}
}

// A Spec that is printed repeats what it was printed from, its seed too.
func TestASeedIsTakenAndTold(t *testing.T) {
	s, err := Parse("conflict=10%")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(s.String())
	if err != nil || again.String() != s.String() || again.seed != s.seed {
		t.Errorf("got %q of %q, %v", again, s, err)
	}
}

// The error names the part that is wrong, and what would be right.
func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ text, part, want string }{
		{"conflict", `"conflict"`, "NAME=VALUE"},
		{"conflict=10%,", `""`, "NAME=VALUE"},
		{"conflict=10%,lost=1%,conflict=5%", "conflict", "twice"},
		{"lost=1%,conflct=10%", `"conflct"`, "the faults are conflict, latency"},
		{"CONFLICT=10%", `"CONFLICT"`, "the faults are"},
		{"lost=1%,conflict=10", `"conflict=10"`, "10%"},
		{"conflict=0%", `"conflict=0%"`, "above 0%"},
		{"conflict=101%", `"conflict=101%"`, "100%"},
		{"conflict=-1%", `"conflict=-1%"`, "rate"},
		{"conflict=1e1%", `"conflict=1e1%"`, "rate"},
		{"conflict=NaN%", `"conflict=NaN%"`, "rate"},
		{"conflict=0x", `"conflict=0x"`, "3x"},
		{"conflict=+1x", `"conflict=+1x"`, "3x"},
		{"conflict=50ms", `"conflict=50ms"`, "rate"},
		{"latency=10%", `"latency=10%"`, "50ms"},
		{"latency=0s", `"latency=0s"`, "time"},
		{"latency=-1s", `"latency=-1s"`, "time"},
		{"latency=2s-1s", `"latency=2s-1s"`, "longer"},
		{"latency=50ms@", `"latency=50ms@"`, "rate"},
		{"latency=50ms@10", `"latency=50ms@10"`, "rate"},
		{"seed=1", `"seed=1"`, "no fault"},
		{"lost=1%,seed=-1", `"seed=-1"`, "whole number"},
		{"lost=1%,retry-after=1.5s", `"retry-after=1.5s"`, "whole seconds"},
	} {
		_, err := Parse(c.text)
		if err == nil || !strings.Contains(err.Error(), c.part) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s and %q in it", c.text, err, c.part, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"conflict=10%,latency=50ms,reset=1%,429=1%,gone=1%", "latency=10ms-200ms@3x,seed=1", "retry-after=2s,lost=1x", "=,=", "seed=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			if !s.Empty() {
				t.Errorf("%q: a Spec and %v", text, err)
			}
			return
		}
		again, err := Parse(s.String())
		if err != nil || again.String() != s.String() {
			t.Errorf("%q: %q is read as %q, %v", text, s, again, err)
		}
	})
}
