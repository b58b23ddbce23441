package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// moves are those that a client told of.
type moves struct {
	mu   sync.Mutex
	told []client.Move // guarded by mu
}

func (m *moves) add(one client.Move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, one)
}

// check demands moves as "FROM TO".
func (m *moves) check(t *testing.T, want ...string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var got []string
	for _, one := range m.told {
		if one.Err == nil {
			t.Errorf("why it moved from %s is not told", one.From)
		}
		got = append(got, one.From+" "+one.To)
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("it moved %q, want %q", got, want)
	}
}

// ofServers are the ConfigMaps of the tests' namespace on several servers.
func ofServers(tb testing.TB, addresses ...string) (*client.ConfigMaps, *moves) {
	tb.Helper()
	m := &moves{}
	c := connect(tb, client.TargetOptions{Server: strings.Join(addresses, ",")}, client.Options{Moved: m.add})
	return c.ConfigMaps(namespace), m
}

// Nothing was sent to a server that lets nobody connect: whatever the call is, the next
// one is given it.
func TestEveryCallGoesToTheNextServerIfNobodyListens(t *testing.T) {
	for verb, call := range calls {
		t.Run(verb, func(t *testing.T) {
			api := record(realAPI(t))
			gone, there := closedPort(t), listen(t, api)
			direct := connect(t, client.TargetOptions{Server: there}, client.Options{}).ConfigMaps(namespace)
			if verb != "create" {
				mustCreate(t, direct, flags("a", "0"))
			}
			before := len(api.requests)
			m, moved := ofServers(t, gone, there)
			if err := call(t.Context(), m); err != nil && (verb != "put" || !apierrors.IsConflict(err)) {
				t.Error(err)
			}
			if n := len(api.requests) - before; n != 1 {
				t.Errorf("%d requests reached the one that is there", n)
			}
			moved.check(t, gone+" "+there)
		})
	}
}

func TestAllServersAreGone(t *testing.T) {
	a, b := closedPort(t), closedPort(t)
	m, moved := ofServers(t, a, b)
	for verb, call := range calls {
		err := call(t.Context(), m)
		if !isUnsent(err) || !client.IsUnreachable(err) {
			t.Errorf("%s: got %v, want an UnsentError", verb, err)
		}
		if text := err.Error(); !strings.Contains(text, a+": connection refused; "+b+": connection refused") {
			t.Errorf("%s: %q doesn't say of each server why it was of no use", verb, text)
		}
	}
	moved.check(t)
}

// What the first server answers decides who is asked next.
func TestWhichAnswersSendACallToTheNextServer(t *testing.T) {
	const (
		both  = "reads and writes"
		reads = "reads"
		none  = "nothing"
	)
	status := func(code int, reason, more string) http.Handler {
		return stub(code, "application/json", fmt.Sprintf(`{"kind":"Status","status":"Failure","reason":%q,"code":%d%s}`, reason, code, more))
	}
	later := `,"details":{"retryAfterSeconds":1}`
	for name, c := range map[string]struct {
		first http.Handler
		go_   string
	}{
		"401":                      {status(401, "Unauthorized", ""), none},
		"403":                      {status(403, "Forbidden", ""), none},
		"404":                      {status(404, "NotFound", `,"details":{"name":"flags"}`), none},
		"409":                      {status(409, "Conflict", ""), none},
		"410":                      {status(410, "Expired", ""), none},
		"422":                      {status(422, "Invalid", ""), none},
		"429":                      {status(429, "TooManyRequests", later), both},
		"500":                      {status(500, "InternalError", ""), none},
		"503 with a time":          {status(503, "ServiceUnavailable", later), both},
		"503 without one":          {status(503, "ServiceUnavailable", ""), reads},
		"503 until it's restarted": {status(503, "ServiceUnavailable", `,"details":{"causes":[{"reason":"RestartNeeded"}]}`), both},
		"504":                      {status(504, "Timeout", ""), reads},
		"507":                      {status(507, "InsufficientStorage", ""), none},
		"a proxy's 404":            {stub(404, "text/html", "<html>"), none},
		"a proxy's 429":            {stub(429, "text/html", "<html>"), both},
		"a proxy's 502":            {stub(502, "text/html", "<html>"), reads},
		"a proxy's 503":            {stub(503, "text/html", "<html>", "Retry-After", "1"), reads},
		"a broken answer":          {hangUp("HTTP/1.1 200 OK\r\nContent-Le"), reads},
		"no answer":                {hangUp(""), reads},
	} {
		t.Run(name, func(t *testing.T) {
			for verb, call := range calls {
				second := record(realAPI(t))
				m, _ := ofServers(t, listen(t, c.first), listen(t, second))
				err := call(t.Context(), m)
				isRead := verb == "get" || verb == "list"
				want := 0
				if c.go_ == both || c.go_ == reads && isRead {
					want = 1
				}
				if got := len(second.requests); got != want {
					t.Errorf("%s: %d requests reached the second server, want %d: %v", verb, got, want, err)
				}
				if c.go_ == reads && !isRead && !isLost(err) && apierrors.ReasonForError(err) == "" {
					t.Errorf("%s: got %v, want an open outcome", verb, err)
				}
			}
		})
	}
}

