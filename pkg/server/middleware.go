package server

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"example.com/cmctl/pkg/server/audit"
	"example.com/cmctl/pkg/server/inject"
	"example.com/cmctl/pkg/types"
)

// requestInfo is what the logs tell about a request. It belongs to the
// goroutine that serves it.
type requestInfo struct {
	id      string
	http    *http.Request   // as it came
	gone    <-chan struct{} // closed once the client has ended its side of the connection
	code    int
	version string
	stream  stream // what is still to run, after its head was sent
	// attributes are what the request is about. Until its path has found its route
	// they are empty, and until authenticate has let it through they have no user.
	attributes authorizer.AttributesRecord
	// impersonator is who sends the request, where that acts as somebody else, who
	// is the user then; else nil.
	impersonator user.Info
	held         held
	// entry is what the audit log tells; nil until begun, and where it tells nothing.
	entry *audit.Entry
	begun bool
}

type infoKey struct{}

// infoOf finds the requestInfo that recoverPanics put into the context.
func infoOf(r *http.Request) *requestInfo {
	if info := infoFrom(r.Context()); info != nil {
		return info
	}
	return &requestInfo{}
}

// infoFrom is nil where no request is served.
func infoFrom(ctx context.Context) *requestInfo {
	info, _ := ctx.Value(infoKey{}).(*requestInfo)
	return info
}

// writer notes the status line that is sent, and has it logged before.
type writer struct {
	http.ResponseWriter
	server *Server
	info   *requestInfo
}

func (w *writer) WriteHeader(code int) {
	if w.info.code == 0 {
		w.info.code = code
		w.server.auditAnswer(w.info)
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *writer) Write(b []byte) (int, error) {
	if w.info.code == 0 {
		w.info.code = http.StatusOK
		w.server.auditAnswer(w.info)
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach deadlines and flushing.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// recoverPanics is outermost: whatever panics becomes a 500 Status, and its
// cause stays in the log.
func (s *Server) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := &requestInfo{id: uuid.NewString(), http: r, gone: r.Context().Done()}
		tracked := &writer{ResponseWriter: w, server: s, info: info}
		r = r.WithContext(context.WithValue(r.Context(), infoKey{}, info))
		defer func() {
			cause := recover()
			if cause == nil {
				s.auditEnd(info)
				return
			}
			if cause == http.ErrAbortHandler {
				s.auditEnd(info)
				panic(cause) // the way to cut a connection; net/http expects it
			}
			s.log.Error("panic", "id", info.id, "method", audit.CutMethod(r.Method), "path", r.URL.Path,
				"cause", cause, "stack", string(debug.Stack()))
			s.auditEntry(info).Panicked()
			if info.code != 0 {
				s.auditEnd(info)
				panic(http.ErrAbortHandler) // too late for another answer
			}
			s.refuse(tracked, r, types.Internal(info.id))
		}()
		next.ServeHTTP(tracked, r)
	})
}

// identify names each request, in the header that Kubernetes uses, and logs
// how it ended. Bodies and values are never logged.
func (s *Server) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, start := infoOf(r), s.clock()
		w.Header().Set("Audit-Id", info.id)
		defer func() { s.logAccess(r, info, s.clock().Sub(start), w.Header()[inject.Header]) }()
		next.ServeHTTP(w, r)
	})
}

// logAccess logs reads at debug level, so that the log of a busy server tells
// what changed; and so what changed nothing for lack of good credentials, of which
// the log tells otherwise.
func (s *Server) logAccess(r *http.Request, info *requestInfo, took time.Duration, injected []string) {
	code, level := info.code, slog.LevelInfo
	if code == 0 && len(injected) == 0 { // else there is no answer, on purpose
		code = http.StatusInternalServerError // it panics, and is answered further out
	}
	if (r.Method == http.MethodGet && code < http.StatusInternalServerError) || code == http.StatusUnauthorized {
		level = slog.LevelDebug
	}
	if !s.log.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("id", info.id),
		slog.String("method", audit.CutMethod(r.Method)),
		slog.String("path", r.URL.Path),
		slog.Int("code", code),
		slog.Duration("duration", took),
		slog.String("userAgent", r.UserAgent()),
	}
	if info.version != "" {
		attrs = append(attrs, slog.String("resourceVersion", info.version))
	}
	if name := info.userName(); name != "" {
		attrs = append(attrs, slog.String("user", name))
	}
	if info.impersonator != nil {
		attrs = append(attrs, slog.String("impersonator", info.impersonator.GetName()))
	}
	if len(injected) > 0 {
		attrs = append(attrs, slog.String("injected", strings.Join(injected, ",")))
	}
	s.log.LogAttrs(r.Context(), level, "request", attrs...)
}

