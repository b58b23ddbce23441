package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/cmctl/pkg/server/store"
)

// A log or manifest that goes while the store is open takes no more writes, for the
// next start would not find them; what was acknowledged can still be read and backed up.
func TestAFileThatTheNextStartNeedsGoes(t *testing.T) {
	copyOver := func(path string) error {
		data, err := os.ReadFile(path)
		return errors.Join(err, os.Remove(path), os.WriteFile(path, data, 0o600))
	}
	for pattern, harms := range map[string]map[string]func(string) error{
		"*.log": {
			"removed":   os.Remove,
			"replaced":  copyOver,
			"cut short": func(path string) error { return os.Truncate(path, 5) },
		},
		"MANIFEST-*":        {"removed": os.Remove, "cut short": func(path string) error { return os.Truncate(path, 5) }},
		"marker.manifest.*": {"removed": os.Remove},
	} {
		for what, harm := range harms {
			t.Run(pattern+" "+what, func(t *testing.T) {
				s, dir, _ := openDoomed(t)
				rev := put(t, s, "a", "1")
				ok(t, s.Healthy())
				files, err := filepath.Glob(filepath.Join(dir, pattern))
				ok(t, err)
				path := files[len(files)-1] // the newest
				ok(t, harm(path))
				_, err = s.Commit(context.Background(), store.Txn{Writes: []store.Record{{Key: "a", Value: []byte("2")}}})
				for _, err := range []error{err, s.Healthy()} {
					if !errors.Is(err, store.ErrFailed) || !strings.Contains(err.Error(), filepath.Base(path)+" was "+what) || !strings.Contains(err.Error(), "cmserver backup") {
						t.Errorf("error is %v", err)
					}
				}
				if info, err := s.Backup(t.Context(), io.Discard); err != nil || info.Revision != rev {
					t.Errorf("backup: %+v, %v", info, err)
				}
			})
		}
	}
}

// Logs come and go in the course of things.
func TestFilesThatPebbleRemovesAreNotMissed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, memTableSize: 256 << 10})
	for range 200 {
		put(t, s, "a", strings.Repeat("x", 50_000))
		ok(t, s.Healthy())
	}
	v := s.fs.vitals
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := len(v.files); n < 2 || n > 12 {
		t.Errorf("%d files are looked after", n)
	}
}

// Whichever file goes while a store is open that was there before: either that is
// noticed, or a start after a crash finds everything.
func TestAnyFileGoes(t *testing.T) {
	for n := 0; ; n++ {
		s, dir, crashed := openDoomed(t)
		put(t, s, "a", strings.Repeat("1", 10_000))
		ok(t, s.db.Flush())
		ok(t, s.Close())
		s, err := Open(Options{Dir: dir, verifyRate: -1})
		ok(t, err)
		t.Cleanup(func() { endFailed(t, s) })
		put(t, s, "b", "1")
		names, err := s.opts.FS.List(dir)
		ok(t, err)
		if n == len(names) {
			break
		}
		s.checkTables()
		ok(t, s.Healthy())
		ok(t, os.Remove(filepath.Join(dir, names[n])))
		s.checkTables()
		if err := s.Healthy(); err != nil {
			if !errors.Is(err, store.ErrFailed) || !strings.Contains(err.Error(), names[n]) && names[n] != lockFile {
				t.Errorf("%s: %v", names[n], err)
			}
			continue
		}
		if strings.HasSuffix(names[n], ".sst") || strings.HasPrefix(names[n], "marker.") {
			t.Errorf("%s is not missed", names[n])
		}
		ok(t, os.CopyFS(crashed, os.DirFS(dir)))
		next, err := Open(Options{Dir: crashed})
		if err != nil {
			t.Errorf("%s was not missed, and then: %v", names[n], err)
			continue
		}
		for _, key := range []store.Key{"a", "b"} {
			if _, err := next.Get(t.Context(), key, 0); err != nil {
				t.Errorf("%s was not missed, and then: %s: %v", names[n], key, err)
			}
		}
		ok(t, next.Close())
	}
}

// A table that is cut can't be read by the next start either.
func TestATableIsCut(t *testing.T) {
	s, dir, _ := openDoomed(t)
	put(t, s, "a", "1")
	ok(t, s.db.Flush())
	name := tableNames(t, s)[0]
	ok(t, os.Truncate(filepath.Join(dir, name), 100))
	s.checkTables()
	if err := s.Healthy(); !errors.Is(err, store.ErrTaken) || !strings.Contains(err.Error(), name+" was cut short") {
		t.Errorf("health: %v", err)
	}
}

// Tables come and go in the course of things as well.
func TestTablesThatCompactionRemovesAreNotMissed(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), memTableSize: 256 << 10})
	for range 200 {
		put(t, s, "a", strings.Repeat("x", 50_000))
		s.checkTables()
		ok(t, s.Healthy())
	}
}

// Of a thousand tables it takes a thousand times the figure for one.
func BenchmarkCheckTables(b *testing.B) {
	s, err := Open(Options{Dir: b.TempDir()})
	ok(b, err)
	defer s.Close()
	for n := range 20 {
		put(b, s, store.Key(fmt.Sprintf("k%02d", n)), "1")
		ok(b, s.db.Flush())
	}
	tables, err := s.tables()
	ok(b, err)
	b.ReportAllocs()
	for b.Loop() {
		s.checkTables()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(tables)), "ns/table")
}
