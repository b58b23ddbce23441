//go:build unix

package reload_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/cmctl/pkg/server/reload"
)

func pipe(t *testing.T, path string) string {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What could keep its reader waiting is refused, also behind a link.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	file, link, linked := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "linked")
	put(t, file, "content")
	fifo := pipe(t, filepath.Join(dir, "fifo"))
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := errors.Join(os.Symlink(file, link), os.Symlink(fifo, linked)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		file: nil, link: nil, fifo: reload.ErrNotRegular, linked: reload.ErrNotRegular, socket: reload.ErrNotRegular,
		"/dev/zero": reload.ErrNotRegular, dir: syscall.EISDIR, filepath.Join(dir, "none"): fs.ErrNotExist,
	} {
		content, err := reload.ReadFile(path)
		if !errors.Is(err, want) || (want == nil && string(content) != "content") {
			t.Errorf("%s: %q, %v", path, content, err)
		}
	}
}

// A pipe beside the files, or in their place, keeps nobody waiting: neither the start,
// nor the looks, nor the end.
func TestPipesKeepNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		put(t, path, "one")
		pipe(t, filepath.Join(dir, "fifo"))
		v, err := reload.New("the folder", []string{dir}, slog.New(slog.DiscardHandler), func() (string, error) {
			b, err := reload.ReadFile(path)
			return string(b), err
		})
		if err != nil {
			t.Fatal(err)
		}
		go v.Run(t.Context())
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		pipe(t, path)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if err := v.Err(); v.Get() != "one" || !errors.Is(err, reload.ErrNotRegular) {
			t.Errorf("got %q, %v", v.Get(), err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		put(t, path, "two")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if err := v.Err(); v.Get() != "two" || err != nil {
			t.Errorf("got %q, %v", v.Get(), err)
		}
	})
}
