package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const settingsPage = "../../docs/cmserver.md"

// row is what the page says of a flag.
type row struct{ unset, takes string }

var (
	flagName = regexp.MustCompile("^ `(backup |restore |migrate |init |token )?(?:-[a-z]`, `)?--([a-z-]+)")
	bounds   = regexp.MustCompile(`^([\d,]+(?:ms|[smh])?) to ([\d,]+[smh]?)`)
	words    = regexp.MustCompile("^`[^`]+`(, `[^`]+`)+$")
)

// pageRows are the rows by command and name of flag.
func pageRows(t *testing.T) map[string]row {
	t.Helper()
	page, err := os.ReadFile(settingsPage)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]row{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			continue
		}
		if m := flagName.FindStringSubmatch(cells[1]); m != nil {
			rows[m[1]+m[2]] = row{strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])}
		}
	}
	return rows
}

// eachFlag is every flag of every command, once: those of the server first.
func eachFlag() map[string]*pflag.Flag {
	all := map[string]*pflag.Flag{}
	root := rootCommand(streams{out: io.Discard, err: io.Discard})
	add := func(command *cobra.Command, prefix string) {
		command.Flags().VisitAll(func(f *pflag.Flag) {
			if _, known := all[f.Name]; !known && f.Name != "help" && f.Name != "version" {
				all[prefix+f.Name] = f
			}
		})
	}
	add(root, "")
	for _, command := range root.Commands() {
		add(command, command.Name()+" ")
	}
	return all
}

// The page has each flag, and no other.
func TestThePageNamesEveryFlag(t *testing.T) {
	onPage, inCode := slices.Sorted(maps.Keys(pageRows(t))), slices.Sorted(maps.Keys(eachFlag()))
	if !slices.Equal(onPage, inCode) {
		t.Errorf("the flags on %s:\n%v\nand in the program:\n%v", settingsPage, onPage, inCode)
	}
}

// The defaults on the page are the program's.
func TestDefaultsOnThePage(t *testing.T) {
	rows := pageRows(t)
	for name, f := range eachFlag() {
		said := strings.ReplaceAll(strings.Trim(rows[name].unset, "`"), ",", "")
		switch unset := strings.Trim(f.DefValue, "[]"); f.Value.Type() {
		case "bool":
			if said != strings.TrimPrefix(unset, "false") {
				t.Errorf("--%s is %s by default, the page says %q", name, unset, said)
			}
		case "duration":
			if d, err := time.ParseDuration(said); err != nil || d.String() != unset {
				t.Errorf("--%s is %s by default, the page says %q", name, unset, said)
			}
		default:
			if unset != "" && unset != "0" && said != unset {
				t.Errorf("--%s is %s by default, the page says %q", name, unset, said)
			}
		}
	}
}

// What the page says that a setting takes is taken, and what is just beyond is not.
func TestWhatSettingsTake(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	tried := 0
	for name, r := range pageRows(t) {
		var taken, refused []string
		f := eachFlag()[name]
		switch m := bounds.FindStringSubmatch(r.takes); {
		case m != nil:
			least, most := strings.ReplaceAll(m[1], ",", ""), strings.ReplaceAll(m[2], ",", "")
			taken, refused = []string{least, most}, []string{beside(t, least, -1), beside(t, most, 1)}
		case strings.HasPrefix(r.takes, "above 0"):
			taken, refused = []string{"1"}, []string{"0", "-1"}
			if f.Value.Type() == "duration" {
				taken, refused = []string{"1ns"}, []string{"0s", "-1ns"}
			}
		case words.MatchString(r.takes):
			taken, refused = strings.Split(strings.ReplaceAll(r.takes, "`", ""), ", "), []string{"other", ""}
		default:
			if kind := f.Value.Type(); !strings.HasPrefix(kind, "string") && kind != "bool" {
				t.Errorf("the page doesn't say what --%s takes", name)
			}
			continue
		}
		tried++
		for _, value := range taken {
			if err := tryFlag(t, name, value); err != nil {
				t.Errorf("--%s %s is said to be taken: %v", name, value, err)
			}
		}
		for _, value := range refused {
			if err := tryFlag(t, name, value); err == nil {
				t.Errorf("--%s %s is taken, which the page doesn't say", name, value)
			}
		}
	}
	if tried < 10 {
		t.Errorf("only %d settings with bounds were found on the page", tried)
	}
}

// beside is the value next to one, in its unit's smallest step.
func beside(t *testing.T, value string, step int64) string {
	t.Helper()
	if n, err := strconv.ParseUint(value, 10, 64); err == nil {
		return strconv.FormatInt(int64(n)+step, 10)
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		t.Fatal(err)
	}
	return (d + time.Duration(step)).String()
}

// tryFlag is the error that the program has for a value, before it does anything.
func tryFlag(t *testing.T, name, value string) error {
	t.Helper()
	command, flag, of := strings.Cut(name, " ")
	if !of {
		args := []string{"--" + name + "=" + value}
		if strings.HasPrefix(name, "audit-log-") && name != auditPathFlag {
			args = append(args, "--"+auditPathFlag+"=audit.log") // without which they are for nothing
		}
		if strings.HasPrefix(name, "etcd-") {
			args = append(args, "--store=etcd://localhost") // likewise
		}
		_, err := load(t, args...)
		return err
	}
	nowhere := "/dev/null/none"
	if command == "init" {
		nowhere = "--dir=" + nowhere
	}
	code, _, said := invoke(t, nil, command, nowhere, "--"+flag+"="+value)
	if code == 2 && strings.Contains(said, "--"+flag) {
		return fmt.Errorf("%s", said)
	}
	return nil
}
