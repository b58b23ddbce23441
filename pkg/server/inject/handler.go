package inject

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.com/cmctl/pkg/types"
)

// objects is where the paths of objects begin. Probes and discovery are spared.
const objects = "/api/v1/"

// refusals are the faults that are nothing but an answer.
var refusals = []struct {
	kind Kind
	err  func(retryAfter int) error
}{
	{TooMany, func(seconds int) error {
		return types.TooManyRequests("the server has too many requests at once, please try again later", seconds)
	}},
	{Internal, func(int) error { return types.Internal("") }},
	{Unavailable, func(seconds int) error {
		return types.Unavailable("the server can't serve this just now; nothing was stored", seconds)
	}},
	{Timeout, func(int) error { return types.Timeout("the request took longer than it may") }},
}

// Handler lets next misbehave. refuse answers a request with an error, as next
// would.
func (f *Faults) Handler(next http.Handler, refuse func(http.ResponseWriter, *http.Request, error)) http.Handler {
	if f == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, objects) {
			next.ServeHTTP(w, r)
			return
		}
		wait(r.Context(), f.lasts(w, Latency))
		if f.strikes(w, Reset) {
			cut(w)
		}
		for _, fault := range refusals {
			if f.strikes(w, fault.kind) {
				seconds := int(f.spec.retryAfter / time.Second)
				if seconds == 0 && (fault.kind == TooMany || fault.kind == Unavailable) {
					w.Header().Set("Retry-After", strconv.Itoa(seconds)) // a Status can't say so
				}
				refuse(w, r, fault.err(seconds))
				return
			}
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead && f.strikes(w, Lost) {
			next.ServeHTTP(&unsent{header: http.Header{}, ResponseWriter: w}, r)
			cut(w)
		}
		next.ServeHTTP(w, r)
	})
}

// wait waits for as long as the request may take at most.
func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// cut ends the connection without an answer, as a crash or a broken network does,
// and does not return.
func cut(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		if secured, ok := conn.(interface{ NetConn() net.Conn }); ok {
			conn = secured.NetConn() // without TLS's word of parting
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not an end; without it, it is an end all the same
		}
		_ = conn.Close()
	}
	// Over HTTP/2 the connection is not one request's: its stream alone is reset.
	panic(http.ErrAbortHandler) // the way to say that there is no answer
}

// unsent takes an answer that is never sent.
type unsent struct {
	http.ResponseWriter // what is not part of the answer goes on to it
	header              http.Header
}

func (u *unsent) Header() http.Header { return u.header }

func (u *unsent) WriteHeader(int) {}

func (u *unsent) Write(b []byte) (int, error) { return len(b), nil }

// Unwrap lets http.ResponseController reach deadlines.
func (u *unsent) Unwrap() http.ResponseWriter { return u.ResponseWriter }
