package crash

import (
	"strings"
	"testing"
)

// The checker finds each kind of loss. Each case is one change to a story in which all
// is well.
func TestTheCheckerFinds(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(l *ledger, f *found)
		says  string
	}{
		"nothing, where all is well": {func(*ledger, *found) {}, ""},
		"a write that is gone":       {func(_ *ledger, f *found) { f.cutTo("k", 1); f.live["k"] = f.histories["k"][0] }, "is gone"},
		"a key that is gone":         {func(_ *ledger, f *found) { delete(f.histories, "k"); delete(f.live, "k") }, "is gone"},
		"a lowered counter":          {func(_ *ledger, f *found) { f.current = 2 }, "handed out before"},
		"a version used again":       {func(l *ledger, _ *found) { l.seen[2] = "other x" }, "version 2 was"},
		"another version than told":  {func(l *ledger, _ *found) { l.acknowledged[1].version = 9 }, "acknowledged as version 9"},
		"a lost update":              {func(l *ledger, _ *found) { l.acknowledged[2].base = "1" }, "an update is lost"},
		"a refused write":            {func(l *ledger, _ *found) { l.refused["b"] = true }, "though it was refused"},
		"a write made twice":         {func(_ *ledger, f *found) { f.histories["k"][1].token = "a" }, "made twice"},
		"another object than newest": {func(_ *ledger, f *found) { f.live["k"] = f.histories["k"][1] }, "the newest version is"},
		"a deletion undone":          {func(l *ledger, _ *found) { l.acknowledged[2].verb = "DELETE" }, "deleted false"},
		"an object without history":  {func(_ *ledger, f *found) { f.live["x"] = version{number: 3} }, "has no history"},
		"a create over another": {func(l *ledger, _ *found) {
			l.acknowledged[1].verb, l.acknowledged[1].base = "POST", ""
		}, "was created over"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			l.acknowledge(write{key: "k", token: "a", verb: "POST", version: 1})
			l.acknowledge(write{key: "k", token: "b", verb: "PUT", base: "1", version: 2})
			l.acknowledge(write{key: "k", token: "c", verb: "PUT", base: "2", version: 3})
			newest := version{number: 3, token: "c"}
			f := found{current: 3, live: map[string]version{"k": newest},
				histories: map[string][]version{"k": {{number: 1, token: "a"}, {number: 2, token: "b"}, newest}}}
			c.spoil(l, &f)
			text := strings.Join(l.check(f), "\n")
			if c.says == "" && text != "" || !strings.Contains(text, c.says) {
				t.Errorf("it says %q, want %q", text, c.says)
			}
		})
	}
}

func (f *found) cutTo(key string, n int) { f.histories[key] = f.histories[key][:n] }

// What was open is settled by the first look: if it is not there it must not turn up
// later, and if it is there it must stay.
func TestTheCheckerSettlesWhatWasOpen(t *testing.T) {
	is := func(token string) found {
		v := version{number: 1, token: token}
		return found{current: 1, live: map[string]version{"k": v}, histories: map[string][]version{"k": {v}}}
	}
	nothing := found{current: 1, histories: map[string][]version{}, live: map[string]version{}}
	l := newLedger()
	l.leaveOpen(write{key: "k", token: "a", verb: "POST"})
	if p := l.check(nothing); len(p) > 0 {
		t.Error(p)
	}
	if p := l.check(is("a")); len(p) == 0 {
		t.Error("it turned up later")
	}
	l = newLedger()
	l.leaveOpen(write{key: "k", token: "a", verb: "POST"})
	if p := l.check(is("a")); len(p) > 0 {
		t.Error(p)
	}
	if p := l.check(nothing); len(p) == 0 {
		t.Error("it went away again")
	}
}
