package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"
	ktypes "k8s.io/apimachinery/pkg/types"

	"example.com/cmctl/pkg/server/audit"
	"example.com/cmctl/pkg/server/render"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// audit begins what the audit log tells of a request, once it is known who sends it,
// and refuses it if that must be logged and can't.
func (s *Server) audit(next http.Handler) http.Handler {
	if s.options.Audit == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := infoOf(r)
		var err error
		info.entry, err = s.options.Audit.Begin(s.clock(), info.id, info.http, &info.attributes)
		info.begun = true
		if err != nil {
			s.refuse(w, r, types.Unavailable("the audit log can't be written, and this server does nothing that it can't log; nothing was stored", 1))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// auditEntry is that of a request, which begins now if it is refused or panics before
// it came to audit.
func (s *Server) auditEntry(info *requestInfo) *audit.Entry {
	if s.options.Audit == nil || info.begun {
		return info.entry
	}
	if info.attributes.Verb == "" && info.attributes.Path == "" {
		info.attributes = unrouted(info.http)
	}
	info.entry, info.begun = s.options.Audit.Late(s.clock(), info.id, info.http, &info.attributes), true
	return info.entry
}

// auditAnswer logs an answer that is about to go out.
func (s *Server) auditAnswer(info *requestInfo) {
	if e := s.auditEntry(info); e != nil {
		e.Answering(s.clock(), info.code)
	}
}

// auditEnd logs a request that is over, if that is still to be done.
func (s *Server) auditEnd(info *requestInfo) {
	if e := s.auditEntry(info); e != nil {
		e.End(s.clock())
	}
}

// auditBody notes what is answered.
func (s *Server) auditBody(r *request, a answer, form render.Form, text []byte) {
	e := s.auditEntry(r.info)
	if a.status != nil {
		e.Status(a.status)
	}
	if !e.WantsResponse() || a.body == nil {
		return
	}
	var err error
	if form != (render.Form{}) {
		text, err = a.body(s.render, render.Form{})
	}
	if err == nil {
		e.Response(text)
	}
}

// auditSent notes what a body was read as.
func (r *request) auditSent(v any) {
	if !r.info.entry.WantsRequest() {
		return
	}
	if text, err := json.Marshal(v); err == nil {
		r.info.entry.Request(text)
	}
}

// auditPatch notes the body of a patch.
func (r *request) auditPatch(kind ktypes.PatchType, body []byte) {
	if !r.info.entry.WantsRequest() {
		return
	}
	if kind == ktypes.ApplyYAMLPatchType {
		var err error
		if body, err = types.YAMLToJSON(body); err != nil {
			return // it is refused
		}
	}
	r.info.entry.Request(body)
}

// commitAudited is the store's Commit, of which the audit log tells what it did. If
// it panics, that is left open.
func (s *Server) commitAudited(ctx context.Context, txn store.Txn) (rev store.Revision, err error) {
	if s.options.Audit == nil {
		return s.store.Commit(ctx, txn)
	}
	err = store.ErrUnknown
	defer func() { s.auditCommit(ctx, txn, rev, err) }()
	return s.store.Commit(ctx, txn)
}

// auditCommit tells of each write which version it took the place of: the one that
// its guard names.
func (s *Server) auditCommit(ctx context.Context, txn store.Txn, rev store.Revision, err error) {
	unknown := errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrFailed)
	if err != nil && !unknown {
		return // nothing was written
	}
	for _, w := range txn.Writes {
		c := changeOf(w)
		for _, guard := range txn.Guards {
			if guard.Key == w.Key && guard.Revision != 0 {
				c.Previous = guard.Revision.String()
			}
		}
		switch {
		case unknown:
			c.Outcome = audit.Unknown
		case w.Deleted:
			c.Outcome = audit.Deleted
		case c.Previous == "":
			c.Outcome = audit.Created
		default:
			c.Outcome = audit.Updated
		}
		if !unknown {
			c.Version = rev.String()
		}
		s.auditChange(ctx, w.Verb, c)
	}
}

// auditKept tells of a write that stores nothing.
func (s *Server) auditKept(ctx context.Context, rec store.Record, verb string, outcome audit.Outcome) {
	if s.options.Audit == nil {
		return
	}
	c := changeOf(rec)
	c.Outcome = outcome
	if rec.Revision != 0 {
		c.Previous = rec.Revision.String()
	}
	if outcome == audit.Unchanged {
		c.Version = c.Previous
	}
	s.auditChange(ctx, verb, c)
}

// auditChange tells of a change as part of the request that it was made for, or as
// the server's own.
func (s *Server) auditChange(ctx context.Context, verb string, c audit.Change) {
	info := infoFrom(ctx)
	switch {
	case info == nil:
		s.options.Audit.Own(s.clock(), uuid.NewString(), verb, c)
	case info.attributes.Resource == c.Resource && info.attributes.Verb != "deletecollection":
		info.entry.Changed(c)
	default:
		info.entry.Part(s.clock(), verb, c)
	}
}

// changeOf names the object of a record.
func changeOf(rec store.Record) audit.Change {
	resource, rest, _ := strings.Cut(string(rec.Key), "/")
	c := audit.Change{Resource: resource, Namespace: rest, Name: rest, UID: rec.UID} // a namespace is in itself
	if resource != types.Namespaces.Plural {
		c.Namespace, c.Name, _ = strings.Cut(rest, "/")
	}
	return c
}
