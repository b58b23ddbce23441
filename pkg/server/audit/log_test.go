package audit

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func opened(t *testing.T, o Options) *Log {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "audit.log")
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func write(t *testing.T, l *Log, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if err := l.WriteLine([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
}

// content is that of a file, which nobody else may read.
func content(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("%s has mode %s", path, info.Mode())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestALogIsAppendedTo(t *testing.T) {
	for _, size := range []int{0, 1} {
		path := filepath.Join(t.TempDir(), "audit.log")
		for _, text := range []string{"a", "b"} {
			l, err := Open(Options{Path: path, MaxSize: size})
			if err != nil {
				t.Fatal(err)
			}
			write(t, l, text)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if err := l.WriteLine([]byte("x\n")); err == nil || l.Close() != nil {
				t.Errorf("closed, it says %v", err)
			}
		}
		if got := content(t, path); got != "a\nb\n" {
			t.Errorf("it has %q", got)
		}
	}
}

// A line that was cut by a crash is not gone on with.
func TestATornLineIsEnded(t *testing.T) {
	for _, size := range []int{0, 1} {
		path := filepath.Join(t.TempDir(), "audit.log")
		if err := os.WriteFile(path, []byte("a\n{\"half"), 0o600); err != nil {
			t.Fatal(err)
		}
		write(t, opened(t, Options{Path: path, MaxSize: size}), "b", "c")
		if got := content(t, path); got != "a\n{\"half\nb\nc\n" {
			t.Errorf("it has %q", got)
		}
	}
}

func TestWhatIsNoPlaceForALog(t *testing.T) {
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "no", "audit.log"), "/dev/null"} {
		if l, err := Open(Options{Path: path}); err == nil || l != nil {
			t.Errorf("%s is opened", path)
		}
	}
}

// Of many writers each line is whole, through all rotations, of which as many are kept
// as asked for.
func TestALogIsRotated(t *testing.T) {
	l := opened(t, Options{MaxSize: 1, MaxBackups: 2, Compress: true})
	filler := strings.Repeat("x", 16<<10)
	const writers, lines = 4, 80 // 5 MiB
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for i := range lines {
				if err := l.WriteLine(fmt.Appendf(nil, "%d %d %s\n", w, i, filler)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if err := l.Close(); err != nil { // which waits for the files to be put away
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(l.options.Path), "audit*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != 3 {
		t.Errorf("the files are %q", names)
	}
	for _, name := range names {
		text := content(t, name)
		if strings.HasSuffix(name, ".gz") {
			unzip, err := gzip.NewReader(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			all, err := io.ReadAll(unzip)
			if err != nil {
				t.Fatal(err)
			}
			text = string(all)
		} else if name != l.options.Path {
			t.Errorf("%s is not compressed", name)
		}
		if len(text) > 1<<20 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
		for line := range strings.Lines(text) {
			var w, i int
			var rest string
			if n, err := fmt.Sscanf(line, "%d %d %s\n", &w, &i, &rest); n != 3 || err != nil || rest != filler {
				t.Errorf("%s has a line of %d bytes: %v", name, len(line), err)
			}
		}
	}
}

// Somebody else may rotate it: by moving the file away, or by emptying it.
func TestALogIsRotatedByOthers(t *testing.T) {
	for _, size := range []int{0, 1} {
		l := opened(t, Options{MaxSize: size})
		path := l.options.Path
		write(t, l, "a")
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		write(t, l, "b") // it was not told yet, and notices
		if err := l.Reopen(); err != nil {
			t.Fatal(err)
		}
		write(t, l, "c")
		if moved, now := content(t, path+".1"), content(t, path); moved != "a\n" || now != "b\nc\n" {
			t.Errorf("the one has %q, the other %q", moved, now)
		}
	}
	l := opened(t, Options{})
	write(t, l, "a")
	if err := os.Truncate(l.options.Path, 0); err != nil {
		t.Fatal(err)
	}
	write(t, l, "b")
	if got := content(t, l.options.Path); got != "b\n" {
		t.Errorf("it has %q", got)
	}
}

// Where it can't be opened again, it goes on once its file is back.
func TestALogThatCantBeReopened(t *testing.T) {
	l := opened(t, Options{})
	folder := filepath.Dir(l.options.Path)
	if err := os.Rename(folder, folder+"-moved"); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err == nil {
		t.Error("it was reopened")
	}
	if err := os.Rename(folder+"-moved", folder); err != nil {
		t.Fatal(err)
	}
	write(t, l, "a")
	if got := content(t, l.options.Path); got != "a\n" || l.Err() != nil {
		t.Errorf("it has %q, and says %v", got, l.Err())
	}
}

// narrow takes as many bytes as there is room for.
type narrow struct {
	strings.Builder
	room int
}

func (n *narrow) Write(p []byte) (int, error) {
	took := min(len(p), n.room)
	n.room -= took
	n.Builder.Write(p[:took])
	if took < len(p) {
		return took, errors.New("no room")
	}
	return took, nil
}

// What can't be written is told once, and how much of it there was when it is over;
// the line that was cut does not spoil the next.
func TestALogThatCantBeWritten(t *testing.T) {
	var told strings.Builder
	full := &narrow{room: 3}
	l := To(full, slog.New(slog.NewTextHandler(&told, nil)))
	for i, want := range []bool{true, false, false, false} {
		if err := l.WriteLine([]byte("a\n")); (err == nil) != want || (l.Err() == nil) != want {
			t.Errorf("line %d: %v, %v", i, err, l.Err())
		}
	}
	full.room = 100
	write(t, l, "b", "c")
	if l.Err() != nil || full.String() != "a\na\nb\nc\n" {
		t.Errorf("%v, it has %q", l.Err(), full.String())
	}
	if lines := slices.Collect(strings.Lines(told.String())); len(lines) != 2 || !strings.Contains(lines[0], "level=ERROR") || !strings.Contains(lines[1], "lost=3") {
		t.Errorf("told %s", told.String())
	}
}
