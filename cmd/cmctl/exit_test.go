package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

func TestExitCodes(t *testing.T) {
	var (
		notFound  = types.ConfigMaps.NotFound("flags")
		conflict  = types.ConfigMaps.VersionConflict("flags", "1", "2")
		exists    = types.ConfigMaps.AlreadyExists("flags")
		invalid   = types.ConfigMaps.Invalid("flags", nil)
		busy      = types.TooManyRequests("busy", 1)
		decide    = &conflictError{object: "flags"}
		unknown   = &retry.OutcomeUnknownError{Object: "flags", Err: notFound}
		interrupt = &interruptedError{manyError{notFound, unknown}}
	)
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{"done", nil, 0},
		{"anything else", errors.New("x"), 1},
		{"usage", usagef("x"), 2},
		{"a person must decide", decide, 3},
		{"a guarded write refused", conflict, 3},
		{"another object of the name", &retry.ReplacedError{}, 3},
		{"gave up on conflicts", &retry.ExhaustedError{Last: conflict}, 3},
		{"gave up because others make and delete it", &retry.ExhaustedError{Last: notFound}, 3},
		{"not there", notFound, 4},
		{"a key that isn't there", &objectError{err: noKey(types.NewDocument("a", "flags"), "k")}, 4},
		{"exists", exists, 5},
		{"refused", invalid, 6},
		{"too busy", busy, 7},
		{"gave up on a busy server", &retry.ExhaustedError{Last: busy}, 7},
		{"the server's own failure", types.Internal("id"), 7},
		{"outcome unknown, whatever hid it", unknown, 7},
		{"interrupted, whatever else", interrupt, 130},
		{"with its object named", &objectError{err: notFound}, 4},
		{"with the text kept", &keptError{err: decide}, 3},
		{"several: the first failure", manyError{notFound, invalid}, 4},
		{"several: a conflict beats what came first", manyError{notFound, decide, invalid}, 3},
		{"several inside what was kept", &keptError{err: manyError{invalid, notFound}}, 6},
		{"wrapped", fmt.Errorf("x: %w", exists), 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := exitCode(c.err); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

// What a person reads names the object once, says each hint once, and ends with
// where the text is.
func TestReport(t *testing.T) {
	missing := func(name string) error {
		return &objectError{object: `configmaps "` + name + `" in namespace "default"`, name: name, server: "http://s", err: types.ConfigMaps.NotFound(name)}
	}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"one", missing("a"), "error: configmaps \"a\" in namespace \"default\" on http://s: not found\nhint: 'cmctl get -A' lists what there is\n"},
		{"several", manyError{missing("a"), missing("b")}, "error: configmaps \"a\" in namespace \"default\" on http://s: not found\n" +
			"error: configmaps \"b\" in namespace \"default\" on http://s: not found\nhint: 'cmctl get -A' lists what there is\n"},
		{"kept", &keptError{path: "/d", shown: "/s", next: "cmctl edit --resume /d", err: manyError{errors.New("x"), errors.New("y")}},
			"error: x\nerror: y\nyour text is kept in /d\nwhat it was made from is beside it, in /s\ngo on with: cmctl edit --resume /d\n"},
		{"several kept", manyError{&keptError{path: "/a", next: "A", err: errors.New("x")}, &keptError{path: "/b", next: "B", err: errors.New("y")}},
			"error: x\nerror: y\nyour text is kept in /a\ngo on with: A\nyour text is kept in /b\ngo on with: B\n"},
		{"the object is in the text", &objectError{object: "O", server: "S", err: errors.New("gave up on O")}, "error: gave up on O (server S)\n"},
		{"the server is in the text", &objectError{object: "O", server: "S", err: errors.New("cannot reach S")}, "error: O: cannot reach S\n"},
		{"the object and a colon are in the text", &objectError{object: "O", server: "S", err: errors.New("O: it is broken")}, "error: O on S: it is broken\n"},
		{"forbidden", &objectError{object: `configmaps "a" in namespace "n"`, name: "a", server: "S", err: types.ConfigMaps.Forbidden("a", `User "u" cannot do it`)},
			"error: configmaps \"a\" in namespace \"n\" on S: forbidden: User \"u\" cannot do it\nhint: 'cmctl auth whoami' tells who you are to this server, 'cmctl auth can-i --list' what you may do\n"},
		{"forbidden before there is a name", &objectError{object: `configmaps "a" in namespace "n"`, name: "a", server: "S", err: types.AccessForbidden(types.ConfigMaps.GroupResource(), "", `User "u" cannot do it`)},
			"error: configmaps \"a\" in namespace \"n\" on S: forbidden: User \"u\" cannot do it\nhint: 'cmctl auth whoami' tells who you are to this server, 'cmctl auth can-i --list' what you may do\n"},
		{"interrupted", &interruptedError{context.Canceled}, "error: interrupted\n"},
		{"interrupted at an object", &interruptedError{&objectError{object: "O", server: "S", err: context.Canceled}}, "error: interrupted\n"},
		{"interrupted with something to say", &interruptedError{&objectError{object: "O", server: "S", err: errors.New("unknown outcome")}}, "error: interrupted: O on S: unknown outcome\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			report(&out, c.err, "cmctl get")
			if out.String() != c.want {
				t.Errorf("got\n%s\nwant\n%s", &out, c.want)
			}
		})
	}
}

