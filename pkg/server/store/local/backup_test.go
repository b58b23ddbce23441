package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/archive"
)

// backupOf is a backup of the store.
func backupOf(tb testing.TB, s *Store) []byte {
	tb.Helper()
	var b bytes.Buffer
	_, err := s.Backup(context.Background(), &b)
	ok(tb, err)
	return b.Bytes()
}

func begun(tb testing.TB, backup []byte) *BackupReader {
	tb.Helper()
	b, err := NewBackupReader(bytes.NewReader(backup), nil)
	ok(tb, err)
	return b
}

// restored is the store that comes of a backup.
func restored(tb testing.TB, backup []byte, o Options) *Store {
	tb.Helper()
	current, err := begun(tb, backup).Restore(context.Background(), RestoreOptions{Dir: o.Dir, FS: o.FS, batchBytes: 3000})
	ok(tb, err)
	s := open(tb, o)
	if got := s.State(); got.Current != current || got.Compacted != current {
		tb.Errorf("restored at %d, is at %+v", current, got)
	}
	return s
}

// lively fills a store with versions of all kinds: labels, long values, empty ones,
// deletions, objects made anew.
func lively(tb testing.TB, s *Store, n int) {
	tb.Helper()
	r := crashRand(tb)
	for i := range n {
		rec := store.Record{
			Key: store.Key(fmt.Sprintf("configmaps/n%d/c%d", r.IntN(3), r.IntN(20))), VersionAt: 0, UID: fmt.Sprint("uid", r.IntN(5)),
			Value: []byte(strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(3000))), Brief: store.Brief{Keys: i}, Labels: map[string]string{"n": fmt.Sprint(i), "": ""},
			Meta: store.Meta{Verb: "update", Manager: "m\x00", User: "ü", WriteID: fmt.Sprint(i), Time: time.UnixMilli(int64(i) * 1e9)},
		}
		if r.IntN(5) == 0 {
			rec.Deleted, rec.Value, rec.Labels, rec.Brief = true, nil, nil, store.Brief{}
		}
		rec.Brief.Head = len(rec.Value) / 3
		_, err := s.Commit(context.Background(), store.Txn{Writes: []store.Record{rec}})
		ok(tb, err)
	}
}

// all is everything that the store can show: the live objects, each with all of its
// versions.
func all(tb testing.TB, s *Store) map[store.Key][]store.Record {
	tb.Helper()
	ctx := context.Background()
	page, err := s.List(ctx, store.ListOptions{})
	ok(tb, err)
	found := map[store.Key][]store.Record{}
	for _, rec := range page.Records {
		heads, err := s.History(ctx, rec.Key, 0)
		ok(tb, err)
		for i, head := range heads {
			whole, err := s.Version(ctx, rec.Key, head.Revision)
			ok(tb, err)
			if i == 0 && !reflect.DeepEqual(whole, rec) {
				tb.Errorf("%s: newest version %+v, listed %+v", rec.Key, whole, rec)
			}
			found[rec.Key] = append(found[rec.Key], whole)
		}
	}
	return found
}

func TestARestoredStoreHasEverythingThatWasBackedUp(t *testing.T) {
	for name, compact := range map[string]bool{"not compacted": false, "compacted": true} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{InMemory: true, HistoryLimit: 3, apartAbove: 1000, InlineValueSize: 500})
			lively(t, s, 500)
			if compact {
				ok(t, s.Compact(t.Context(), s.State().Current-100))
			}
			want, before := all(t, s), s.State().Current
			backup := backupOf(t, s)
			put(t, s, "configmaps/n0/later", "x")

			b := begun(t, backup)
			ok(t, b.Verify(t.Context()))
			if b.Info.Revision != before || b.Info.Objects != len(want) || time.Since(b.Info.Made) > time.Minute {
				t.Errorf("info %+v", b.Info)
			}
			again := restored(t, backup, mem(vfs.NewMem()))
			if got := all(t, again); !reflect.DeepEqual(got, want) {
				t.Errorf("restored %d objects, want %d, or others", len(got), len(want))
			}
			if current := again.State().Current; current < before+LeastAdvance {
				t.Errorf("goes on at %d, backed up at %d", current, before)
			}
		})
	}
}

