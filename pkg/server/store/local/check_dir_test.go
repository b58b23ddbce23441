package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
)

func setRaw(s *Store, row, value []byte) error { return s.db.Set(row, value, pebble.Sync) }

// checkedDir is a directory with a store of three objects, one of them long, some
// of it in a table file and the rest in the log.
func checkedDir(t *testing.T, damage func(s *Store) error) string {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, InitialVersion: 1})
	ok(t, err)
	put(t, s, "configmaps/a/x", "1")
	put(t, s, "configmaps/a/y", "1")
	put(t, s, "configmaps/b/long", strings.Repeat("x", 2*defaultApartAbove))
	ok(t, s.db.Flush())
	for range 3 {
		put(t, s, "configmaps/a/x", strings.Repeat("2", 20_000)) // the log gets longer than one of its blocks
	}
	if damage != nil {
		ok(t, damage(s))
	}
	ok(t, s.Close())
	return dir
}

func TestCheckOfAWholeDirectory(t *testing.T) {
	for format := range uint64(formatVersion) {
		t.Run(fmt.Sprint("format ", format+1), func(t *testing.T) { checkWhole(t, format+1) })
	}
}

// A directory of an older format is as good, and stays of that format.
func checkWhole(t *testing.T, format uint64) {
	dir := checkedDir(t, func(s *Store) error { return setRaw(s, metaFormat, encodeU64(format)) })
	before := contents(t, dir)
	r, err := CheckDir(t.Context(), Options{Dir: dir})
	if err != nil || len(r.Findings) > 0 || r.Objects != 3 || r.Versions != 6 || r.State.Current != 6 {
		t.Errorf("%+v, %v", r, err)
	}
	if after := contents(t, dir); !slices.Equal(before, after) {
		t.Errorf("the directory changed")
	}
}

// What is damaged is named: the version, or the file.
func TestCheckNamesWhatIsDamaged(t *testing.T) {
	for name, c := range map[string]struct {
		rows  func(s *Store) error // while it is open
		files func(dir string) error
		says  []string
	}{
		"a record": {
			rows: func(s *Store) error { return setRaw(s, recordKey("configmaps/a/y", 2), []byte("nonsense")) },
			says: []string{"configmaps/a/y at version 2: checksum does not match"},
		},
		"two records": {
			rows: func(s *Store) error {
				return errors.Join(setRaw(s, recordKey("configmaps/a/x", 1), nil), setRaw(s, recordKey("configmaps/a/y", 2), []byte("nonsense")))
			},
			says: []string{"configmaps/a/x at version 1: cut short", "configmaps/a/y at version 2: checksum does not match"},
		},
		"a value": {
			rows: func(s *Store) error { return setRaw(s, valueKey("configmaps/b/long", 3), []byte("x")) },
			says: []string{"configmaps/b/long at version 3: its value is not what was written"},
		},
		"a value that is gone": {
			rows: func(s *Store) error { return s.db.Delete(valueKey("configmaps/b/long", 3), pebble.Sync) },
			says: []string{"configmaps/b/long at version 3: its value is gone"},
		},
		"a record that is gone": {
			rows: func(s *Store) error { return s.db.Delete(recordKey("configmaps/a/y", 2), pebble.Sync) },
			says: []string{"configmaps/a/y at version 2: it is gone"},
		},
		"the counter": {
			rows: func(s *Store) error { return s.db.Delete(metaCurrent, pebble.Sync) },
			says: []string{"current revision"},
		},
		"the compacted revision": {
			rows: func(s *Store) error { return setRaw(s, metaCompacted, []byte("x")) },
			says: []string{"compacted is 1 bytes long"},
		},
		"the format": {
			rows: func(s *Store) error { return s.db.Delete(metaFormat, pebble.Sync) },
			says: []string{`the row "format" is gone`},
		},
		"a list of keys": {
			rows: func(s *Store) error { return setRaw(s, revisionKey(3), []byte("x")) },
			says: []string{"keys of revision 3"},
		},
		"a list of keys that is gone": {
			rows: func(s *Store) error { return s.db.Delete(revisionKey(3), pebble.Sync) },
			says: []string{"version 3 is missing"},
		},
		"bytes in a table": {
			files: flipByte("*.sst", 100),
			says:  []string{"file 000005.sst: ", "checksum mismatch"},
		},
		"a table that is gone": {
			files: func(dir string) error { return os.Remove(newest(dir, "*.sst")) },
			says:  []string{"000005"},
		},
		"bytes in the log": {
			files: flipByte("*.log", 100),
			says:  []string{"invalid chunk"},
		},
		"the mark of what was acknowledged": {
			files: flipByte(markFile, 3),
			says:  []string{"file acknowledged: it is damaged"},
		},
		"all but the mark": {
			files: func(dir string) error {
				names, err := filepath.Glob(filepath.Join(dir, "*"))
				for _, name := range names {
					if base := filepath.Base(name); base != markFile && base != lockFile {
						err = errors.Join(err, os.Remove(name))
					}
				}
				return err
			},
			says: []string{"there is acknowledged, but no marker.manifest file"},
		},
		"half a mark": {
			files: func(dir string) error { return os.Truncate(filepath.Join(dir, markFile), 6) },
			says:  []string{"file acknowledged: it is damaged"},
		},
		"the list of files": {
			files: flipByte("MANIFEST-*", 20),
			says:  []string{"MANIFEST"},
		},
		"no list of files": {
			files: func(dir string) error { return os.Remove(newest(dir, "MANIFEST-*")) },
			says:  []string{"MANIFEST"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := checkedDir(t, c.rows)
			if c.files != nil {
				ok(t, c.files(dir))
			}
			before := contents(t, dir)
			r, err := CheckDir(t.Context(), Options{Dir: dir})
			if err != nil || len(r.Findings) == 0 {
				t.Fatalf("found %v, %v", r.Findings, err)
			}
			var found strings.Builder
			for _, f := range r.Findings {
				found.WriteString(f.String() + "\n")
			}
			t.Log(found.String())
			for _, part := range c.says {
				if !strings.Contains(found.String(), part) {
					t.Errorf("%q is not in:\n%s", part, &found)
				}
			}
			if after := contents(t, dir); !slices.Equal(before, after) {
				t.Errorf("the directory changed")
			}
		})
	}
}

