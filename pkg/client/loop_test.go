package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// lossy stands before an API and loses answers: the connection breaks after
// the request was carried out, or before it.
type lossy struct {
	next http.Handler
	// lose says what to do with a write, the nth since the start, from 1.
	lose  func(r *http.Request, n int64) loss
	count atomic.Int64
}

type loss int

const (
	passOn     loss = iota
	dropAnswer      // it is carried out, and the answer is lost
	dropBefore      // it is not carried out
)

func (l *lossy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what := passOn
	if r.Method != http.MethodGet {
		what = l.lose(r, l.count.Add(1))
	}
	switch what {
	case passOn:
		l.next.ServeHTTP(w, r)
		return
	case dropAnswer:
		l.next.ServeHTTP(httptest.NewRecorder(), r)
	case dropBefore:
		_, _ = io.Copy(io.Discard, r.Body) // what can't be read is as good as read
	}
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	conn.Close()
}

// first loses only the first write.
func first(what loss) func(*http.Request, int64) loss {
	return func(_ *http.Request, n int64) loss {
		if n == 1 {
			return what
		}
		return passOn
	}
}

// patient are options with which a loop of the tests does not give up, and
// hardly waits.
func patient() retry.Options {
	return retry.Options{MaxAttempts: 10_000, Backoff: retry.Backoff{Base: time.Microsecond, Max: time.Millisecond}}
}

// increment adds one to the counter.
var increment = client.EditConfigMap(func(cm *types.ConfigMap) error {
	n, err := strconv.Atoi(cm.Data["count"])
	if err != nil {
		return err
	}
	cm.Data["count"] = strconv.Itoa(n + 1)
	return nil
})

// countTogether has 16 goroutines add to the counter of an API.
func countTogether(t *testing.T, api http.Handler) (want string, got any) {
	const workers, rounds = 16, 10
	m := mapsOf(t, api)
	mustCreate(t, m, flags("count", "0"))
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range rounds {
				o := patient()
				o.Computed = true
				if _, err := retry.Update(t.Context(), m.Object("flags"), increment, o); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return strconv.Itoa(workers * rounds), value(mustGet(t, m, "flags"), "count")
}

func TestManyCountersLoseNoUpdate(t *testing.T) {
	if want, got := countTogether(t, realAPI(t)); got != want {
		t.Errorf("the counter is %v, want %s", got, want)
	}
}

func TestManyCountersWithLostAnswersStayExact(t *testing.T) {
	api := &lossy{next: realAPI(t), lose: func(r *http.Request, n int64) loss {
		switch {
		case r.Method != http.MethodPut:
			return passOn
		case n%5 == 0:
			return dropAnswer
		case n%7 == 0:
			return dropBefore
		}
		return passOn
	}}
	if want, got := countTogether(t, api); got != want {
		t.Errorf("the counter is %v, want %s", got, want)
	}
}

func TestAConflictIsReadAnewAndAppliedAnew(t *testing.T) {
	m := mapsOf(t, realAPI(t))
	start := mustCreate(t, m, flags("count", "0"))
	other := start.Clone()
	other.Set(types.Field{Section: "data", Key: "count"}, "41")
	if _, err := m.Put(t.Context(), other, ""); err != nil {
		t.Fatal(err)
	}
	o := patient()
	var steps []retry.Step
	o.Observe = func(e retry.Event) { steps = append(steps, e.Step) }
	res, err := retry.UpdateFrom(t.Context(), m.Object("flags"), start, increment, o)
	if err != nil || res.Attempts != 2 || value(res.Object, "count") != "42" {
		t.Errorf("got %+v, %v", res, err)
	}
	if len(steps) != 3 || steps[0] != retry.Refused || steps[1] != retry.Reread || steps[2] != retry.Done {
		t.Errorf("the steps were %v", steps)
	}
}

func TestALostPut(t *testing.T) {
	fixed := client.EditConfigMap(func(cm *types.ConfigMap) error { cm.Data["count"] = "1"; return nil })
	for name, c := range map[string]struct {
		what     loss
		history  bool
		edit     retry.Edit[types.Document]
		computed bool
		unknown  bool
		attempts int
	}{
		"that landed, with history":                        {dropAnswer, true, increment, true, false, 1},
		"that landed, without":                             {dropAnswer, false, increment, true, true, 0},
		"that landed, without, to a fixed value":           {dropAnswer, false, fixed, false, false, 1},
		"that did not land, with history":                  {dropBefore, true, increment, true, false, 2},
		"that did not land, without: the version is proof": {dropBefore, false, increment, true, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			api := realAPI(t)
			mustCreate(t, mapsOf(t, api), flags("count", "0"))
			if !c.history {
				api = withoutHistory(api, kubernetes())
			}
			m := mapsOf(t, &lossy{next: api, lose: first(c.what)})
			o := patient()
			o.Computed = c.computed
			res, err := retry.Update(t.Context(), m.Object("flags"), c.edit, o)
			if unknown := errors.As(err, new(*retry.OutcomeUnknownError)); unknown != c.unknown || !unknown && err != nil {
				t.Fatalf("got %+v, %v", res, err)
			}
			if res.Attempts != c.attempts {
				t.Errorf("%d attempts, want %d", res.Attempts, c.attempts)
			}
			if got := value(mustGet(t, m, "flags"), "count"); got != "1" {
				t.Errorf("the counter is %v", got)
			}
		})
	}
}

