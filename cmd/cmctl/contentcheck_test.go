package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
	"github.com/spf13/pflag"
)

// checker is a factory with a settings file, and the checks of a verb that was
// called with --check.
func checker(t *testing.T, settings, flag string) (*factory, *contentChecks, *bytes.Buffer, error) {
	t.Helper()
	var notes bytes.Buffer
	f := newFactory(streams{Err: &notes}, nil)
	name := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(name, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("cmctl", pflag.ContinueOnError)
	f.addFlags(flags)
	var c contentChecks
	c.addFlag(flags)
	args := []string{"--config=" + name}
	if flag != "" {
		args = append(args, "--check="+flag)
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := f.load(); err != nil {
		return f, &c, &notes, err
	}
	return f, &c, &notes, c.prepare(f)
}

func withValue(key, value string) types.Document {
	d := types.NewDocument("n", "flags")
	d.Set(types.Field{Section: "data", Key: key}, value)
	return d
}

const brokenYAML = "configmap n/flags: data[app.yaml]: line 2: this is not valid YAML: found character that cannot start any token"

func TestCheckDecidesWhatABrokenValueLeadsTo(t *testing.T) {
	for _, c := range []struct{ flag, note, err string }{
		{"", "warning: " + brokenYAML + "\n", ""},
		{"warn", "warning: " + brokenYAML + "\n", ""},
		{"off", "", ""},
		{"fail", "", "configmap n/flags: nothing was written, for this is broken:\n  " + strings.TrimPrefix(brokenYAML, "configmap n/flags: ") +
			"\ncorrect it, or store it as it is with --check=off"},
	} {
		t.Run(c.flag, func(t *testing.T) {
			f, checks, notes, err := checker(t, "", c.flag)
			if err != nil {
				t.Fatal(err)
			}
			err = f.checkContent(t.Context(), checks, "configmap n/flags", nil, withValue("app.yaml", "a:\n\tb: 1\n"))
			if got := errorText(err); got != c.err || notes.String() != c.note {
				t.Errorf("error %q, notes %q", got, notes)
			}
			if err != nil && exitCode(err) != exitFailed {
				t.Errorf("exit code %d", exitCode(err))
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestCheckersStandInTheSettingsFile(t *testing.T) {
	f, checks, notes, err := checker(t, "checks:\n- keys: '*.conf'\n  command: sh -c 'echo No; exit 1'\n", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.checkContent(t.Context(), checks, "configmap n/flags", nil, withValue("app.conf", "x")); err != nil {
		t.Fatal(err)
	}
	if got, want := notes.String(), "warning: configmap n/flags: data[app.conf]: No (the check \"sh\")\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatCantBeMeantIsAUsageError(t *testing.T) {
	for _, c := range []struct{ name, settings, flag, want string }{
		{"the flag", "", "maybe", `--check: "maybe" is none of warn, fail and off`},
		{"no list", "checks: x\n", "", "the setting checks must be a list of entries with keys and command"},
		{"an unknown word", "checks:\n- key: '*'\n  command: 'true'\n", "", "the setting checks must be a list of entries with keys and command"},
		{"no command", "checks:\n- keys: '*'\n", "", "the setting checks, entry 1: a check has keys, a pattern, and a command"},
		{"a broken pattern", "checks:\n- keys: '['\n  command: 'true'\n", "", "the setting checks, entry 1: the pattern of keys"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, _, err := checker(t, c.settings, c.flag)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || exitCode(err) != exitUsage {
				t.Errorf("got %v (exit code %d)", err, exitCode(err))
			}
		})
	}
}

func TestAnInterruptedCheckLetsNothingThrough(t *testing.T) {
	f, checks, _, err := checker(t, "", "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := f.checkContent(ctx, checks, "configmap n/flags", nil, withValue("a", "x")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
