//go:build unix

package check_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/check"
	"example.com/cmctl/pkg/types"
)

// object has these keys with these values.
func object(values map[string]any) types.Document {
	d := types.NewDocument("n", "flags")
	for key, v := range values {
		d.Set(types.Field{Section: "data", Key: key}, v)
	}
	return d
}

// told are the problems as people read them.
func told(problems []check.Problem) string {
	var all []string
	for _, p := range problems {
		all = append(all, p.String())
	}
	return strings.Join(all, "; ")
}

func TestValuesAreParsedByTheEndingOfTheirKey(t *testing.T) {
	for _, c := range []struct {
		name, key string
		value     any
		want      string
	}{
		{"sound", "app.yaml", "a: 1\n", ""},
		{"broken", "app.yaml", "a: 1\nb: [\n", "data[app.yaml]: line 2: this is not valid YAML: did not find expected node content"},
		{"a tab", "app.yml", "a:\n\tb: 1\n", "data[app.yml]: line 2: this is not valid YAML: found character that cannot start any token"},
		{"a repeated key", "app.toml", "a = 1\na = 2\n", "data[app.toml]: line 2: this is not valid TOML: key a is already defined"},
		{"a comment in JSON", "app.json", "{\n// no\n}", "data[app.json]: line 2: this is not valid JSON: invalid character '/' looking for beginning of object key string; JSON has no comments"},
		{"a section that is open", "app.ini", "a=1\n[b\n", "data[app.ini]: line 2: this is not valid INI: the section is not closed: ] is missing"},
		{"a bad escape", "app.properties", "a=1\nb=\\u12\n", "data[app.properties]: line 2: this is not valid properties: invalid unicode literal"},
		{"empty", "app.json", "", ""},
		{"another ending", "app.conf", "{", ""},
		{"bytes", "app.json", types.Binary("ew=="), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var checks check.Checks
			if got := told(checks.Document(t.Context(), nil, object(map[string]any{c.key: c.value}))); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestOnlyWhatChangesIsLookedAt(t *testing.T) {
	before := object(map[string]any{"a.json": "{", "b.json": "{", "c.json": "{}"})
	after := object(map[string]any{"a.json": "{", "b.json": "[", "d.json": "]"})
	var checks check.Checks
	problems := checks.Document(t.Context(), before, after)
	if len(problems) != 2 || problems[0].Key != "b.json" || problems[1].Key != "d.json" {
		t.Errorf("got %s", told(problems))
	}
}

func TestAnnotationsAreNotContent(t *testing.T) {
	d := object(nil)
	d.Set(types.Field{Section: "metadata.annotations", Key: "example.com/a.json"}, "{")
	var checks check.Checks
	if problems := checks.Document(t.Context(), nil, d); len(problems) > 0 {
		t.Errorf("got %s", told(problems))
	}
}

// script is an executable that runs these lines.
func script(t *testing.T, lines string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "checker")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+lines+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestCommandsCheckTheKeysOfTheirPattern(t *testing.T) {
	for _, c := range []struct {
		name, lines, arguments, key, value, want string
	}{
		{"content", "true", "", "app.conf", "x", ""},
		{"not its key", "exit 1", "", "app.cfg", "x", ""},
		{"not content", "echo line 3 is bad >&2; exit 2", "", "app.conf", "x", `data[app.conf]: line 3 is bad (the check "CHECKER")`},
		{"without a word", "exit 2", "", "app.conf", "x", `data[app.conf]: the check "CHECKER" failed and said nothing: exit status 2`},
		{"the value on standard input", "cat; exit 1", "", "app.conf", "the value", `data[app.conf]: the value (the check "CHECKER")`},
		{"the value in a file", `cat "$1"; exit 1`, "{}", "app.conf", "the value", `data[app.conf]: the value (the check "CHECKER")`},
		{"the file within a word", `cat "${1#--file=}"; exit 1`, "--file={}", "app.conf", "the value", `data[app.conf]: the value (the check "CHECKER")`},
		{"the file has the key's ending", `case $1 in *.conf) ;; *) echo "$1"; exit 1;; esac`, "{}", "app.conf", "x", ""},
		{"the file is for the person alone", `stat -c %a "$1"; exit 1`, "{}", "app.conf", "x", `data[app.conf]: 600 (the check "CHECKER")`},
		{"no shell sees the arguments", `echo "$1"; exit 1`, `'$(id); *'`, "app.conf", "x", `data[app.conf]: $(id); * (the check "CHECKER")`},
		{"control characters are kept from the terminal", `printf 'a\033[2Jb'; exit 1`, "", "app.conf", "x", `data[app.conf]: a[2Jb (the check "CHECKER")`},
		{"much output", `yes | head -c 100000; exit 1`, "", "app.conf", "x", "data[app.conf]: y\ny\ny\ny\ny (the check \"CHECKER\")"},
		{"a value that is not read", "true", "", "app.conf", strings.Repeat("x", 1<<20), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			checker := script(t, c.lines)
			checks := check.Checks{Commands: []check.Command{{Keys: "*.conf", Command: checker + " " + c.arguments}}}
			got := told(checks.Document(t.Context(), nil, object(map[string]any{c.key: c.value})))
			if got = strings.ReplaceAll(got, checker, "CHECKER"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestCommandsTakeThePlaceOfTheBuiltInCheck(t *testing.T) {
	checks := check.Checks{Commands: []check.Command{
		{Keys: "chart-*.yaml", Command: script(t, "true")},
		{Keys: "chart-a.*", Command: script(t, "echo second; exit 1")},
	}}
	got := told(checks.Document(t.Context(), nil, object(map[string]any{"chart-a.yaml": "{{ x }}: [", "chart-b.yaml": "{{ x }}: [", "c.yaml": "{{ x }}: ["})))
	if strings.Contains(got, "chart-b.yaml") || !strings.Contains(got, "data[chart-a.yaml]: second") || !strings.Contains(got, "data[c.yaml]: line 1: this is not valid YAML") {
		t.Errorf("got %s", got)
	}
}

// A check that can't be made has not been passed.
func TestACommandThatCantBeStartedIsAProblem(t *testing.T) {
	checks := check.Checks{Commands: []check.Command{{Keys: "*", Command: "/nowhere/checker {}"}}}
	got := told(checks.Document(t.Context(), nil, object(map[string]any{"a": "x"})))
	if !strings.HasPrefix(got, `data[a]: the check "/nowhere/checker" can't be run: `) {
		t.Errorf("got %s", got)
	}
}

func TestACommandThatTakesTooLongIsEnded(t *testing.T) {
	checks := check.Checks{Timeout: 50 * time.Millisecond, Commands: []check.Command{{Keys: "*", Command: script(t, "sleep 600")}}}
	if got := told(checks.Document(t.Context(), nil, object(map[string]any{"a": "x"}))); !strings.Contains(got, "took longer than 50ms") {
		t.Errorf("got %s", got)
	}
}

func TestAnInterruptedCommandIsEndedWithAllItStarted(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		alive, err := os.Open(pipe)
		if err != nil {
			ended <- err
			return
		}
		defer alive.Close()
		if _, err := alive.Read(make([]byte, 1)); err != nil {
			ended <- err
			return
		}
		interrupt()
		_, err = io.Copy(io.Discard, alive) // to the end: until nobody is left to write
		ended <- err
	}()
	begun, runs := 0, 0
	checks := check.Checks{
		Commands: []check.Command{{Keys: "*", Command: script(t, "exec 3>'"+pipe+"'; echo up >&3; sleep 600 & wait")}},
		Running: func(func()) func() {
			begun++
			runs++
			return func() { runs-- }
		},
	}
	if got := told(checks.Document(ctx, nil, object(map[string]any{"a": "x"}))); !strings.Contains(got, "was interrupted") {
		t.Errorf("got %s", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if begun != 1 || runs != 0 {
		t.Errorf("%d programs are said to have begun, and %d to run", begun, runs)
	}
}

func TestValidateTellsWhatCantBeMeant(t *testing.T) {
	for _, c := range []struct {
		command check.Command
		ok      bool
	}{
		{check.Command{Keys: "*.conf", Command: "nginx -t -c {}"}, true},
		{check.Command{Keys: "*.conf"}, false},
		{check.Command{Command: "true"}, false},
		{check.Command{Keys: "[", Command: "true"}, false},
		{check.Command{Keys: "*", Command: "echo 'open"}, false},
	} {
		if err := c.command.Validate(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.command, err)
		}
	}
}

func TestParseMode(t *testing.T) {
	for _, text := range []string{"warn", "fail", "off"} {
		if m, err := check.ParseMode(text); err != nil || string(m) != text {
			t.Errorf("%s: %v, %v", text, m, err)
		}
	}
	if _, err := check.ParseMode("maybe"); err == nil {
		t.Error("maybe is a mode")
	}
}
