package server_test

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
	"example.com/cmctl/pkg/types"
)

// A list that is read slowly is one state on all its pages, whatever others create
// and delete meanwhile. Once that state is given up, the next page is refused with
// a token, by which the list goes on: whatever was there all the time is in it
// exactly once.
func TestASlowListExpiresInTheMiddle(t *testing.T) {
	const objects, limit, expires = 1000, 100, 5
	a := begin(t)
	var all store.Txn
	for i := range objects {
		all.Writes = append(all.Writes, stored(fmt.Sprintf("o%04d", i), "old"))
	}
	first, err := a.store.Commit(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	page := func(token string) string {
		return fmt.Sprintf("%s?limit=%d&continue=%s", collection, limit, url.QueryEscape(token))
	}
	var seen []string
	token := ""
	for n := range expires {
		r := a.must(200, "GET", page(token), "")
		if left := r.list.RemainingItemCount; left == nil || *left != int64(objects-(n+1)*limit) {
			t.Errorf("page %d: remainingItemCount %v", n, left)
		}
		if got := r.list.ResourceVersion; got != first.String() {
			t.Errorf("page %d is of version %s, the first of %s", n, got, first)
		}
		seen = append(seen, names(r)...)
		token = r.list.Continue
		// One that was listed goes, one that was not, and two come.
		a.remove(fmt.Sprintf("o%04d", n*limit))
		a.remove(fmt.Sprintf("o%04d", objects-1-n))
		a.must(201, "POST", collection, named(fmt.Sprintf("a%d", n)))
		a.must(201, "POST", collection, named(fmt.Sprintf("z%d", n)))
	}
	for i, name := range seen {
		if want := fmt.Sprintf("o%04d", i); name != want {
			t.Fatalf("item %d is %s, want %s", i, name, want)
		}
	}
	if len(seen) != expires*limit {
		t.Fatalf("%d items on %d pages", len(seen), expires)
	}

	if err := a.store.Compact(t.Context(), a.store.State().Current); err != nil {
		t.Fatal(err)
	}
	expired := a.do("GET", page(token), "")
	isStatus(t, expired, 410, "Expired", "too old to display a consistent list")
	if expired.status.Continue == "" || expired.status.Continue == token {
		t.Fatalf("there is no new token in %s", expired.body)
	}
	pages := 0
	for token = expired.status.Continue; token != ""; pages++ {
		r := a.must(200, "GET", page(token), "")
		seen = append(seen, names(r)...)
		token = r.list.Continue
	}
	var want []string
	for i := range objects - expires {
		want = append(want, fmt.Sprintf("o%04d", i))
	}
	for n := range expires {
		want = append(want, fmt.Sprintf("z%d", n))
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the list has %d items on %d more pages, want %d: %v", len(seen), pages, len(want), seen)
	}
}

// Whoever wants names only does not get the contents: large objects are listed,
// read and watched by little traffic.
func TestNamesOfLargeObjectsAreCheap(t *testing.T) {
	const (
		objects = 50
		size    = 500 << 10
		limit   = objects * 2000 // bytes, so that 500 such objects are less than 1 MB
	)
	st, err := local.Open(local.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	a := begin(t, over(func(store.Store) store.Store { return st }))
	value := strings.Repeat("x", size)
	for i := range objects {
		if _, err := a.store.Commit(t.Context(), store.Txn{Writes: []store.Record{stored(fmt.Sprintf("o%03d", i), value)}}); err != nil {
			t.Fatal(err)
		}
	}
	const table, metadata = acceptTable, acceptPartialList
	for _, c := range []struct{ name, path, accept string }{
		{"table", collection + "?limit=500", table},
		{"table of all namespaces", "/api/v1/configmaps?limit=500", table},
		{"metadata", collection, metadata},
		{"metadata in protobuf", collection, strings.Replace(metadata, "json", "vnd.kubernetes.protobuf", 1)},
		{"initial events as a table", collection + "?watch=1&timeoutSeconds=1", table},
		{"initial events as metadata", collection + "?watch=1&timeoutSeconds=1", strings.Replace(metadata, "List;", ";", 1)},
	} {
		r := a.must(200, "GET", c.path, "", "Accept", c.accept)
		for _, name := range []string{"o000", "o025", "o049"} {
			if !strings.Contains(r.body, name) {
				t.Errorf("%s: %s is missing", c.name, name)
			}
		}
		if len(r.body) > limit {
			t.Errorf("%s: %d bytes", c.name, len(r.body))
		}
	}
	one := a.must(200, "GET", collection+"/o000", "", "Accept", table)
	if len(one.body) > 8<<10 || !strings.Contains(one.body, `"cells":["o000",1,`) {
		t.Errorf("one as a table is %d bytes: %.300s", len(one.body), one.body)
	}
}

// A client sees its own write at once, in every kind of read, however many others
// write: by name, in lists, at the version that it was told, and at version 0.
func TestWritersReadWhatTheyWrote(t *testing.T) {
	const writers, each = 8, 40
	a := begin(t, putMode("always"))
	together(writers, func(i int) {
		name := fmt.Sprintf("w%d", i)
		path := collection + "/" + name
		for n := range each {
			value := strconv.Itoa(n)
			a.put(name, value, "mine")
			r := a.must(200, "GET", path, "")
			mine := r.version()
			if r.object.Data["k"] != value {
				t.Errorf("%s: wrote %s, read %s", name, value, r.object.Data["k"])
			}
			for _, query := range []string{
				"", "?resourceVersion=0", "?resourceVersion=" + mine, "?resourceVersion=" + mine + "&resourceVersionMatch=Exact",
				"?labelSelector=x%3Dmine", "?fieldSelector=metadata.name%3D" + name,
			} {
				list := a.must(200, "GET", collection+query, "").list
				k := slices.IndexFunc(list.Items, func(cm types.ConfigMap) bool { return cm.Name == name })
				if k < 0 || list.Items[k].Data["k"] != value || list.Items[k].ResourceVersion != mine {
					t.Errorf("%s: version %s is not in the list %q", name, mine, query)
				}
				if mustInt(t, list.ResourceVersion) < mustInt(t, mine) {
					t.Errorf("%s: wrote version %s, the list is of %s", name, mine, list.ResourceVersion)
				}
			}
			for _, query := range []string{"?resourceVersion=0", "?resourceVersion=" + mine} {
				if got := a.must(200, "GET", path+query, ""); got.version() != mine {
					t.Errorf("%s: wrote version %s, %q gives %s", name, mine, query, got.version())
				}
			}
			if n%10 == 9 {
				a.remove(name)
				isStatus(t, a.do("GET", path, ""), 404, "NotFound", name)
				if found := names(a.must(200, "GET", collection+"?fieldSelector=metadata.name%3D"+name, "")); len(found) > 0 {
					t.Errorf("%s is deleted and listed", name)
				}
			}
		}
	})
}
