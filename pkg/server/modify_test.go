package server_test

import (
	"context"
	"fmt"
	"testing"

	"example.com/cmctl/pkg/server/store"
)

// lagging is a store whose state at hand is an old one, as of a replica that is behind.
type lagging struct {
	store.Store
	old     map[store.Key]store.Record // what it has at hand; of other keys, the newest
	newest  int                        // how often it was asked for the newest version of those
	commits int
}

func (*lagging) Remote() {}

func (l *lagging) Get(ctx context.Context, key store.Key, at store.Revision) (store.Record, error) {
	old, ok := l.old[key]
	if ok && at == store.Any {
		return old, nil
	}
	if ok {
		l.newest++
	}
	return l.Store.Get(ctx, key, at)
}

func (l *lagging) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	l.commits++
	return l.Store.Commit(ctx, txn)
}

// lag starts a server with one object, of which its first version is at hand for ever.
func lag(t *testing.T) (a *api, l *lagging, first, second string) {
	t.Helper()
	l = &lagging{}
	a = start(t, over(func(s store.Store) store.Store { l.Store = s; return l }))
	first = a.create().version()
	page, err := l.List(t.Context(), store.ListOptions{Prefix: "configmaps/"})
	if err != nil || len(page.Records) != 1 {
		t.Fatalf("there are %v, %v", page.Records, err)
	}
	second = a.must(200, "PUT", collection+"/flags", flagsBody(first, `{"mode":"green"}`)).version()
	l.old = map[store.Key]store.Record{page.Records[0].Key: page.Records[0]}
	l.newest, l.commits = 0, 0
	return a, l, first, second
}

// What may be old is no reason to refuse a write, nor to say that there is nothing to do;
// and what is written is always made from the newest.
func TestWritesMadeFromWhatIsAtHand(t *testing.T) {
	patched := func(mode string) string { return fmt.Sprintf(`{"data":{"mode":%q},"Data":{}}`, mode) }
	merge := []string{"Content-Type", "application/merge-patch+json"}
	t.Run("a put on the newest version", func(t *testing.T) {
		a, _, _, second := lag(t)
		a.must(200, "PUT", collection+"/flags", flagsBody(second, `{"mode":"red"}`))
	})
	t.Run("a put on the version at hand is refused", func(t *testing.T) {
		a, _, first, second := lag(t)
		r := a.do("PUT", collection+"/flags", flagsBody(first, `{"mode":"red"}`))
		isStatus(t, r, 409, "Conflict", second)
		if got := a.must(200, "GET", collection+"/flags", "").object.Data["mode"]; got != "green" {
			t.Errorf("it has become %q", got)
		}
	})
	t.Run("a put that changes nothing of the version at hand is refused", func(t *testing.T) {
		a, _, first, _ := lag(t)
		isStatus(t, a.do("PUT", collection+"/flags", flagsBody(first, `{"mode":"blue"}`)), 409, "Conflict", "")
	})
	t.Run("a patch back to what is at hand is made", func(t *testing.T) {
		a, _, _, second := lag(t)
		r := a.must(200, "PATCH", collection+"/flags", patched("blue"), merge...)
		if r.object.Data["mode"] != "blue" || r.version() == second {
			t.Errorf("it is %v at %s", r.object.Data, r.version())
		}
	})
	t.Run("a patch to what there is changes nothing, and warns once", func(t *testing.T) {
		a, _, _, second := lag(t)
		r := a.must(200, "PATCH", collection+"/flags", patched("green"), merge...)
		if r.version() != second || len(r.header.Values("Warning")) != 1 {
			t.Errorf("it is at %s, with warnings %q", r.version(), r.header.Values("Warning"))
		}
	})
	t.Run("a dry run tells of the newest", func(t *testing.T) {
		a, _, _, second := lag(t)
		if r := a.must(200, "PATCH", collection+"/flags?dryRun=All", `{"data":{"x":"y"}}`, merge...); r.version() != second || r.object.Data["mode"] != "green" {
			t.Errorf("it is %v at %s", r.object.Data, r.version())
		}
	})
	t.Run("where the newest is at hand nobody is asked", func(t *testing.T) {
		a, l, _, second := lag(t)
		for key := range l.old {
			newest, err := l.Store.Get(t.Context(), key, 0)
			if err != nil {
				t.Fatal(err)
			}
			l.old[key] = newest
		}
		a.must(200, "PUT", collection+"/flags", flagsBody(second, `{"mode":"red"}`))
		if l.newest != 0 || l.commits != 1 {
			t.Errorf("the newest was asked for %d times, for %d commits", l.newest, l.commits)
		}
	})
}
