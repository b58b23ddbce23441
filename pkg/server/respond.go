package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"example.com/cmctl/pkg/server/audit"
	"example.com/cmctl/pkg/server/render"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// answer is what a verb gives back when nothing is wrong. It has a body or is a
// stream.
type answer struct {
	code    int            // 0: 200
	body    body           // writes what is answered
	stream  stream         // takes the connection for as long as it lasts
	version string         // the version that a write made, for the log
	status  *metav1.Status // what is answered, if that is a Status
}

// body is what is answered, before the form is known that the client wants.
type body func(*render.Renderer, render.Form) ([]byte, error)

// stream is an answer without an end of its own.
type stream interface {
	mediaType() string
	run(context.Context, http.ResponseWriter)
}

// documentAnswer is an answer that is no stored object.
func documentAnswer(v any) (answer, error) {
	return answer{body: func(r *render.Renderer, f render.Form) ([]byte, error) { return r.Document(f, v) }}, nil
}

// objectAnswer is a single object.
func objectAnswer(code int, e types.Encoded, version string) answer {
	return answer{code: code, body: func(r *render.Renderer, f render.Form) ([]byte, error) {
		return r.Object(f, render.Item{Encoded: e, Version: version})
	}}
}

func statusAnswer(status *metav1.Status) answer {
	return answer{code: int(status.Code), status: status, body: func(r *render.Renderer, f render.Form) ([]byte, error) {
		return r.Status(f, status)
	}}
}

// statusClientGone is logged for requests whose client did not wait for the
// answer; it is never sent.
const statusClientGone = 499

// respond sends an answer or an error. It is the only place where a body of
// the API is written.
func (s *Server) respond(w http.ResponseWriter, r *request, a answer, err error) {
	var text []byte
	form := r.form
	if err == nil && a.stream == nil {
		text, err = s.write(r, a)
	}
	s.answers.built(&r.info.held.answer)
	if err != nil {
		if errors.Is(err, context.Canceled) && r.context().Err() != nil {
			r.info.code = statusClientGone
			// To return without an answer would be to answer 200.
			panic(http.ErrAbortHandler)
		}
		form = render.ForError(r.http.Header, r.query)
		a, text = s.refusal(w, r, form, err)
	}
	if a.code == 0 {
		a.code = http.StatusOK
	}
	r.info.version = a.version
	s.auditBody(r, a, form, text)
	h := w.Header()
	h.Set("Cache-Control", "no-cache, private")
	setWarnings(h, r.warnings)
	if a.stream != nil {
		h.Set("Content-Type", a.stream.mediaType())
		w.WriteHeader(a.code)
		r.info.stream = a.stream
		return
	}
	h.Set("Content-Type", form.ContentType())
	s.send(w, r, a.code, text)
}

// write makes the text of an answer, and has its memory counted.
func (s *Server) write(r *request, a answer) ([]byte, error) {
	text, err := a.body(s.render, r.form)
	if err != nil {
		return nil, err
	}
	held := &r.info.held
	if r.http.Method != http.MethodGet {
		s.answers.insist(held, len(text))
		return text, nil
	}
	return text, s.answers.reserve(held, len(text))
}

// send writes a whole body, compressed if that is worth it and welcome. A client
// that is gone can't be told so, and one that does not take its answer is cut off.
func (s *Server) send(w http.ResponseWriter, r *request, code int, body []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	zip := render.Compressible(r.http.Header, len(body))
	if zip {
		h.Set("Content-Encoding", "gzip")
	} else {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(code)
	if len(body) <= freeAnswerBytes {
		_, _ = w.Write(body)
		return
	}
	var err error
	out := s.answers.pace(r.context(), &r.info.held, w)
	defer s.answers.sent(&r.info.held)
	if zip {
		err = render.Compress(out, body)
	} else {
		_, err = out.Write(body)
	}
	if err != nil {
		panic(http.ErrAbortHandler) // it must not look whole
	}
}

// refusal makes an answer of an error.
func (s *Server) refusal(w http.ResponseWriter, r *request, form render.Form, err error) (answer, []byte) {
	status := s.statusOf(r, err).ErrStatus
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	text, err := s.render.Status(form, &status)
	if err != nil {
		panic(err) // a Status holds nothing that could fail
	}
	return answer{code: int(status.Code), status: &status, body: statusAnswer(&status).body}, text
}

// statusOf finds the Status of an error. What is none yet, and is not expected
// of a store, is logged here and leaves as a plain 500.
func (s *Server) statusOf(r *request, err error) *types.StatusError {
	var status *types.StatusError
	var damage *store.DamageError
	switch {
	case errors.As(err, &status):
		return status
	case errors.Is(err, store.ErrUnknown):
		s.log.Warn("a write was not finished in time", "id", r.info.id, "err", err)
		return types.StoreTimeout()
	case errors.Is(err, store.ErrClusterFull):
		s.log.Warn("a write was refused", "id", r.info.id, "err", err)
		return types.ClusterFull()
	case errors.Is(err, store.ErrFull):
		s.log.Warn("a write was refused", "id", r.info.id, "err", err)
		return types.StoreFull()
	case errors.Is(err, store.ErrStalled):
		s.log.Warn("a write was refused", "id", r.info.id, "err", err)
		return types.StoreStalled()
	case errors.Is(err, store.ErrUnreachable):
		s.log.Warn("a request was refused", "id", r.info.id, "err", err)
		return types.StoreUnreachable()
	case errors.Is(err, store.ErrTooLarge):
		s.log.Warn("a write was refused", "id", r.info.id, "err", err)
		return types.StoreTooSmall()
	case errors.Is(err, context.DeadlineExceeded):
		return types.Timeout("the request took longer than it may; nothing was stored")
	case errors.Is(err, store.ErrClosed):
		return types.Unavailable("the server is shutting down; nothing was stored", 1)
	case errors.Is(err, store.ErrFailed):
		s.log.Error("store failed", "id", r.info.id, "err", err)
		return types.StoreFailed()
	case errors.As(err, &damage):
		s.log.Error("stored data is damaged", "id", r.info.id, "method", audit.CutMethod(r.http.Method), "path", r.http.URL.Path, "err", damage)
		return types.StoreDamaged(string(damage.Key), damage.File)
	}
	s.log.Error("internal error", "id", r.info.id, "method", audit.CutMethod(r.http.Method), "path", r.http.URL.Path, "err", err)
	return types.Internal(r.info.id)
}

// The Warning headers of one answer are limited in number and size: a body with
// a thousand unknown fields must not burst the client's header limit.
const (
	maxWarnings     = 20
	maxWarningBytes = 4 << 10
)

// setWarnings sends the warnings, or as many as fit and how many more there
// were.
func setWarnings(h http.Header, warnings []string) {
	left := maxWarningBytes
	for i, text := range warnings {
		text = strings.Map(func(c rune) rune {
			if c < ' ' || c == 0x7f {
				return ' '
			}
			return c
		}, strings.ToValidUTF8(text, "\uFFFD"))
		left -= len(text)
		if rest := len(warnings) - i; left < 0 || (i == maxWarnings-1 && rest > 1) {
			atLeast := ""
			if len(warnings) >= types.MaxProblems {
				atLeast = "at least " // the decoder stops counting there
			}
			addWarning(h, fmt.Sprintf("and %s%d more warnings", atLeast, rest))
			return
		}
		addWarning(h, text)
	}
}

func addWarning(h http.Header, text string) {
	if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
		h.Add("Warning", header)
	}
}
