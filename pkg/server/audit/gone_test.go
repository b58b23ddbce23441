package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A log that is deleted or moved away while it is written goes on at its path, and
// this is told until somebody says that they know.
func TestALogThatIsTakenAway(t *testing.T) {
	for name, take := range map[string]func(path string) error{
		"deleted": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
	} {
		for _, size := range []int{0, 1} {
			t.Run(name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "audit.log")
				l := opened(t, Options{Path: path, MaxSize: size})
				write(t, l, "a")
				if l.Look(); l.Err() != nil {
					t.Errorf("of a log that is there it says %v", l.Err())
				}
				if err := take(path); err != nil {
					t.Fatal(err)
				}
				write(t, l, "b")
				if got := content(t, path); got != "b\n" {
					t.Errorf("after a line there is %q", got)
				}
				if err := l.Err(); err == nil || !strings.Contains(err.Error(), path) {
					t.Errorf("it says %v", err)
				}
				if err := take(path); err != nil {
					t.Fatal(err)
				}
				l.Look()
				if got := content(t, path); got != "" {
					t.Errorf("after a look there is %q", got)
				}
				write(t, l, "c")
				if err := l.Reopen(); err != nil || l.Err() != nil {
					t.Errorf("opened again it says %v, %v", err, l.Err())
				}
				if write(t, l, "d"); content(t, path) != "c\nd\n" {
					t.Errorf("in the end there is %q", content(t, path))
				}
			})
		}
	}
}

// Where no new file can be made, lines fail, so that a strict server refuses what it
// can't log.
func TestALogWhoseFolderIsTakenAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l := opened(t, Options{Path: filepath.Join(dir, "audit.log"), MaxSize: 1})
	write(t, l, "a")
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := l.WriteLine([]byte("b\n")); err == nil || l.Err() == nil {
		t.Errorf("a line without a place gives %v, and then %v", err, l.Err())
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if write(t, l, "c"); content(t, filepath.Join(dir, "audit.log")) != "c\n" {
		t.Error("it does not go on")
	}
}

// The log's own rotation takes nothing away.
func TestRotationIsNoLoss(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := opened(t, Options{Path: path, MaxSize: 1})
	line := strings.Repeat("x", 300<<10)
	for range 12 {
		write(t, l, line)
		if l.Look(); l.Err() != nil {
			t.Fatal(l.Err())
		}
	}
	if files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(files) < 4 {
		t.Errorf("there are %q, %v", files, err)
	}
}
