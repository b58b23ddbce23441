package local

import (
	"context"
	"errors"
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
	if n := len(s.fs.vitals.files); n < 2 || n > 12 {
		t.Errorf("%d files are looked after", n)
	}
}