// Hints lead to the same server and object.
func TestHints(t *testing.T) {
	on := func(err error) error {
		return &objectError{name: "flags", where: " --server=http://s --namespace=n", host: " --server=http://s", err: err}
	}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"not there", on(types.ConfigMaps.NotFound("flags")), "'cmctl get -A --server=http://s' lists what there is"},
		{"no namespace", on(types.Namespaces.NotFound("n")), "make it first, with 'kubectl create namespace n' for example"},
		{"no namespace, and no right to make it", on(types.NamespaceNotYours("n")), "you may not make it: ask somebody who may create namespaces; 'cmctl auth whoami --server=http://s' tells"},
		{"outcome unknown", on(&retry.OutcomeUnknownError{Err: errors.New("x")}), "'cmctl get flags --server=http://s --namespace=n'"},
		{"another object", on(&retry.ReplacedError{}), "'cmctl get flags --server=http://s --namespace=n'"},
		{"no object", &retry.ReplacedError{}, "'cmctl get'"},
		{"one that is given", on(&hintedError{types.ConfigMaps.NotFound("flags"), "do this"}), "do this"},
		{"nothing to add", on(errors.New("x")), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := hint(c.err, "cmctl get"); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q in it", got, c.want)
			}
		})
	}
}

// A page in the server's place is no server, whatever reads it.
func TestACodeFrom500UpWithoutAStatusIsNoServer(t *testing.T) {
	for _, code := range []int{http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable} {
		for _, args := range [][]string{
			{"get", "app"}, {"get"}, {"get", "app", "-w"}, {"wait", "app", "--for=delete", "--timeout=1s"},
			{"set", "app", "a=1"}, {"delete", "app"}, {"patch", "app", "-p", "{}"},
		} {
			b := newBench(t)
			b.meddle = func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(code)
				fmt.Fprint(w, "<html>")
				return true
			}
			if e := b.cmctl(append(args, "--max-attempts=1")...); e.code != exitUnreachable {
				t.Errorf("%d, %v: ended with %d:\n%s", code, args, e.code, e.err)
			}
		}
	}
}

// A conflict whose answer breaks off after its code is a conflict: the change is
// made again. A 404 that breaks off is no absence: nothing is created for it.
func TestAnAnswerThatBreaksOffAfterItsCode(t *testing.T) {
	breaksOff := func(method string, code int) func(http.ResponseWriter, *http.Request) bool {
		var first sync.Once
		return func(w http.ResponseWriter, r *http.Request) (answered bool) {
			if r.Method != method {
				return false
			}
			first.Do(func() {
				answered = true
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Length", "500")
				w.WriteHeader(code)
				fmt.Fprint(w, `{"kind":"Status","status":"Fail`)
			})
			return answered
		}
	}
	b := newBench(t)
	b.must("create", "app", "--from-literal=a=1")
	for _, c := range []struct {
		method string
		code   int
		args   []string
		ended  int
	}{
		{"PUT", http.StatusConflict, []string{"set", "app", "a=2"}, exitOK},
		{"PATCH", http.StatusConflict, []string{"patch", "app", "-p", `{"data":{"a":"3"}}`}, exitOK},
		{"POST", http.StatusConflict, []string{"create", "other"}, exitExists},
		{"GET", http.StatusNotFound, []string{"set", "app", "a=4", "--create"}, exitFailed},
	} {
		b.meddle = breaksOff(c.method, c.code)
		if e := b.cmctl(c.args...); e.code != c.ended {
			t.Errorf("%v ended with %d, want %d:\n%s", c.args, e.code, c.ended, e.err)
		}
	}
	b.holds(`a: "3"`)
}
