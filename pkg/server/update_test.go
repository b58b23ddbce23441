package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store"
)

func TestUpdateReplacesTheWholeObjectButItsIdentity(t *testing.T) {
	a := start(t)
	was := a.must(201, "POST", collection,
		`{"metadata":{"name":"flags","labels":{"team":"a"},"generation":3},"data":{"mode":"blue","rollout":"10"}}`).object
	is := a.must(200, "PUT", flags, fmt.Sprintf(`{"metadata":{"name":"flags","resourceVersion":%q,"uid":%q,
		"creationTimestamp":"2001-01-01T00:00:00Z","generation":9,"selfLink":"/x"},"data":{"mode":"green"}}`, was.ResourceVersion, was.UID)).object
	if is.UID != was.UID || !is.CreationTimestamp.Equal(&was.CreationTimestamp) || is.Generation != 3 || is.SelfLink != "" {
		t.Errorf("the server's own fields changed: %+v", is.ObjectMeta)
	}
	if len(is.Labels) != 0 || len(is.Data) != 1 || is.Data["mode"] != "green" {
		t.Errorf("what the body lacks is still there: %+v", is)
	}
	if is.ResourceVersion == was.ResourceVersion {
		t.Error("the version is the same")
	}
}

func TestUpdateThatChangesNothingKeepsTheVersion(t *testing.T) {
	a := start(t)
	was := a.create()
	before := a.store.State().Current
	is := a.must(200, "PUT", flags+"?fieldManager=another", flagsBody(was.version(), `{"mode":"blue"}`))
	if is.body != was.body {
		t.Errorf("got\n%s, want\n%s", is.body, was.body)
	}
	if got := a.store.State().Current; got != before {
		t.Errorf("a revision was spent: %d, was %d", got, before)
	}
}

func TestUpdateOfAnObjectMadeAnewIsAConflict(t *testing.T) {
	a := start(t)
	was := a.create()
	a.must(200, "DELETE", flags, "")
	isStatus(t, a.do("PUT", flags, flagsBody(was.version(), `{}`)), 404, "NotFound", "")
	is := a.create()
	if is.version() == was.version() || is.object.UID == was.object.UID {
		t.Errorf("version or uid was given twice: %s and %s", was.body, is.body)
	}
	isStatus(t, a.do("PUT", flags, flagsBody(was.version(), `{}`)), 409, "Conflict", "sent resourceVersion "+was.version())
}

// Who puts what is gone is told that first, and then whose object it is.
func TestUpdateFromAVersionThatIsNone(t *testing.T) {
	a := start(t)
	isStatus(t, a.do("PUT", flags, flagsBody("abc", `{}`)), 404, "NotFound", "")
	a.create()
	isStatus(t, a.do("PUT", flags, `{"metadata":{"name":"flags","resourceVersion":"abc","uid":"x"}}`), 409, "Conflict", "UID is immutable")
	isStatus(t, a.do("PUT", flags, flagsBody("abc", `{}`)), 400, "BadRequest", "not a version of this server")
}

func TestUnconditionalPut(t *testing.T) {
	const (
		release = "sh.helm.release.v1.web.v1"
		owned   = `{"metadata":{"name":"%s","labels":{"owner":"helm"}%s},"data":{"release":"new"}}`
		plain   = `{"metadata":{"name":"%s"%s},"data":{"release":"new"}}`
	)
	for _, c := range []struct {
		name         string
		mode         server.UnconditionalPut
		object       string
		stored, body string
		code         int
	}{
		{"never", server.PutNever, "flags", plain, plain, 400},
		{"never, for Helm", server.PutNever, release, owned, owned, 400},
		{"helm, for another object", server.PutHelm, "flags", plain, plain, 400},
		{"helm, for another object with the label", server.PutHelm, "flags", owned, owned, 400},
		{"helm, for a release", server.PutHelm, release, owned, owned, 200},
		{"helm, for what Helm does not own", server.PutHelm, release, plain, owned, 400},
		{"helm, to disown", server.PutHelm, release, owned, plain, 400},
		{"always", server.PutAlways, "flags", plain, plain, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := start(t, putMode(c.mode))
			path := collection + "/" + c.object
			a.must(201, "POST", collection, strings.Replace(fmt.Sprintf(c.stored, c.object, ""), "new", "old", 1))
			r := a.do("PUT", path, fmt.Sprintf(c.body, c.object, ""))
			if r.code != c.code {
				t.Fatalf("got %d, want %d: %s", r.code, c.code, r.body)
			}
			if c.code == 400 {
				isStatus(t, r, 400, "BadRequest", "update requires metadata.resourceVersion")
			}
			// A version that is sent counts in every mode.
			r = a.do("PUT", path, fmt.Sprintf(c.body, c.object, `,"resourceVersion":"99"`))
			isStatus(t, r, 409, "Conflict", "sent resourceVersion 99")
		})
	}
}

