package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
	"example.com/cmctl/pkg/types"
)

// A watch that begins with what is there, and is cut, goes on without showing
// anything as living that is deleted: from the bookmark at the end of the initial
// events nothing of the past comes, and from the version of one of its objects the
// past comes whole.
func TestAWatchThatIsCutAfterItsFirstEventsGoesOn(t *testing.T) {
	a := watched(t)
	a.put("a", "1", "") // version 2
	a.put("b", "1", "") // 3
	a.put("c", "1", "") // 4
	w := a.watch(collection + "?watch=1&allowWatchBookmarks=true")
	w.sees("ADDED a@2=1")
	w.stop()
	a.remove("b") // 5
	w = a.watch(collection + "?watch=1&resourceVersion=2")
	w.sees("ADDED b@3=1", "ADDED c@4=1", "DELETED b@5=1")
	w = a.watch(collection + "?watch=1&allowWatchBookmarks=true")
	w.sees("ADDED a@2=1", "ADDED c@4=1", "BOOKMARK @5 (end)")
	w.stop()
	w = a.watch(collection + "?watch=1&resourceVersion=5")
	a.put("a", "2", "") // 6
	w.sees("MODIFIED a@6=2")
}

// elsewhere makes many versions of other objects, and gives the past up.
func elsewhere(t *testing.T, a *api, writes int) {
	t.Helper()
	for i := range writes {
		rec := stored("busy", strconv.Itoa(i))
		if _, err := a.store.Commit(t.Context(), store.Txn{Writes: []store.Record{rec}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.store.Compact(t.Context(), a.store.State().Current); err != nil {
		t.Fatal(err)
	}
}

// An object that nobody has changed for long is watched at once, though the
// versions that are as old as it are no longer kept: from the version of a list
// that selects it, or with initial events. Its own version is too old to begin at.
func TestAnOldObjectIsWatchedAtOnce(t *testing.T) {
	a := watched(t)
	a.put("old", "1", "") // version 2
	elsewhere(t, a, 10_000)
	const byName = collection + "?fieldSelector=metadata.name%3Dold"
	list := a.must(200, "GET", byName, "")
	if got := names(list); !slices.Equal(got, []string{"old"}) || list.list.Items[0].ResourceVersion != "2" {
		t.Fatalf("the list is %s", list.body)
	}
	fromList := a.watch(byName + "&watch=1&allowWatchBookmarks=true&resourceVersion=" + list.list.ResourceVersion)
	current := a.store.State().Current
	initial := a.watch(byName + "&watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
	initial.sees("ADDED old@2=1", fmt.Sprintf("BOOKMARK @%d (end)", current))
	a.put("old", "2", "")
	fromList.sees(fmt.Sprintf("MODIFIED old@%d=2", current+1))
	initial.sees(fmt.Sprintf("MODIFIED old@%d=2", current+1))
	own := a.watch(byName + "&watch=1&resourceVersion=2")
	own.sees(fmt.Sprintf("ERROR 410 too old resource version: 2 (%d)", current))
	own.ends()
}

// A watch of one quiet object is told how far the others have come, so that it can
// go on from there when the past is given up.
func TestAQuietWatchStaysResumable(t *testing.T) {
	a := watched(t)
	a.put("quiet", "1", "") // version 2
	const byName = collection + "?fieldSelector=metadata.name%3Dquiet&watch=1&allowWatchBookmarks=true"
	w := a.watch(byName + "&resourceVersion=2&timeoutSeconds=3") // a bookmark comes before its end
	for i := range 100 {
		a.put("busy", strconv.Itoa(i), "")
	}
	mark := w.next()
	if mark.Type != "BOOKMARK" || mark.version(t) <= 2 {
		t.Fatalf("got %s, want a bookmark beyond version 2", mark.word())
	}
	if err := a.store.Compact(t.Context(), store.Revision(mark.version(t))); err != nil {
		t.Fatal(err)
	}
	resumed := a.watch(fmt.Sprintf("%s&resourceVersion=%d", byName, mark.version(t)))
	a.put("quiet", "2", "")
	resumed.sees(fmt.Sprintf("MODIFIED quiet@%d=2", a.store.State().Current))
}

// An object comes and goes for whoever selects it, whether it is watched while it
// happens or read up later.
func TestAnObjectThatLeavesTheSelection(t *testing.T) {
	a := watched(t)
	a.put("app", "1", "") // version 2
	const selected = collection + "?watch=1&labelSelector=x&resourceVersion="
	live := a.watch(selected + "2")
	a.put("app", "1", "x") // 3
	a.put("app", "2", "x") // 4
	a.put("app", "2", "")  // 5
	a.put("app", "3", "")  // 6
	a.put("end", "1", "x") // 7
	want := []string{"ADDED app@3=1[x]", "MODIFIED app@4=2[x]", "DELETED app@5=2[x]", "ADDED end@7=1[x]"}
	live.sees(want...)
	a.watch(selected + "2").sees(want...)
	a.watch(selected + "3").sees(want[1:]...)
	a.watch(selected + "4").sees(want[2:]...)
	a.watch(selected + "5").sees(want[3:]...)
}

// follower is a client that keeps a copy of a collection by list and watch, as
// informers do. It reads no faster than it is allowed to.
type follower struct {
	*api
	t       *testing.T
	objects map[string]string // name: version
	at      int               // the last version that it knows of
	lists   int
	events  int
}

func (f *follower) list() {
	f.t.Helper()
	list := f.must(200, "GET", collection, "").list
	f.objects = map[string]string{}
	for _, o := range list.Items {
		f.objects[o.Name] = o.ResourceVersion
	}
	f.at = mustInt(f.t, list.ResourceVersion)
	f.lists++
}

// take applies an event. Each is the change of a version of its own, so that the
// one after another has the next version, or some were left out.
func (f *follower) take(e event) (expired bool) {
	f.t.Helper()
	if e.Type == "ERROR" {
		var status types.StatusError
		if err := json.Unmarshal(e.Object, &status.ErrStatus); err != nil || status.ErrStatus.Code != 410 {
			f.t.Fatalf("got %s", e.word())
		}
		return true
	}
	if got := e.version(f.t); got != f.at+1 {
		f.t.Fatalf("after version %d came %s: a gap without 410", f.at, e.word())
	}
	f.at++
	f.events++
	word := strings.Fields(e.word())
	name, version, _ := strings.Cut(strings.Split(word[1], "=")[0], "@")
	_, there := f.objects[name]
	if there == (e.Type == "ADDED") {
		f.t.Fatalf("%s, though it is there: %v", e.word(), there)
	}
	f.objects[name] = version
	if e.Type == "DELETED" {
		delete(f.objects, name)
	}
	return false
}

// follow takes an event for each step that comes, and from when steps is closed as
// many as it gets, until it has come to the last version.
func (f *follower) follow(steps <-chan struct{}, last func() (version int, known bool)) {
	f.list()
	for {
		w := f.watch(fmt.Sprintf("%s?watch=1&resourceVersion=%d", collection, f.at))
		for expired := false; !expired; {
			<-steps
			if version, known := last(); known && f.at >= version {
				return
			}
			e, ok := w.more()
			if !ok {
				break // cut off, as slow clients are
			}
			if expired = f.take(e); expired {
				f.list()
			}
		}
		w.stop()
	}
}

// Objects come and go by the thousand, and the past is given up all the time. A
// watcher that reads slowly gets every change in order, or is told that it can't:
// it never misses one without an error, and ends with what is there.
func TestASlowWatcherUnderCompactionMissesNothingUntold(t *testing.T) {
	const pairs, stays = 10_000, 100
	a := watched(t, ownStore(t, local.Options{WatchBuffer: 64}))
	steps := make(chan struct{}) // one send lets the follower read one event; closed when all is written
	written := make(chan int, 1) // one send: the last version, before steps is closed
	f := &follower{api: a, t: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		last := 0
		f.follow(steps, func() (int, bool) {
			select {
			case last = <-written:
			default:
			}
			return last, last > 0
		})
	}()
	large := strings.Repeat("v", 3000) // so that few events fit into what the network holds
	commit := func(rec store.Record) {
		if _, err := a.store.Commit(t.Context(), store.Txn{Writes: []store.Record{rec}}); err != nil {
			t.Error(err)
		}
	}
	for i := range pairs {
		name := fmt.Sprintf("o%05d", i)
		commit(stored(name, large))
		if i%stays != 0 {
			commit(store.Record{Key: store.Key("configmaps/default/" + name), Deleted: true})
		}
		if i%2 == 0 {
			select {
			case steps <- struct{}{}:
			case <-done:
				t.Fatal("the follower gave up")
			default:
			}
		}
		if i%250 == 0 {
			if err := a.store.Compact(t.Context(), a.store.State().Current); err != nil {
				t.Error(err)
			}
		}
	}
	last := int(a.store.State().Current)
	written <- last
	close(steps)
	<-done
	want := map[string]string{}
	for _, o := range a.must(200, "GET", collection, "").list.Items {
		want[o.Name] = o.ResourceVersion
	}
	if !maps.Equal(f.objects, want) {
		t.Errorf("the follower has %d objects, the server %d", len(f.objects), len(want))
	}
	if f.lists < 2 || f.events == 0 {
		t.Errorf("%d lists and %d events: it was never behind", f.lists, f.events)
	}
	t.Logf("%d lists, %d events of %d", f.lists, f.events, last)
}

// When only objects are left that are older than the past that was given up, the
// server goes on from where it was after a restart: versions are not given again,
// and watches begin.
func TestARestartWhenOnlyOldObjectsRemain(t *testing.T) {
	const updates = 2500
	disk := vfs.NewMem()
	live := func() (*api, func()) {
		st, err := local.Open(local.Options{FS: disk, Dir: "data"})
		if err != nil {
			t.Fatal(err)
		}
		a := watched(t, over(func(store.Store) store.Store { return st }))
		return a, func() {
			a.server.Stop()
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	a, end := live()
	a.put("a", "1", "")
	a.put("b", "first", "")
	for i := range updates {
		a.must(200, "PUT", collection+"/b", fmt.Sprintf(`{"metadata":{"name":"b"},"data":{"k":"%d"}}`, i))
	}
	a.remove("b")
	before := a.store.State().Current
	if err := a.store.Compact(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	end()

	a, end = live()
	defer end()
	list := a.must(200, "GET", collection, "")
	if got := names(list); !slices.Equal(got, []string{"a"}) || list.list.ResourceVersion != before.String() {
		t.Errorf("after the restart the list is %s", list.body)
	}
	w := a.watch(collection + "?watch=1&resourceVersion=" + list.list.ResourceVersion)
	gone := a.watch(fmt.Sprintf("%s?watch=1&resourceVersion=%d", collection, before-1))
	gone.sees(fmt.Sprintf("ERROR 410 too old resource version: %d (%d)", before-1, before))
	a.put("b", "new", "")
	w.sees(fmt.Sprintf("ADDED b@%d=new", before+1))
}

// A server that keeps its data in memory is not mistaken for the one that ran
// before it: what clients remember of that one is refused, or tells nothing, but
// never matches something else.
func TestAServerInMemoryIsNotItsFormerLife(t *testing.T) {
	life := func(first store.Revision) *api {
		st, err := local.Open(local.Options{InMemory: true, InitialVersion: first})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
		return watched(t, over(func(store.Store) store.Store { return st }))
	}
	seen := map[string]int{} // version: life
	for n := range 10 {
		a := life(0) // random, as without a setting
		a.create()
		for i := range 20 {
			a.put("a", strconv.Itoa(i), "")
		}
		for _, r := range []result{a.must(200, "GET", flags, ""), a.must(200, "GET", collection+"/a", "")} {
			if before, twice := seen[r.version()]; twice {
				t.Errorf("version %s was given in lives %d and %d", r.version(), before, n)
			}
			seen[r.version()] = n
		}
	}
	for name, c := range map[string]struct{ first, second store.Revision }{
		"a later one":    {1000, 5000},
		"an earlier one": {5000, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			was := life(c.first).create()
			a := life(c.second)
			is := a.create()
			isStatus(t, a.do("PUT", flags, flagsBody(was.version(), `{"mode":"green"}`)), 409, "Conflict", "sent resourceVersion "+was.version())
			isStatus(t, a.do("DELETE", flags+"?resourceVersion="+was.version(), ""), 409, "Conflict", was.version())
			isStatus(t, a.do("PATCH", flags, `{"metadata":{"resourceVersion":"`+was.version()+`"},"data":{"mode":"green"}}`, mergePatch...), 409, "Conflict", was.version())
			if got := a.must(200, "GET", flags, ""); got.body != is.body {
				t.Errorf("the object is %s, and was %s", got.body, is.body)
			}
			w := a.watch(collection + "?watch=1&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion=" + was.version())
			exact := a.do("GET", collection+"?resourceVersionMatch=Exact&resourceVersion="+was.version(), "")
			if c.first < c.second {
				isStatus(t, exact, 410, "Expired", "too old")
				w.sees(fmt.Sprintf("ERROR 410 too old resource version: %s (%d)", was.version(), c.second-1))
				return
			}
			isStatus(t, exact, 504, "Timeout", "Too large resource version: "+was.version())
			isStatus(t, a.do("GET", collection+"?resourceVersion="+was.version(), ""), 504, "Timeout", "Too large resource version")
			a.put("a", "1", "")
			w.ends() // and nothing came
		})
	}
}

// The initial events of a watch are one state, or end with an error, when the past
// is given up while a client still reads them: nothing is left out untold.
func TestInitialEventsThatCompactionOvertakes(t *testing.T) {
	const objects = 2000
	a := watched(t)
	large := strings.Repeat("v", 3000)
	var all store.Txn
	for i := range objects {
		all.Writes = append(all.Writes, stored(fmt.Sprintf("o%04d", i), large))
	}
	if _, err := a.store.Commit(t.Context(), all); err != nil { // version 2
		t.Fatal(err)
	}
	w := a.watch(collection + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	if got := w.next(); got.Type != "ADDED" || got.version(t) != 2 {
		t.Fatalf("got %s", got.word())
	}
	a.remove("o1999") // version 3
	elsewhere(t, a, 100)
	for i := 1; ; i++ {
		e := w.next()
		if e.Type == "ERROR" {
			if word := e.word(); !strings.HasPrefix(word, "ERROR 410 ") {
				t.Errorf("after %d of %d initial events: %s", i, objects, word)
			}
			return
		}
		if i < objects {
			if want := fmt.Sprintf("ADDED o%04d@2=", i); !strings.HasPrefix(e.word(), want) {
				t.Fatalf("initial event %d is %.40s, want %s", i, e.word(), want)
			}
			continue
		}
		// All came: the changes follow, from the first on.
		if word := e.word(); word != "BOOKMARK @2 (end)" {
			t.Fatalf("after the initial events came %.40s", word)
		}
		if word := w.next().word(); !strings.HasPrefix(word, "DELETED o1999@3=") && !strings.HasPrefix(word, "ERROR 410 ") {
			t.Fatalf("after the bookmark came %.40s", word)
		}
		return
	}
}
