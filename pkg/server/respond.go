package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// answer is what a verb gives back when nothing is wrong.
type answer struct {
	code    int    // 0: 200
	json    []byte // the body
	version string // the version that a write made, for the log
}

// marshalled is an answer that is no stored object.
func marshalled(v any) (answer, error) {
	body, err := json.Marshal(v)
	return answer{json: body}, err
}

// statusClientGone is logged for requests whose client did not wait for the
// answer; it is never sent.
const statusClientGone = 499

// respond sends an answer or an error. It is the only place where a body of
// the API is written.
func (s *Server) respond(w http.ResponseWriter, r *request, a answer, err error) {
	if err != nil {
		if errors.Is(err, context.Canceled) && r.context().Err() != nil {
			r.info.code = statusClientGone
			// To return without an answer would be to answer 200.
			panic(http.ErrAbortHandler)
		}
		a = s.refusal(w, r, err)
	}
	if a.code == 0 {
		a.code = http.StatusOK
	}
	body, media := a.json, r.media
	if media == "" {
		media = types.MediaJSON
	}
	if media == types.MediaYAML {
		if body, err = types.JSONToYAML(body); err != nil {
			s.log.Error("answer can't be written as YAML", "id", r.info.id, "err", err)
			body, media = a.json, types.MediaJSON
		}
	} else if r.query.Get("pretty") == "true" || r.query.Get("pretty") == "1" {
		body = indented(body)
	}
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-cache, private")
	setWarnings(h, r.warnings)
	r.info.version = a.version
	w.WriteHeader(a.code)
	// A client that is gone can't be told so.
	_, _ = w.Write(body)
}

// refusal makes an answer of an error.
func (s *Server) refusal(w http.ResponseWriter, r *request, err error) answer {
	status := s.statusOf(r, err).ErrStatus
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	return statusAnswer(&status)
}

func statusAnswer(status *metav1.Status) answer {
	body, err := json.Marshal(status)
	if err != nil {
		panic(err) // a Status holds nothing that could fail
	}
	return answer{code: int(status.Code), json: body}
}

// statusOf finds the Status of an error. What is none yet, and is not expected
// of a store, is logged here and leaves as a plain 500.
func (s *Server) statusOf(r *request, err error) *types.StatusError {
	var status *types.StatusError
	switch {
	case errors.As(err, &status):
		return status
	case errors.Is(err, context.DeadlineExceeded):
		return types.Timeout("the request took longer than " + s.options.RequestTimeout.String() + "; nothing was stored")
	case errors.Is(err, store.ErrClosed):
		return types.Unavailable("the server is shutting down; nothing was stored", 1)
	case errors.Is(err, store.ErrFailed):
		s.log.Error("store failed", "id", r.info.id, "err", err)
		return types.StoreFailed()
	}
	s.log.Error("internal error", "id", r.info.id, "method", r.http.Method, "path", r.http.URL.Path, "err", err)
	return types.Internal(r.info.id)
}

func indented(body []byte) []byte {
	var out bytes.Buffer
	if json.Indent(&out, body, "", "  ") != nil {
		return body
	}
	out.WriteByte('\n')
	return out.Bytes()
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
