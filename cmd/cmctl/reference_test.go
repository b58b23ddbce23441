package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the command reference anew")

const docsFolder = "../../docs"

// allCommands are the commands that a person can call, root included.
func allCommands(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, sub := range root.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, allCommands(sub)...)
		}
	}
	return all
}

// The pages in docs/cli and docs/man are what the code says. After a change of a
// command: go test ./cmd/cmctl -run TestReference -update
func TestReference(t *testing.T) {
	want := reference(t)
	for _, folder := range []string{"cli", "man"} {
		there, err := filepath.Glob(filepath.Join(docsFolder, folder, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range there {
			name, err := filepath.Rel(docsFolder, path)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := want[name]; ok {
				continue
			}
			if !*update {
				t.Errorf("docs/%s is of a command that there is no more", name)
			} else if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range want {
		path := filepath.Join(docsFolder, name)
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, text) {
			t.Errorf("docs/%s is not what the code says: go test ./cmd/cmctl -run TestReference -update", name)
		}
	}
}

// reference makes the pages, by their paths below docs. They are the same on
// every machine and every day.
func reference(t *testing.T) map[string][]byte {
	t.Helper()
	pages := map[string][]byte{}
	root := newRoot(newFactory(streams{Out: io.Discard, Err: io.Discard}, nil))
	for _, cmd := range allCommands(root) {
		cmd.DisableAutoGenTag = true
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "_")
		var page bytes.Buffer
		if err := doc.GenMarkdown(cmd, &page); err != nil {
			t.Fatal(err)
		}
		pages["cli/"+name+".md"] = withoutTrailingBlanks(page.Bytes())
		var man bytes.Buffer
		noDate := time.Time{}
		header := &doc.GenManHeader{Title: strings.ToUpper(strings.ReplaceAll(name, "_", "-")), Section: "1", Source: "cmctl", Date: &noDate}
		if err := doc.GenMan(cmd, header, &man); err != nil {
			t.Fatal(err)
		}
		text := bytes.Replace(man.Bytes(), []byte(noDate.Format("Jan 2006")), nil, 1)
		pages["man/"+strings.ReplaceAll(name, "_", "-")+".1"] = withoutTrailingBlanks(text)
	}
	return pages
}

func withoutTrailingBlanks(page []byte) []byte {
	lines := bytes.Split(page, []byte("\n"))
	for i, l := range lines {
		lines[i] = bytes.TrimRight(l, " ")
	}
	return append(bytes.TrimRight(bytes.Join(lines, []byte("\n")), "\n"), '\n')
}

func TestEveryCommandIsExplained(t *testing.T) {
	root := newRoot(newFactory(streams{}, nil))
	grouped := 0
	for _, cmd := range allCommands(root) {
		path := cmd.CommandPath()
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: Short is %q; it is a line without a full stop", path, cmd.Short)
		}
		if cmd.Name() != "help" {
			if cmd.Example == "" {
				t.Errorf("%s has no example", path)
			}
			for _, line := range strings.Split(cmd.Example, "\n") {
				if line != "" && !strings.HasPrefix(line, "  ") {
					t.Errorf("%s: the line %q of the example is not indented", path, line)
				}
			}
		}
		if cmd.Parent() == root {
			grouped++
			if cmd.GroupID == "" {
				t.Errorf("%s is in no group of the help; see helpGroups", path)
			}
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" && !f.Hidden {
				t.Errorf("%s: --%s is not explained", path, f.Name)
			}
		})
	}
	if grouped < 5 {
		t.Errorf("%d commands below the root", grouped)
	}
}

// Whatever takes a NAME completes names, and the setting of each flag that may
// stand in the settings file is one.
func TestEveryNameIsCompleted(t *testing.T) {
	f := newFactory(streams{}, nil)
	root := newRoot(f)
	f.wireCompletions(root)
	for _, cmd := range allCommands(root) {
		if takesOperands(cmd) && cmd.Name() != "help" && cmd.ValidArgsFunction == nil {
			t.Errorf("%s completes nothing", cmd.CommandPath())
		}
	}
	for _, name := range settingNames {
		if name != "editor" && f.flags.Lookup(name) == nil {
			t.Errorf("the setting %s is no flag", name)
		}
	}
}

// Help says what every command takes once, and not with each of them.
func TestHelp(t *testing.T) {
	help := func(args ...string) string {
		var out, errs bytes.Buffer
		surroundings{}.enter(t)
		if code := run(t.Context(), args, streams{Out: &out, Err: &errs}, nil); code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, &errs)
		}
		return out.String()
	}
	for _, c := range []struct {
		args       []string
		says, lack string
	}{
		{[]string{"--help"}, "Exit codes:", "--server"},
		{[]string{"get", "--help"}, "--selector", "--server"},
		{[]string{"help", "get"}, "cmctl get -A", "--server"},
		{[]string{"config", "--help"}, "use-context", "--server string"},
		{[]string{"options"}, "--server", "--selector"},
	} {
		if text := help(c.args...); !strings.Contains(text, c.says) || strings.Contains(text, c.lack) {
			t.Errorf("%v: want %q and no %q in\n%s", c.args, c.says, c.lack, text)
		}
	}
}
