package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// load reads the settings as the program would.
func load(t *testing.T, args ...string) (config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("cmserver", pflag.ContinueOnError)
	addFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return loadConfig(flags)
}

// A setting comes from the flag, else the variable, else the file, else it has
// its default.
func TestPrecedenceOfSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("request-timeout: 3s\nhistory-limit: 33\nin-memory: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name           string
		args           []string
		env            map[string]string
		timeout        time.Duration
		history        int
		memory, loudly bool
	}{
		{"default", nil, map[string]string{"CMSERVER_IN_MEMORY": "true"}, time.Minute, 10, true, false},
		{"file", []string{"--config", file}, nil, 3 * time.Second, 33, true, false},
		{"file named by a variable", nil, map[string]string{"CMSERVER_CONFIG": file}, 3 * time.Second, 33, true, false},
		{"variable over file", []string{"--config", file}, map[string]string{"CMSERVER_REQUEST_TIMEOUT": "2s", "CMSERVER_VERBOSE": "true"},
			2 * time.Second, 33, true, true},
		{"flag over all", []string{"--config", file, "--request-timeout", "1s", "-v=false"},
			map[string]string{"CMSERVER_REQUEST_TIMEOUT": "2s", "CMSERVER_VERBOSE": "true"}, time.Second, 33, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("HOME", t.TempDir())
			t.Setenv("XDG_CONFIG_HOME", "")
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			got, err := load(t, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got.RequestTimeout != c.timeout || got.HistoryLimit != c.history || (got.site.kind == inMemory) != c.memory || got.Verbose != c.loudly {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestDefaultFolders(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	got, err := load(t)
	if err != nil || got.site.dir != filepath.Join(home, ".local/state/cmserver") {
		t.Errorf("data in %q, %v", got.site.dir, err)
	}
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	if got, err = load(t); err != nil || got.site.dir != filepath.Join(home, "state/cmserver") {
		t.Errorf("data in %q, %v", got.site.dir, err)
	}
	folder := filepath.Join(home, ".config/cmserver")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "config.yaml"), []byte("listen: 127.0.0.1:9999\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err = load(t); err != nil || !slices.Equal(got.Listen, []string{"127.0.0.1:9999"}) {
		t.Errorf("listens on %q, %v", got.Listen, err)
	}
}

// What is kept has bounds.
func TestWhatIsKeptHasBounds(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	for arg, allowed := range map[string]bool{
		"--history-window=5m": true, "--history-window=24h": true, "--history-window=4m59s": false, "--history-window=25h": false,
		"--history-limit=1": true, "--history-limit=1000": true, "--history-limit=0": false, "--history-limit=1001": false,
		"--deleted-retention=0": true, "--deleted-retention=8784h": true, "--deleted-retention=-1s": false, "--deleted-retention=9000h": false,
		"--deleted-limit=1": true, "--deleted-limit=1000000": true, "--deleted-limit=0": false, "--deleted-limit=1000001": false,
	} {
		if _, err := load(t, arg); (err == nil) != allowed {
			t.Errorf("%s: %v", arg, err)
		}
	}
	for setting, want := range map[string]time.Duration{"0": -1, "1h": time.Hour} {
		c, err := load(t, "--deleted-retention="+setting)
		if got := c.deletedRetention(); err != nil || got != want {
			t.Errorf("--deleted-retention=%s: the store is set to %v, %v", setting, got, err)
		}
	}
}
