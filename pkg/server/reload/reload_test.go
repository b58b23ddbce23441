package reload_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/cmctl/pkg/server/reload"
)

// text makes a value of a file: its content, which must not be "bad".
func text(path string) func() (string, error) {
	return func() (string, error) {
		b, err := os.ReadFile(path)
		if err == nil && string(b) == "bad" {
			err = errors.New("bad content")
		}
		return string(b), err
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAChangeIsTakenOnceItHasSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		put(t, path, "one")
		var log strings.Builder
		v, err := reload.New("the file", []string{path}, slog.New(slog.NewTextHandler(&log, nil)), text(path))
		if err != nil {
			t.Fatal(err)
		}
		go v.Run(t.Context())
		after := func(d time.Duration, want string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if v.Get() != want {
				t.Errorf("the value is %q, want %q", v.Get(), want)
			}
		}
		after(time.Hour, "one")
		put(t, path, "tw")
		after(time.Second, "one")
		put(t, path, "two")
		after(time.Second, "one")
		after(time.Second, "two")

		put(t, path, "bad")
		after(5*time.Second, "two")
		if err := v.Err(); err == nil || !strings.Contains(err.Error(), "bad content") {
			t.Errorf("of the bad file it says %v", err)
		}
		if n := strings.Count(log.String(), "bad content"); n != 1 {
			t.Errorf("the log tells %d times of the bad file:\n%s", n, log.String())
		}
		put(t, path, "three")
		after(2*time.Second, "three")
		if err := v.Err(); err != nil {
			t.Errorf("of a sound file it says %v", err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		after(2*time.Second, "three")
		if v.Err() == nil {
			t.Error("a missing file is no matter")
		}
	})
}

// Kubernetes switches mounted files by a link to their folder.
func TestLinksAndFoldersAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		for _, name := range []string{"a", "b"} {
			if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, name, "file"), name)
		}
		link := filepath.Join(dir, "now")
		if err := os.Symlink("a", link); err != nil {
			t.Fatal(err)
		}
		v, err := reload.New("the folder", []string{link}, slog.New(slog.DiscardHandler), text(filepath.Join(link, "file")))
		if err != nil {
			t.Fatal(err)
		}
		go v.Run(t.Context())
		if err := errors.Join(os.Symlink("b", link+".new"), os.Rename(link+".new", link)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if v.Get() != "b" {
			t.Errorf("the value is %q", v.Get())
		}
	})
}

func TestTheFirstTimeMustSucceed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	if _, err := reload.New("the file", []string{path}, slog.New(slog.DiscardHandler), text(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
}