// A record that gains a field must not lose it in a backup.
func TestABackupCarriesEveryFieldOfARecord(t *testing.T) {
	rec := store.Record{
		Key: "k", Revision: 7, Value: []byte("value"), VersionAt: 2, Labels: map[string]string{"a": "b"}, UID: "u",
		Brief: store.Brief{Created: time.Unix(7, 0).UTC(), Keys: 3, Head: 4},
		Meta:  store.Meta{Verb: "v", Manager: "m", User: "u", Time: time.UnixMilli(5).UTC(), WriteID: "w"},
	}
	for v := reflect.ValueOf(rec); ; v = v.FieldByName("Meta") {
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "Deleted" {
				t.Errorf("set %s in this test", name)
			}
		}
		if v.Type() == reflect.TypeOf(store.Meta{}) {
			break
		}
	}
	got, err := decodeEntry(appendEntry(nil, &rec))
	if err != nil || !reflect.DeepEqual(got, rec) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Writers go on while a backup is taken: it shows one state. Two keys that are
// always written together are equal in it.
func TestABackupIsOneState(t *testing.T) {
	s := open(t, Options{InMemory: true, InitialVersion: 1, memTableSize: 128 << 10})
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	for w := range 4 {
		work.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				value := []byte(fmt.Sprintf("%d", n))
				_, err := s.Commit(context.Background(), store.Txn{Writes: []store.Record{
					{Key: store.Key(fmt.Sprintf("a%d", w)), Value: value}, {Key: store.Key(fmt.Sprintf("z%d", w)), Value: value},
				}})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Go(func() {
		for ctx.Err() == nil {
			if err := s.Compact(context.Background(), s.State().Current); err != nil {
				t.Error(err)
			}
		}
	})
	for range 10 {
		at := s.State().Current
		again := restored(t, backupOf(t, s), mem(vfs.NewMem()))
		newest := store.Revision(0)
		for w := range 4 {
			a, errA := again.Get(ctx, store.Key(fmt.Sprintf("a%d", w)), 0)
			z, errZ := again.Get(ctx, store.Key(fmt.Sprintf("z%d", w)), 0)
			if !errors.Is(errA, errZ) || a.Revision != z.Revision || !bytes.Equal(a.Value, z.Value) {
				t.Errorf("writer %d: %d %q and %d %q; %v, %v", w, a.Revision, a.Value, z.Revision, z.Value, errA, errZ)
			}
			newest = max(newest, a.Revision)
		}
		if newest < at {
			t.Errorf("acknowledged up to %d before the backup, it has %d", at, newest)
		}
	}
	stop()
	work.Wait()
}

// What is not acknowledged yet is not in a backup, and a backup waits for no sync.
func TestABackupHasWhatIsDurableAlone(t *testing.T) {
	s, f, g := openGated(t)
	write := commit(s, store.Txn{Writes: []store.Record{{Key: "x", Value: []byte("1")}}})
	<-g.entered
	b := begun(t, backupOf(t, s))
	ok(t, b.Verify(t.Context()))
	if b.Info.Versions != 0 || b.Info.Objects != 0 || b.Info.Revision != s.State().Current {
		t.Errorf("info %+v", b.Info)
	}
	f.fail.Store(nil)
	g.let <- struct{}{}
	ok(t, (<-write).err)
}

// A backup whose reader stands still holds up neither writers nor readers, and
// closing the store ends it.
func TestAStandingBackupHoldsUpNobody(t *testing.T) {
	s, err := Open(Options{InMemory: true})
	ok(t, err)
	for i := range 300 {
		put(t, s, store.Key(fmt.Sprintf("k%d", i)), strings.Repeat("x", 10_000))
	}
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := s.Backup(context.Background(), w)
		done <- err
	}()
	_, err = io.ReadFull(r, make([]byte, 100)) // it is under way
	ok(t, err)
	put(t, s, "k", "during")
	ok(t, s.Compact(t.Context(), s.State().Current))
	_, err = s.Get(t.Context(), "k", 0)
	ok(t, err)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	for !s.isClosing() {
		time.Sleep(time.Millisecond)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }() // it ends with the pipe
	if err := <-done; !errors.Is(err, store.ErrClosed) {
		t.Errorf("backup of a store that is being closed: %v", err)
	}
	ok(t, <-closed)
	ok(t, w.Close())
}