// Two clients put from the same version at once: exactly one wins, and the
// other is told so.
func TestConcurrentUpdatesFromOneVersion(t *testing.T) {
	a := start(t)
	version := a.create().version()
	for round := range 100 {
		var codes [2]int
		var answers [2]result
		together(2, func(i int) {
			answers[i] = a.do("PUT", flags, flagsBody(version, fmt.Sprintf(`{"round":"%d","by":"%d"}`, round, i)))
			codes[i] = answers[i].code
		})
		winner := 0
		if codes[1] == 200 {
			winner = 1
		}
		if codes[winner] != 200 || codes[1-winner] != 409 || answers[1-winner].status.Reason != "Conflict" {
			t.Fatalf("round %d: got %v", round, codes)
		}
		stored := a.must(200, "GET", flags, "").object
		if stored.Data["by"] != strconv.Itoa(winner) || stored.ResourceVersion != answers[winner].version() {
			t.Fatalf("round %d: %d won, but stored is %v", round, winner, stored.Data)
		}
		version = stored.ResourceVersion
	}
}

// Creates of one name at once: exactly one wins.
func TestConcurrentCreates(t *testing.T) {
	a := start(t)
	for round := range 30 {
		body := fmt.Sprintf(`{"metadata":{"name":"n%d"}}`, round)
		var codes [4]int
		together(len(codes), func(i int) { codes[i] = a.do("POST", collection, body).code })
		won := 0
		for _, code := range codes {
			if code == 201 {
				won++
			} else if code != 409 {
				t.Fatalf("round %d: got %v", round, codes)
			}
		}
		if won != 1 {
			t.Fatalf("round %d: %d creates won", round, won)
		}
	}
}

// Updates without a version never see the conflicts of others.
func TestConcurrentUnconditionalUpdatesAllLand(t *testing.T) {
	a := start(t, putMode(server.PutAlways))
	first := a.create()
	const writers, rounds = 8, 10
	versions := sync.Map{}
	together(writers, func(i int) {
		for n := range rounds {
			r := a.do("PUT", flags, flagsBody("", fmt.Sprintf(`{"by":"%d-%d"}`, i, n)))
			if r.code != 200 {
				t.Errorf("got %d: %s", r.code, r.body)
			}
			if _, twice := versions.LoadOrStore(r.version(), true); twice {
				t.Errorf("version %s was given twice", r.version())
			}
		}
	})
	if got := int(a.store.State().Current) - mustInt(t, first.version()); got != writers*rounds {
		t.Errorf("%d writes landed, want %d", got, writers*rounds)
	}
}

// What moves between the server's own read and its commit is seen by the
// guard.
func TestUpdateThatLosesTheRaceAtCommit(t *testing.T) {
	for _, c := range []struct {
		name    string
		other   string // the method that comes in between
		mode    server.UnconditionalPut
		sends   bool // a version
		code    int
		reason  string
		message string
	}{
		{"another update", http.MethodPut, server.PutNever, true, 409, "Conflict", "sent resourceVersion 1, current 2"},
		{"a deletion", http.MethodDelete, server.PutNever, true, 404, "NotFound", "not found"},
		{"another update, unconditionally", http.MethodPut, server.PutAlways, false, 200, "", ""},
		{"a deletion, unconditionally", http.MethodDelete, server.PutAlways, false, 404, "NotFound", "not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, h := hook(t, putMode(c.mode))
			version := a.create().version()
			var once sync.Once
			h.commit = func(ctx context.Context, txn store.Txn) (store.Revision, error) {
				if txn.Writes[0].WriteID == "racer" {
					once.Do(func() {
						a.must(200, c.other, flags, map[string]string{http.MethodPut: flagsBody(version, `{"by":"other"}`)}[c.other])
					})
				}
				return h.Store.Commit(ctx, txn)
			}
			sent := ""
			if c.sends {
				sent = version
			}
			r := a.do("PUT", flags, flagsBody(sent, `{"by":"racer"}`), "Cmctl-Write-Id", "racer")
			if c.code == 200 {
				if r.code != 200 || r.object.Data["by"] != "racer" || r.version() != "3" {
					t.Errorf("got %d %s", r.code, r.body)
				}
				return
			}
			isStatus(t, r, c.code, c.reason, c.message)
		})
	}
}

func TestImmutableObject(t *testing.T) {
	a := start(t)
	v := a.must(201, "POST", collection, `{"metadata":{"name":"flags"},"data":{"a":"1"},"immutable":true}`).version()
	put := func(labels, data, immutable string) result {
		return a.do("PUT", flags, fmt.Sprintf(`{"metadata":{"name":"flags","resourceVersion":%q,"labels":%s},"data":%s,"immutable":%s}`, v, labels, data, immutable))
	}
	isStatus(t, put(`{}`, `{"a":"2"}`, "true"), 422, "Invalid", "data: Forbidden")
	isStatus(t, put(`{}`, `{"a":"1"}`, "false"), 422, "Invalid", "immutable: Forbidden")
	if r := put(`{"x":"y"}`, `{"a":"1"}`, "true"); r.code != 200 {
		t.Errorf("a label is refused: %s", r.body)
	}
	a.must(200, "DELETE", flags, "")
}

// together runs n calls at once and waits for all.
func together(n int, call func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { call(i) })
	}
	wg.Wait()
}

func mustInt(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