// The client stays with the server that works, tells of each move once, and comes back
// when that one fails in its turn.
func TestAClientStaysWithTheServerThatWorks(t *testing.T) {
	api := realAPI(t)
	fronts := []*flaky{newFlaky(api), newFlaky(api)}
	a, b := listen(t, fronts[0]), listen(t, fronts[1])
	m, moved := ofServers(t, a, b)
	mustCreate(t, m, flags("a", "1"))
	// reads demands that a server answers reads, and the other is asked once at most:
	// twice, for net/http repeats a read whose old connection is dead.
	reads := func(works int) {
		t.Helper()
		before := fronts[1-works].seen("GET")
		for range 5 {
			mustGet(t, m, "flags")
		}
		if asked := fronts[1-works].seen("GET") - before; asked > 2 {
			t.Errorf("server %d was asked %d times, and server %d works", 1-works, asked, works)
		}
	}
	reads(0)
	fronts[0].leave()
	reads(1)
	fronts[0].come(api)
	reads(1)
	fronts[1].leave()
	reads(0)
	moved.check(t, a+" "+b, b+" "+a)
}

// A list whose first server dies between two pages is one list all the same.
func TestAListGoesOnAtTheNextServer(t *testing.T) {
	api := realAPI(t)
	first := newFlaky(api)
	first.answer(func(http.ResponseWriter, *http.Request) bool {
		if first.seen("GET") > 1 {
			panic(http.ErrAbortHandler)
		}
		return false
	})
	m, _ := ofServers(t, listen(t, first), listen(t, api))
	for i := range 5 {
		d := types.NewDocument(namespace, "a"+strconv.Itoa(i))
		mustCreate(t, m, d)
	}
	list, err := m.List(t.Context(), client.ListOptions{PageSize: 2})
	if err != nil || len(list.Items) != 5 {
		t.Errorf("got %+v, %v", list, err)
	}
}

// taker carries its first write out and dies before it answers.
func taker(api http.Handler) *flaky {
	f := newFlaky(api)
	f.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			return false
		}
		api.ServeHTTP(httptest.NewRecorder(), r)
		f.leave()
		panic(http.ErrAbortHandler)
	})
	return f
}

// A server that dies after it took a write leaves the outcome open, and another server
// of the same store tells it. Nothing is written twice.
func TestTheFirstServerDiesAfterItTookTheWrite(t *testing.T) {
	options := retry.Options{Backoff: quick, Computed: true}
	for name, c := range map[string]struct {
		write func(*client.Object) error
		id    string
		gone  bool
	}{
		"update": {write: func(o *client.Object) error {
			_, err := retry.Update(t.Context(), o, increment, options)
			return err
		}},
		"delete": {gone: true, write: func(o *client.Object) error {
			_, err := retry.Delete(t.Context(), o, retry.Version{}, options)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			api := record(realAPI(t))
			first := taker(api)
			a, b := listen(t, first), listen(t, api)
			direct := connect(t, client.TargetOptions{Server: b}, client.Options{}).ConfigMaps(namespace)
			mustCreate(t, direct, flags("count", "0"))
			m, moved := ofServers(t, a, b)
			if err := c.write(m.Object("flags")); err != nil {
				t.Fatal(err)
			}
			moved.check(t, a+" "+b)
			if n := len(api.sent(http.MethodPut)) + len(api.sent(http.MethodDelete)); n != 1 {
				t.Errorf("%d writes were sent", n)
			}
			switch d, err := direct.Get(t.Context(), "flags"); {
			case c.gone && !apierrors.IsNotFound(err):
				t.Errorf("got %v, %v", d, err)
			case !c.gone && (err != nil || value(d, "count") != "1"):
				t.Errorf("the count is %v, %v", value(d, "count"), err)
			}
		})
	}
	t.Run("create", func(t *testing.T) {
		api := record(realAPI(t))
		a, b := listen(t, taker(api)), listen(t, api)
		m, moved := ofServers(t, a, b)
		if _, err := retry.Create(t.Context(), m.Object("flags"), flags("a", "1"), nil, options); err != nil {
			t.Fatal(err)
		}
		if n := len(api.sent(http.MethodPost)); n != 1 {
			t.Errorf("%d writes were sent", n)
		}
		moved.check(t, a+" "+b)
	})
}

