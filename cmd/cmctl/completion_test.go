package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// complete asks as a shell does.
func complete(t *testing.T, root *cobra.Command, args ...string) (words []string, directive string) {
	t.Helper()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(append([]string{cobra.ShellCompNoDescRequestCmd}, args...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(out.String())
	return lines[:len(lines)-1], lines[len(lines)-1]
}

// A usage line says what its command completes.
func TestUsageLinesAreCompleted(t *testing.T) {
	url, stop, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	surroundings{env: map[string]string{"CMCTL_SERVER": url}}.enter(t)
	for _, name := range []string{"flags", "limits"} {
		if code, _, errs := cmctl(t, "create", name, "--from-literal=mode=x", "--from-literal=rollout=1"); code != 0 {
			t.Fatal(errs)
		}
	}
	const names, keys, nothing, files = "flags limits", "mode rollout", "", ":0"
	for _, c := range []struct{ use, args, want, directive string }{
		{"x [NAME...]", " ", names, ":4"},
		{"x [NAME...]", "flags ", "limits", ":4"},
		{"x {NAME... | -f FILE}", "l", "limits", ":4"},
		{"x NAME", " ", names, ":4"},
		{"x NAME", "cm/f", "cm/flags", ":4"},
		{"x NAME", "pod/f", nothing, ":4"},
		{"x NAME", "cm ", names, ":4"},
		{"x NAME", "flags ", nothing, ":4"},
		{"x NAME KEY...", " ", names, ":4"},
		{"x NAME KEY...", "flags ", keys, ":4"},
		{"x NAME KEY...", "flags mode ", "rollout", ":4"},
		{"x NAME KEY...", "nope ", nothing, ":4"},
		{"x NAME KEY=VALUE...", "flags m", "mode=", ":6"},
		{"x NAME -- COMMAND...", " ", names, ":4"},
		{"x NAME -- COMMAND...", "flags -- ", nothing, files},
		{"x NAME -- COMMAND...", "flags -- jq ", nothing, files},
		{"x", " ", nothing, ":4"},
		{"x NAME", "flags --key ", keys, ":4"},
		{"x NAME", "flags --key=r", "rollout", ":4"},
		{"x NAME", "--key ", nothing, ":4"},
		{"x NAME", "-o ", "yaml json", ":4"},
		{"x NAME", "-n def", "default", ":4"},
		{"x NAME", "-n nowhere ", nothing, ":4"},
	} {
		t.Run(c.use+", "+c.args, func(t *testing.T) {
			f := newFactory(streams{}, nil)
			root := newRoot(f)
			x := &cobra.Command{Use: c.use, RunE: func(*cobra.Command, []string) error { return nil }}
			x.Flags().String("key", "", "")
			x.Flags().StringP("output", "o", "", "how to print: yaml or json (default text)")
			root.AddCommand(x)
			f.wireCompletions(root)
			args := append([]string{"x"}, strings.Split(strings.TrimPrefix(c.args, " "), " ")...)
			words, directive := complete(t, root, args...)
			if got := strings.Join(words, " "); got != c.want || directive != c.directive {
				t.Errorf("got %q %s, want %q %s", got, directive, c.want, c.directive)
			}
		})
	}
}

// Nobody waits long for a completion, and nothing is said about what went wrong.
func TestASilentServerOffersNothing(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	surroundings{env: map[string]string{"CMCTL_SERVER": s.URL}}.enter(t)
	var errs bytes.Buffer
	f := newFactory(streams{Err: &errs}, nil)
	root := newRoot(f)
	f.wireCompletions(root)
	if words, _ := complete(t, root, "get", ""); len(words) > 0 || errs.Len() > 0 {
		t.Errorf("got %v; %s", words, &errs)
	}
}

func TestOutputWords(t *testing.T) {
	for usage, want := range map[string]string{
		"how to print: yaml, json, name or wide (default a table)": "yaml json name wide",
		"how to print: jsonpath=..., jsonpath-file=FILE or name":   "jsonpath= jsonpath-file= name",
		"print name alone: name":                                   "name",
		"a file":                                                   "",
	} {
		if got := strings.Join(outputWords(usage), " "); got != want {
			t.Errorf("%s: %q", usage, got)
		}
	}
}