// newest is the last of the files with such names.
func newest(dir, pattern string) string {
	found, _ := filepath.Glob(filepath.Join(dir, pattern))
	return slices.Max(append(found, dir))
}

func flipByte(pattern string, at int) func(dir string) error {
	return func(dir string) error {
		path := newest(dir, pattern)
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b[at] ^= 1
		return os.WriteFile(path, b, 0o600)
	}
}

// In a table of many blocks one is damaged. The versions in it are named, those
// around it are not, and a second damage elsewhere is found too.
func TestCheckGoesOnBehindADamagedBlock(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, InitialVersion: 1})
	ok(t, err)
	r := crashRand(t)
	var txn store.Txn
	for i := range 300 {
		noise := make([]byte, 1000) // does not compress, so that a block holds few
		for j := range noise {
			noise[j] = byte(r.IntN(256))
		}
		txn.Writes = append(txn.Writes, store.Record{Key: store.Key(fmt.Sprintf("k%03d", i)), Value: noise})
	}
	_, err = s.Commit(t.Context(), txn)
	ok(t, err)
	ok(t, setRaw(s, recordKey("k298", 1), []byte("nonsense")))
	ok(t, s.db.Flush())
	ok(t, s.Close())
	ok(t, flipByte("*.sst", 100_000)(dir))
	report, err := CheckDir(t.Context(), Options{Dir: dir})
	ok(t, err)
	named := map[store.Key]bool{}
	for _, f := range report.Findings {
		named[f.Key] = true
	}
	if len(named) < 3 || len(named) > 100 || !named["k298"] || named["k000"] || named["k297"] {
		t.Errorf("named: %v", named)
	}
	if all := fmt.Sprint(report.Findings); !strings.Contains(all, "what lies between k") || !strings.Contains(all, ".sst: ") {
		t.Errorf("found: %s", all)
	}
	t.Log(report.Findings)
}

// What ends all of a table is met by each step of a check, and told by the first.
func TestCheckNamesDamageOnce(t *testing.T) {
	for what, back := range map[string]int{"the footer": 30, "the index of blocks": 100} {
		t.Run(what, func(t *testing.T) {
			dir := checkedDir(t, func(s *Store) error { return s.db.Flush() })
			info, err := os.Stat(newest(dir, "*.sst"))
			ok(t, err)
			ok(t, flipByte("*.sst", int(info.Size())-back)(dir))
			report, err := CheckDir(t.Context(), Options{Dir: dir})
			ok(t, err)
			files := 0
			for _, f := range report.Findings {
				if f.File != "" {
					files++
				}
				if strings.Contains(f.String(), "pebble") || strings.Count(f.String(), "file ") > 1 {
					t.Errorf("found: %s", f)
				}
			}
			if files != 1 {
				t.Errorf("found: %q", report.Findings)
			}
		})
	}
}

func TestWhatCanNotBeChecked(t *testing.T) {
	inUse := checkedDir(t, nil)
	s, err := Open(Options{Dir: inUse})
	ok(t, err)
	defer s.Close()
	newer := checkedDir(t, func(s *Store) error { return setRaw(s, metaFormat, encodeU64(formatVersion+1)) })
	for want, dir := range map[error]string{
		store.ErrLocked:      inUse,
		store.ErrNewerFormat: newer,
		store.ErrNoStore:     t.TempDir(),
	} {
		if r, err := CheckDir(t.Context(), Options{Dir: dir}); !errors.Is(err, want) || len(r.Findings) > 0 {
			t.Errorf("%+v, %v; want %v", r, err, want)
		}
	}
}