// Servers die and come back by turns, some in the middle of a write: each of many
// increments is there once.
func TestACountIsExactWhileServersDieByTurns(t *testing.T) {
	api := realAPI(t)
	fronts := []*flaky{newFlaky(api), newFlaky(api)}
	var dying sync.Mutex // one of them is always there
	var writes atomic.Int64
	for i, f := range fronts {
		f.answer(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet {
				return false
			}
			n := writes.Add(1)
			if n%5 != 0 {
				return false
			}
			if n%2 == 0 {
				api.ServeHTTP(httptest.NewRecorder(), r)
			}
			dying.Lock()
			defer dying.Unlock()
			fronts[1-i].come(api)
			f.leave()
			panic(http.ErrAbortHandler)
		})
	}
	a, b := listen(t, fronts[0]), listen(t, fronts[1])
	m, _ := ofServers(t, a, b)
	mustCreate(t, connect(t, client.TargetOptions{Server: listen(t, api)}, client.Options{}).ConfigMaps(namespace), flags("count", "0"))
	const writers, rounds = 4, 10
	var all sync.WaitGroup
	for w := range writers {
		m := m
		if w%2 == 1 {
			m, _ = ofServers(t, b, a)
		}
		all.Go(func() {
			for range rounds {
				_, err := retry.Update(t.Context(), m.Object("flags"), increment, retry.Options{MaxAttempts: 10000, Backoff: quick, Computed: true})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	fronts[0].come(api)
	if got := value(mustGet(t, m, "flags"), "count"); got != strconv.Itoa(writers*rounds) {
		t.Errorf("the count is %v, want %d", got, writers*rounds)
	}
}

// A server that is in the list by mistake, with a store of its own, gets nothing that
// was made from the other's: uid and version are the guard.
func TestAServerOfAnotherStoreTakesNoUpdate(t *testing.T) {
	one, other := newFlaky(inMemory(t, 1)), inMemory(t, 1)
	a, b := listen(t, one), listen(t, other)
	m, _ := ofServers(t, a, b)
	strange := connect(t, client.TargetOptions{Server: b}, client.Options{}).ConfigMaps(namespace)
	mustCreate(t, m, flags("count", "0"))
	kept := mustCreate(t, strange, flags("count", "7"))
	edits := 0
	_, err := retry.Update(t.Context(), m.Object("flags"), func(ctx context.Context, d types.Document) (types.Document, error) {
		edits++
		one.leave() // between the read and the write
		return increment(ctx, d)
	}, retry.Options{Backoff: quick})
	if !errors.As(err, new(*retry.ReplacedError)) && !errors.As(err, new(*retry.OutcomeUnknownError)) {
		t.Errorf("got %v", err)
	}
	if now := mustGet(t, strange, "flags"); now.ResourceVersion() != kept.ResourceVersion() || edits != 1 {
		t.Errorf("the other store has %v after %d edits", now, edits)
	}
}

// The changes of a watch go on at the next server, one by one.
func TestAWatchGoesOnAtTheNextServer(t *testing.T) {
	api := inMemory(t, 1)
	first := newFlaky(api)
	a, b := listen(t, first), listen(t, api)
	w := writer{t, connect(t, client.TargetOptions{Server: b}, client.Options{}).ConfigMaps(namespace)}
	w.set("a", "1")
	m, moved := ofServers(t, a, b)
	f := follow(t, m, client.WatchOptions{})
	f.expect("ADDED a 1", "SYNCED")
	w.set("a", "2")
	f.expect("MODIFIED a 2 was 1")
	first.leave()
	w.set("a", "3")
	w.set("a", "4")
	f.expect("MODIFIED a 3 was 2", "MODIFIED a 4 was 3")
	moved.check(t, a+" "+b)
}

// Each of several servers was named with the credentials, and gets them.
func TestEachServerGetsTheCredentials(t *testing.T) {
	first, second := record(hangUp("")), record(realAPI(t))
	c := connect(t, client.TargetOptions{Server: listen(t, first) + "," + listen(t, second), Credentials: client.Credentials{Token: "t0ken"}}, client.Options{})
	if _, err := c.ConfigMaps(namespace).List(t.Context(), client.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, api := range []*recorded{first, second} {
		for _, r := range api.sent(http.MethodGet) {
			if r.Header.Get("Authorization") != "Bearer t0ken" {
				t.Errorf("a request came with %q", r.Header.Get("Authorization"))
			}
		}
	}
}