func TestALostCreate(t *testing.T) {
	mine := func(found types.Document) bool { return value(found, "a") == "mine" }
	for name, c := range map[string]struct {
		what    loss
		there   bool // another's, before
		history bool
		check   func(error) bool
	}{
		"that landed":                              {dropAnswer, false, true, nil},
		"that landed, without history":             {dropAnswer, false, false, nil},
		"that did not land":                        {dropBefore, false, true, nil},
		"that did not land, without history":       {dropBefore, false, false, nil},
		"of what another made":                     {dropAnswer, true, true, apierrors.IsAlreadyExists},
		"of what another made, and got nowhere":    {dropBefore, true, true, apierrors.IsAlreadyExists},
		"of what another may have made, or it did": {dropBefore, true, false, func(err error) bool { return errors.As(err, new(*retry.OutcomeUnknownError)) }},
	} {
		t.Run(name, func(t *testing.T) {
			api := realAPI(t)
			want := "mine"
			if c.there {
				want = "theirs"
				mustCreate(t, mapsOf(t, api), flags("a", want))
			}
			if !c.history {
				api = withoutHistory(api, kubernetes())
			}
			m := mapsOf(t, &lossy{next: api, lose: first(c.what)})
			res, err := retry.Create(t.Context(), m.Object("flags"), flags("a", "mine"), mine, patient())
			if c.check == nil && err != nil || c.check != nil && !c.check(err) {
				t.Errorf("got %+v, %v", res, err)
			}
			if got := value(mustGet(t, m, "flags"), "a"); got != want {
				t.Errorf("it holds %v, want %s", got, want)
			}
		})
	}
}

func TestALostDelete(t *testing.T) {
	for name, c := range map[string]struct {
		what    loss
		history bool
	}{
		"that landed":                        {dropAnswer, true},
		"that landed, without history":       {dropAnswer, false},
		"that did not land":                  {dropBefore, true},
		"that did not land, without history": {dropBefore, false},
	} {
		t.Run(name, func(t *testing.T) {
			api := realAPI(t)
			mustCreate(t, mapsOf(t, api), flags("a", "1"))
			if !c.history {
				api = withoutHistory(api, kubernetes())
			}
			m := mapsOf(t, &lossy{next: api, lose: first(c.what)})
			if res, err := retry.Delete(t.Context(), m.Object("flags"), retry.Version{}, patient()); err != nil || res.Outcome != retry.Written {
				t.Errorf("got %+v, %v", res, err)
			}
			if _, err := m.Get(t.Context(), "flags"); !apierrors.IsNotFound(err) {
				t.Errorf("it is there: %v", err)
			}
		})
	}
}

func TestAHistoryInTroubleIsWaitedFor(t *testing.T) {
	api := realAPI(t)
	var asked atomic.Int64
	trouble := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/history") {
			switch asked.Add(1) {
			case 1:
				stub(502, "text/html", "<html>").ServeHTTP(w, r)
				return
			case 2:
				hangUp("").ServeHTTP(w, r)
				return
			}
		}
		api.ServeHTTP(w, r)
	})
	m := mapsOf(t, &lossy{next: trouble, lose: func(r *http.Request, _ int64) loss {
		if r.Method == http.MethodPut {
			return dropAnswer
		}
		return passOn
	}})
	mustCreate(t, m, flags("count", "0"))
	o := patient()
	o.Computed = true
	res, err := retry.Update(t.Context(), m.Object("flags"), increment, o)
	if err != nil || value(res.Object, "count") != "1" {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestNothingButNotFoundLeadsToACreate(t *testing.T) {
	status := func(code int, reason string) http.Handler {
		return stub(code, "application/json", `{"kind":"Status","status":"Failure","reason":"`+reason+`","code":`+strconv.Itoa(code)+`}`)
	}
	for name, answer := range map[string]http.Handler{
		"a 404 page":        stub(404, "text/html", "<html>not found</html>"),
		"an empty 404":      stub(404, "text/plain", ""),
		"a 404 cut off":     hangUp("HTTP/1.1 404 Not Found\r\nContent-Length: 500\r\n\r\n{\"kind\":\"Status\",\"reason\":\"NotFound\""),
		"an unknown path":   kubernetes(),
		"Forbidden":         status(403, "Forbidden"),
		"InternalError":     status(500, "InternalError"),
		"a 502 page":        stub(502, "text/html", "<html>"),
		"a success page":    stub(200, "text/html", "<html>"),
		"an object cut off": hangUp("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"kind\":\"ConfigMap\""),
		"a broken line":     hangUp(""),
		"NotFound of a 500": stub(500, "application/json", `{"kind":"Status","status":"Failure","reason":"NotFound","code":404}`),
	} {
		t.Run(name, func(t *testing.T) {
			api := record(answer)
			m := mapsOf(t, api)
			fresh := func(context.Context) (types.Document, error) { return flags("a", "1"), nil }
			res, err := retry.Upsert(t.Context(), m.Object("flags"), fresh, increment, retry.Options{})
			if err == nil {
				t.Errorf("got %+v", res)
			}
			if n := len(api.sent("POST")) + len(api.sent("PUT")); n != 0 {
				t.Errorf("%d writes were sent", n)
			}
		})
	}
}

func TestRetryAfterIsObeyed(t *testing.T) {
	m := mapsOf(t, stub(503, "text/html", "<html>starting</html>", "Retry-After", "7"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wait time.Duration
	o := patient()
	o.Observe = func(e retry.Event) { wait = e.Wait; cancel() } // before it sleeps
	if _, err := retry.Update(ctx, m.Object("flags"), increment, o); err == nil {
		t.Error("no error")
	}
	if wait < 7*time.Second || wait > 8*time.Second {
		t.Errorf("it would wait %s", wait)
	}
}
