package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
	"example.com/cmctl/pkg/server/store/transfer"
)

// above is where the versions of targets begin.
const above = 10_000

func open(t *testing.T, first store.Revision) store.Store {
	t.Helper()
	st, err := local.Open(local.Options{InMemory: true, InitialVersion: first})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// begin is when the tests' records were written: not long ago, so that compactions keep
// what came before a deletion.
var begin = time.Now().UTC().Truncate(time.Second)

// version is one of an object, told by its number.
func version(key store.Key, n int) store.Record {
	value := fmt.Sprintf(`{"n":"%d"}`, n) + strings.Repeat(" ", n%3*3000) // some longer than what stores hold in memory
	return store.Record{
		Key: key, Value: []byte(value), VersionAt: 1, UID: "uid-" + string(key),
		Labels: map[string]string{"n": fmt.Sprint(n)},
		Brief:  store.Brief{Created: begin, Keys: n, Head: 3},
		Meta:   store.Meta{Verb: "update", Manager: "m", User: "jane", WriteID: fmt.Sprint("w", n), Time: begin.Add(time.Duration(n) * time.Millisecond)},
	}
}

func gone(key store.Key, n int) store.Record {
	rec := version(key, n)
	return store.Record{Key: key, Deleted: true, UID: rec.UID, Meta: rec.Meta}
}

func put(t *testing.T, st store.Store, records ...store.Record) {
	t.Helper()
	for _, rec := range records {
		if _, err := st.Commit(t.Context(), store.Txn{Writes: []store.Record{rec}}); err != nil {
			t.Fatal(err)
		}
	}
}

// told is all that a store tells of a key: its history, oldest first, with the values.
func told(t *testing.T, st store.Store, key store.Key) []store.Record {
	t.Helper()
	heads, err := st.History(t.Context(), key, 0)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	var all []store.Record
	for _, head := range slices.Backward(heads) {
		rec, err := st.Version(t.Context(), key, head.Revision)
		if err != nil {
			t.Fatal(err)
		}
		rec.Revision = 0 // which is another's
		all = append(all, rec)
	}
	return all
}

// holds demands that a copy tells of the keys what its source does.
func holds(t *testing.T, from, to store.Store, keys ...store.Key) {
	t.Helper()
	for _, key := range keys {
		got, want := told(t, to, key), told(t, from, key)
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s has %d versions that are not the %d of the source", key, len(got), len(want))
		}
	}
}

func TestACopyHasEachVersionOfWhatIsThere(t *testing.T) {
	from, to := open(t, 1), open(t, above)
	const many = 1200 // more than fit on a page
	for n := range many {
		put(t, from, version(store.Key(fmt.Sprintf("cm/%04d", n)), n))
	}
	put(t, from, version("cm/a", 1), version("cm/a", 2), version("cm/a", 3),
		version("cm/b", 1), gone("cm/b", 2), version("cm/b", 3),
		version("cm/c", 1), gone("cm/c", 2))
	var done, of int
	r, err := transfer.Copy(t.Context(), from, to, func(d, o int) { done, of = d, o })
	if err != nil {
		t.Fatal(err)
	}
	if r.Objects != many+2 || r.Versions != many+6 || r.From != from.State().Current || r.To != to.State().Current {
		t.Errorf("it reports %+v", r)
	}
	if done != r.Objects || of != r.Objects {
		t.Errorf("it told of %d of %d objects", done, of)
	}
	holds(t, from, to, "cm/a", "cm/b", "cm/0000", "cm/0002", "cm/1199")
	if left := told(t, to, "cm/c"); len(left) > 0 {
		t.Errorf("an object that was deleted is copied: %v", left)
	}
	if unfinished, err := transfer.Unfinished(t.Context(), to); unfinished || err != nil {
		t.Errorf("it is unfinished: %v, %v", unfinished, err)
	}
}

// No version of the source means anything in the copy.
func TestVersionsDoNotGoBack(t *testing.T) {
	from, to := open(t, 1), open(t, above)
	put(t, from, version("cm/a", 1), version("cm/a", 2))
	last := from.State().Current
	if _, err := transfer.Copy(t.Context(), from, to, nil); err != nil {
		t.Fatal(err)
	}
	rec, err := to.Get(t.Context(), "cm/a", 0)
	if err != nil || rec.Revision <= last {
		t.Errorf("it is at %d, %v", rec.Revision, err)
	}
	if _, err := to.Watch(t.Context(), "cm/", last); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("a watch goes on from a version of the source: %v", err)
	}
	if _, err := to.Version(t.Context(), "cm/a", last); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("a version of the source: %v", err)
	}
	var moved *store.GuardError
	_, err = to.Commit(t.Context(), store.Txn{Guards: []store.Guard{{Key: "cm/a", Revision: last}}, Writes: []store.Record{version("cm/a", 3)}})
	if !errors.As(err, &moved) {
		t.Errorf("a write on a version of the source: %v", err)
	}
}