// goOn runs a stream when the request that began it is over: outside the limits of
// requests, and in a context that ends when the client goes.
func (s *Server) goOn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		stream := infoOf(r).stream
		if stream == nil {
			return
		}
		// As long as there is a body to read, net/http does not notice that a client goes.
		if r.ContentLength != 0 {
			if n, err := io.Copy(io.Discard, io.LimitReader(r.Body, drainLimit)); err != nil || n == drainLimit {
				return
			}
		}
		stream.run(r.Context(), w)
	})
}

// misbehave injects the faults that are asked for. It comes before limit: a request
// that is made to wait takes the place of no other.
func (s *Server) misbehave(next http.Handler) http.Handler { return s.faults.Handler(next, s.refuse) }

// answerGrace is how much longer than the request itself its answer may take to
// be written, so that a timeout can still be told.
const answerGrace = 10 * time.Second

// bound gives each request its deadline: its work by the context, and the
// connection so that a client that trickles can't hold it. It comes before any
// refusal, for a connection keeps the deadline of the request before.
//
// Only the deadline ends the work. net/http cancels its context once the client
// has closed its side of the connection, which a client may do after its request
// and still wait for the answer; what has come whole is carried out, unless it would
// have to wait for its turn. A body that does not come whole fails to be read.
func (s *Server) bound(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit, err := s.timeLimit(r)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), limit)
		defer cancel()
		conn, deadline := http.NewResponseController(w), time.Now().Add(limit)
		// Recorders have no deadlines, and need none.
		if r.ContentLength != 0 {
			_ = conn.SetReadDeadline(deadline)
		}
		_ = conn.SetWriteDeadline(deadline.Add(answerGrace))
		if r = r.WithContext(ctx); err != nil {
			s.refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// timeLimit is how long a request may take: the server's limit, or less if the
// client says so. Of a watch, timeoutSeconds tells.
func (s *Server) timeLimit(r *http.Request) (time.Duration, error) {
	limit := s.options.RequestTimeout
	if r.URL.RawQuery == "" {
		return limit, nil
	}
	query := r.URL.Query()
	text := query.Get("timeout")
	if text == "" || query.Has("watch") || strings.HasPrefix(r.URL.Path, "/api/v1/watch/") {
		return limit, nil
	}
	asked, err := time.ParseDuration(text)
	if err != nil {
		return limit, types.BadRequest(fmt.Sprintf("invalid timeout specified in the request URL - %v", err))
	}
	if asked > 0 {
		limit = min(limit, asked)
	}
	return limit, nil
}

// checkPath keeps paths from the router that it would answer with a redirect:
// clients don't follow one with a write. Trailing slashes are fine, other empty
// segments and those of dots are nowhere. As in Kubernetes an escaped slash parts
// segments too, and a last segment of dots is a name, if no good one.
func (s *Server) checkPath(next http.Handler) http.Handler {
	nowhere := s.guarded(s.serve(nil, nil))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := *r.URL
		u.Path, u.RawPath = cmp.Or(strings.TrimRight(u.Path, "/"), "/"), ""
		if strings.Contains(u.Path, "//") || strings.Contains(u.Path, "/./") || strings.Contains(u.Path, "/../") || u.Path[0] != '/' {
			infoOf(r).attributes = unrouted(r)
			nowhere.ServeHTTP(w, r)
			return
		}
		parent, last := path.Split(u.Path)
		if last == "." || last == ".." {
			u.RawPath = (&url.URL{Path: parent}).EscapedPath() + strings.ReplaceAll(last, ".", "%2E")
		}
		r = r.WithContext(r.Context())
		r.URL = &u
		next.ServeHTTP(w, r)
	})
}

// refuse answers where there is no verb to return the error.
func (s *Server) refuse(w http.ResponseWriter, hr *http.Request, err error) {
	r := &request{http: hr, writer: w, info: infoOf(hr), query: hr.URL.Query()}
	s.respond(w, r, answer{}, err)
}
