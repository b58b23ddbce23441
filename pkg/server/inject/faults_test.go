package inject

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func faultsOf(t testing.TB, spec string) *Faults {
	t.Helper()
	s, err := Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return New(s)
}

// strikes is who is struck of the first n.
func strikes(f *Faults, k Kind, n int) (struck []int) {
	for i := range n {
		if f.strikes(httptest.NewRecorder(), k) {
			struck = append(struck, i)
		}
	}
	return struck
}

// A seed strikes the same ones each time, whatever other faults there are, and
// about as many as the share says.
func TestSeedRepeatsARun(t *testing.T) {
	const n = 10_000
	alone := strikes(faultsOf(t, "conflict=10%,seed=42"), Conflict, n)
	if got := float64(len(alone)) / n; math.Abs(got-0.1) > 0.01 {
		t.Errorf("%.3f of them are struck, want 0.1", got)
	}
	among := faultsOf(t, "gone=50%,conflict=10%,lost=3x,seed=42")
	strikes(among, Gone, 100)
	strikes(among, Lost, 100)
	if got := strikes(among, Conflict, n); !slices.Equal(got, alone) {
		t.Error("other faults change who is struck")
	}
	if got := strikes(faultsOf(t, "conflict=10%,seed=43"), Conflict, n); slices.Equal(got, alone) {
		t.Error("another seed strikes the same ones")
	}
	if got := among.Counts(); got[Conflict] != (Count{len(alone), n}) || got[Lost] != (Count{3, 100}) {
		t.Errorf("counted %v", got)
	}
}

func TestRates(t *testing.T) {
	for spec, want := range map[string][]int{
		"lost=2x,seed=1":   {0, 1},
		"lost=100%,seed=1": {0, 1, 2, 3, 4},
		"gone=100%,seed=1": nil,
	} {
		if got := strikes(faultsOf(t, spec), Lost, 5); !slices.Equal(got, want) {
			t.Errorf("%s: strikes %v, want %v", spec, got, want)
		}
	}
	if got := strikes(nil, Lost, 5); got != nil {
		t.Errorf("without faults: %v", got)
	}
}

func TestTimesLieBetweenTheTwo(t *testing.T) {
	f := faultsOf(t, "latency=10ms-20ms,watch-close=3s,seed=1")
	var least, most time.Duration = time.Hour, 0
	for range 1000 {
		d := f.lasts(httptest.NewRecorder(), Latency)
		least, most = min(least, d), max(most, d)
	}
	if least < 10*time.Millisecond || least > 11*time.Millisecond || most > 20*time.Millisecond || most < 19*time.Millisecond {
		t.Errorf("between %v and %v", least, most)
	}
	w := httptest.NewRecorder()
	if got := f.WatchTime(w, time.Minute); got != 3*time.Second || w.Header().Get(Header) != "watch-close=3s" {
		t.Errorf("a watch lasts %v, marked %q", got, w.Header().Get(Header))
	}
	if got := f.WatchTime(w, time.Second); got != time.Second {
		t.Errorf("a shorter watch lasts %v", got)
	}
}

// counted is a handler that does something once, and answers.
type counted struct{ done atomic.Int32 }

func (c *counted) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	c.done.Add(1)
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, "made")
}

func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusTeapot)
}

// What a client sees of each fault, and whether its request was carried out.
func TestWhatAClientSees(t *testing.T) {
	const object = "/api/v1/namespaces/default/configmaps/a"
	for _, c := range []struct {
		spec, method, path string
		done               int
		broken             bool   // the connection is reset
		body, header       string // of the answer; what of the header is there
	}{
		{"lost=100%", "PUT", object, 1, true, "", ""},
		{"lost=100%", "GET", object, 1, false, "made", ""},
		{"reset=100%", "PUT", object, 0, true, "", ""},
		{"reset=100%", "GET", object, 0, true, "", ""},
		{"429=100%", "GET", object, 0, false, "too many requests", "429"},
		{"500=100%", "PUT", object, 0, false, "Internal error", "500"},
		{"503=100%", "PUT", object, 0, false, "can't serve this just now", "503"},
		{"504=100%", "PUT", object, 0, false, "Timeout", "504"},
		{"latency=1ms", "PUT", object, 1, false, "made", "latency=1ms"},
		{"reset=100%", "GET", "/readyz", 1, false, "made", ""},
		{"429=100%", "GET", "/api/v1", 1, false, "made", ""},
		{"conflict=100%,gone=100%", "PUT", object, 1, false, "made", ""}, // those are the server's own to make
	} {
		t.Run(c.spec+" "+c.method+" "+c.path, func(t *testing.T) {
			next := &counted{}
			s := httptest.NewServer(faultsOf(t, c.spec).Handler(next, refuse))
			defer s.Close()
			req, err := http.NewRequest(c.method, s.URL+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := s.Client().Do(req)
			if errors.Is(err, syscall.ECONNRESET) != c.broken || !c.broken && err != nil {
				t.Fatalf("got %v", err)
			}
			if got := int(next.done.Load()); got != c.done {
				t.Errorf("carried out %d times, want %d", got, c.done)
			}
			if err != nil {
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || !strings.Contains(string(body), c.body) || resp.Header.Get(Header) != c.header {
				t.Errorf("got %q, %v, marked %q", body, err, resp.Header.Get(Header))
			}
			if warned := resp.Header.Get("Warning") != ""; warned != (c.done == 0) {
				t.Errorf("warning %q", resp.Header.Get("Warning"))
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	for spec, want := range map[string]string{"429=1x,retry-after=0s": "0", "503=1x,retry-after=0s": "0", "500=1x,retry-after=0s": ""} {
		w := httptest.NewRecorder()
		faultsOf(t, spec).Handler(&counted{}, refuse).ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/x", nil))
		if got := w.Header().Get("Retry-After"); got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}

// Latency is over when the request's time is.
func TestLatencyEndsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		r := httptest.NewRequestWithContext(ctx, "GET", "/api/v1/x", nil)
		faultsOf(t, "latency=1h").Handler(&counted{}, refuse).ServeHTTP(httptest.NewRecorder(), r)
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %v", took)
		}
	})
}