// A store that takes no more writes can still be backed up.
func TestAFailedStoreCanBeBackedUp(t *testing.T) {
	f := newFaulty()
	s := openFaulty(t, f)
	put(t, s, "a", "1")
	s.fail(errDisk)
	defer endFailed(t, s)
	if got := restored(t, backupOf(t, s), mem(vfs.NewMem())); len(all(t, got)) != 1 {
		t.Error("the object is not there")
	}
}

// Damage in the store is not carried into a backup.
func TestADamagedStoreMakesNoBackup(t *testing.T) {
	for name, damage := range map[string]func(s *Store) error{
		"record": func(s *Store) error { return setRaw(s, recordKey("b", 2), []byte("nonsense")) },
		"value":  func(s *Store) error { return setRaw(s, valueKey("long", 3), []byte("another")) },
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(Options{InMemory: true, InitialVersion: 1})
			ok(t, err)
			defer s.Close()
			put(t, s, "a", "1")
			put(t, s, "b", "1")
			put(t, s, "long", strings.Repeat("x", 2*defaultApartAbove))
			ok(t, damage(s))
			var b bytes.Buffer
			if _, err := s.Backup(t.Context(), &b); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("backup of damaged data: %v", err)
			}
			if r, err := NewBackupReader(&b, nil); err == nil {
				err = r.Verify(t.Context())
				if !errors.Is(err, archive.ErrDamaged) {
					t.Errorf("what it wrote is taken for a backup: %v", err)
				}
			}
		})
	}
}

// The header and the entries of a backup that someone made by hand must agree.
func TestABackupThatDoesNotAddUp(t *testing.T) {
	entry := func(key store.Key, rev store.Revision) []byte {
		return appendEntry(nil, &store.Record{Key: key, Revision: rev, Value: []byte("x")})
	}
	for name, c := range map[string]struct {
		header  string
		entries [][]byte
	}{
		"no header":              {``, nil},
		"a negative revision":    {`{"resourceVersion":"-1"}`, nil},
		"objects missing":        {`{"resourceVersion":"9","objects":2}`, [][]byte{entry("a", 1)}},
		"beyond the newest":      {`{"resourceVersion":"9","objects":1}`, [][]byte{entry("a", 10)}},
		"keys out of order":      {`{"resourceVersion":"9","objects":2}`, [][]byte{entry("b", 1), entry("a", 2)}},
		"revisions out of order": {`{"resourceVersion":"9","objects":1}`, [][]byte{entry("a", 1), entry("a", 2)}},
		"a version twice":        {`{"resourceVersion":"9","objects":1}`, [][]byte{entry("a", 1), entry("a", 1)}},
		"no entry":               {`{"resourceVersion":"9","objects":1}`, [][]byte{[]byte("nonsense")}},
		"no revision":            {`{"resourceVersion":"9","objects":1}`, [][]byte{entry("a", 0)}},
		"a damaged record":       {`{"resourceVersion":"9","objects":1}`, [][]byte{append(entry("a", 1), 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			w, err := archive.NewWriter(&b, []byte(c.header))
			ok(t, err)
			for _, e := range c.entries {
				ok(t, w.Add(e))
			}
			ok(t, w.Close())
			r, err := NewBackupReader(&b, nil)
			if err == nil {
				err = r.Verify(t.Context())
			}
			if !errors.Is(err, archive.ErrDamaged) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// FuzzBackupEntry: any bytes are refused, or are a record that is encoded again.
func FuzzBackupEntry(f *testing.F) {
	f.Add(appendEntry(nil, &store.Record{Key: "a", Revision: 1, Value: []byte("x"), VersionAt: 1}))
	f.Add(appendEntry(nil, &store.Record{Key: "a", Revision: 1, Deleted: true, Meta: store.Meta{Time: time.UnixMilli(1)}}))
	f.Add([]byte{1, 'a', 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		rec, err := decodeEntry(b)
		if err != nil {
			return
		}
		again, err := decodeEntry(appendEntry(nil, &rec))
		if err != nil || !reflect.DeepEqual(rec, again) {
			t.Errorf("%+v, encoded again %+v, %v", rec, again, err)
		}
	})
}