func TestTargetsThatAreRefused(t *testing.T) {
	from := open(t, 1)
	put(t, from, version("cm/a", 1), version("cm/a", 2))
	used := open(t, above)
	put(t, used, version("cm/z", 1))
	for name, c := range map[string]struct {
		to   store.Store
		want error
	}{
		"one with data":                 {used, transfer.ErrNotEmpty},
		"one whose versions are behind": {open(t, 1), transfer.ErrBehind},
	} {
		before := c.to.State()
		if _, err := transfer.Copy(t.Context(), from, c.to, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if c.to.State() != before {
			t.Errorf("%s is changed", name)
		}
	}
}

// flaky is a store whose Commits fail after some.
type flaky struct {
	store.Store
	left int
}

var errCut = errors.New("cut off")

func (f *flaky) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	if f.left--; f.left < 0 {
		return 0, errCut
	}
	return f.Store.Commit(ctx, txn)
}

func TestAnInterruptedCopyGoesOn(t *testing.T) {
	for cut := range 12 {
		t.Run(fmt.Sprint("after commit ", cut), func(t *testing.T) {
			from, to := open(t, 1), open(t, above)
			same := version("cm/a", 1) // the same once more: nothing but its place tells it
			put(t, from, same, same, same, version("cm/b", 1), gone("cm/b", 2), version("cm/b", 3), version("cm/c", 1), version("cm/d", 1))
			_, err := transfer.Copy(t.Context(), from, serial{&flaky{to, cut}}, nil)
			if done := cut > 9; done != (err == nil) || !done && !errors.Is(err, errCut) {
				t.Fatalf("it ended with %v", err)
			}
			if err == nil {
				return
			}
			if unfinished, err := transfer.Unfinished(t.Context(), to); err != nil || unfinished != (cut > 0) {
				t.Errorf("it is unfinished: %v, %v", unfinished, err)
			}
			// Meanwhile the source goes on.
			put(t, from, version("cm/a", 2), gone("cm/c", 2), gone("cm/d", 2), version("cm/d", 3), version("cm/e", 1))
			if _, err := transfer.Copy(t.Context(), from, to, nil); err != nil {
				t.Fatal(err)
			}
			holds(t, from, to, "cm/a", "cm/b", "cm/d", "cm/e")
			if _, err := to.Get(t.Context(), "cm/c", 0); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("what was deleted meanwhile: %v", err)
			}
		})
	}
}

// serial makes one commit at a time, so that each fails at its place.
type serial struct{ *flaky }

func (s serial) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	turn <- struct{}{}
	defer func() { <-turn }()
	return s.flaky.Commit(ctx, txn)
}

var turn = make(chan struct{}, 1)

// writing is a source that is written to when its whole records are listed: after the
// copy, while it is verified.
type writing struct {
	store.Store
	write func()
}

func (w *writing) List(ctx context.Context, o store.ListOptions) (store.Page, error) {
	if write := w.write; o.Part == store.Whole && write != nil {
		w.write = nil
		write()
	}
	return w.Store.List(ctx, o)
}

func TestASourceThatMovesIsNoticed(t *testing.T) {
	for name, rec := range map[string]store.Record{
		"a change": version("cm/b", 2), "a new object": version("cm/d", 1), "a first object": version("cm/0", 1),
		"a deletion": gone("cm/b", 2), "the deletion of the first": gone("cm/a", 2), "the deletion of the last": gone("cm/c", 2),
	} {
		t.Run(name, func(t *testing.T) {
			from, to := open(t, 1), open(t, above)
			put(t, from, version("cm/a", 1), version("cm/b", 1), version("cm/c", 1))
			moving := &writing{from, func() { put(t, from, rec) }}
			if _, err := transfer.Copy(t.Context(), moving, to, nil); !errors.Is(err, transfer.ErrMoved) {
				t.Fatalf("it ended with %v", err)
			}
			if unfinished, err := transfer.Unfinished(t.Context(), to); !unfinished || err != nil {
				t.Errorf("it is unfinished: %v, %v", unfinished, err)
			}
			if _, err := transfer.Copy(t.Context(), from, to, nil); err != nil {
				t.Errorf("the next one: %v", err)
			}
		})
	}
}

// lossy is a target that takes something else than it was given.
type lossy struct {
	store.Store
	change func(*store.Record)
}

func (l lossy) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	txn.Writes = slices.Clone(txn.Writes)
	for i := range txn.Writes {
		if txn.Writes[i].Key == "cm/b" {
			l.change(&txn.Writes[i])
		}
	}
	return l.Store.Commit(ctx, txn)
}

func TestACopyThatDiffersIsNoticed(t *testing.T) {
	for name, change := range map[string]func(*store.Record){
		"a value":   func(r *store.Record) { r.Value = append(slices.Clone(r.Value), ' ') },
		"an offset": func(r *store.Record) { r.VersionAt = 0 },
		"a label":   func(r *store.Record) { r.Labels = nil },
		"a uid":     func(r *store.Record) { r.UID = "" },
		"a user":    func(r *store.Record) { r.User = "joe" },
		"a time":    func(r *store.Record) { r.Time = r.Time.Add(time.Second) },
		"a brief":   func(r *store.Record) { r.Brief.Keys++ },
		"a key":     func(r *store.Record) { r.Key = "cm/bb" },
	} {
		t.Run(name, func(t *testing.T) {
			from, to := open(t, 1), open(t, above)
			put(t, from, version("cm/a", 1), version("cm/b", 1), version("cm/c", 1))
			if _, err := transfer.Copy(t.Context(), from, lossy{to, change}, nil); err == nil {
				t.Error("it is not noticed")
			}
			if unfinished, err := transfer.Unfinished(t.Context(), to); !unfinished || err != nil {
				t.Errorf("it is unfinished: %v, %v", unfinished, err)
			}
		})
	}
}
