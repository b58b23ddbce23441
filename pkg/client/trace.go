package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"example.com/cmctl/pkg/types"
)

// Detail is how much a trace tells.
type Detail int

const (
	// TraceRequests is a line a request: method, URL, code and duration.
	TraceRequests Detail = iota
	// TraceHeaders adds the headers of request and answer, credentials masked.
	TraceHeaders
	// TraceBodies adds the bodies, with sizes in the place of all that may be data.
	TraceBodies
)

// trace tells of one request that has ended.
func (c *Client) trace(e exchange, took time.Duration, err error) {
	if c.options.Trace == nil {
		return
	}
	end := fmt.Sprintf("%d %s", e.code, http.StatusText(e.code))
	if err != nil {
		end = "failed: " + c.cause(e, err).text
	}
	through := ""
	if e.peer.socket != "" {
		through = " through " + e.peer.socket
	}
	lines := fmt.Sprintf("%s %s%s %s in %s", e.method, e.address, through, end, took.Round(time.Millisecond))
	if c.options.TraceDetail >= TraceBodies {
		for _, body := range []struct {
			mark string
			text []byte
		}{{"> ", e.call.body}, {"< ", e.body}} {
			if len(body.text) > 0 {
				lines += "\n" + body.mark + maskBody(body.text)
			}
		}
	}
	c.options.Trace(lines)
}

// headerTrace tells of the headers as they go over the wire, with what client-go
// adds to them.
type headerTrace struct {
	next http.RoundTripper
	tell func(string)
}

func (t *headerTrace) RoundTrip(req *http.Request) (*http.Response, error) {
	t.tell("> " + req.Method + " " + req.URL.Redacted() + headerLines("> ", req.Header))
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		t.tell("< " + resp.Proto + " " + resp.Status + headerLines("< ", resp.Header))
	}
	return resp, err
}

// WrappedRoundTripper lets apimachinery find the transport whose connections are
// to be closed.
func (t *headerTrace) WrappedRoundTripper() http.RoundTripper { return t.next }

// shownHeaders are those whose values hold no credentials. Of any other only the
// size is shown: who knows what a plugin or a proxy adds.
var shownHeaders = []string{"Accept", "Accept-Encoding", "Audit-Id", "Cache-Control", "Cmctl-Write-Id", "Content-Encoding",
	"Content-Length", "Content-Type", "Date", "Impersonate-Group", "Impersonate-Uid", "Impersonate-User", "Retry-After",
	"User-Agent", "Vary", "Warning", "X-Content-Type-Options", "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid"}

func headerLines(mark string, h http.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			if !slices.Contains(shownHeaders, name) {
				value = size(value)
			}
			b.WriteString("\n" + mark + name + ": " + value)
		}
	}
	return b.String()
}

// maskBody is a body in which sizes stand for all that may be what people keep
// in ConfigMaps. What isn't JSON could be anything, and is a size as a whole.
func maskBody(body []byte) string {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil || dec.More() {
		return fmt.Sprintf("(%d bytes)", len(body))
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(mask(v, shownIn(v))); err != nil {
		return fmt.Sprintf("(%d bytes)", len(body))
	}
	return strings.TrimSpace(text.String())
}

// shape is which fields of a map have values that are shown; * stands for each
// key of a map, and for each item of a list. Nil shows none: a field that nobody
// knows may be a misspelt one with data.
type shape map[string]shape

// shown is the shape of a value that holds no text of people's.
var shown = shape{}

// showing is a shape that shows the fields of those names.
func showing(names string) shape {
	s := shape{}
	for _, name := range strings.Fields(names) {
		s[name] = shown
	}
	return s
}

// with adds a field that is a map or a list.
func (s shape) with(field string, of shape) shape {
	s[field] = of
	return s
}

var (
	shownMeta = showing("name namespace generateName uid resourceVersion generation creationTimestamp deletionTimestamp continue remainingItemCount").
			with("labels", shape{"*": shown}).
			with("managedFields", shape{"*": showing("manager operation apiVersion time fieldsType subresource")})
	shownObject = showing("kind apiVersion immutable").with("metadata", shownMeta)
	shownPatch  = shape{"*": showing("op path from")}
	shownStatus = showing("kind apiVersion status reason code").
			with("details", showing("name kind uid group retryAfterSeconds").
				with("causes", shape{"*": showing("reason field")}))
	shownHistory = showing("kind apiVersion").with("metadata", shownMeta).
			with("items", shape{"*": showing("resourceVersion uid verb fieldManager user time writeID deleted")})
	shownReview = showing("kind apiVersion").
			with("spec", shape{"resourceAttributes": showing("namespace verb group version resource name")}).
			with("status", showing("allowed denied"))
	shownAny = showing("kind apiVersion immutable").with("metadata", shownMeta).
			with("items", shape{"*": shownObject}).
			with("rows", shape{"*": shape{"object": shownObject}})
)

// shownIn is the shape of a body.
func shownIn(v any) shape {
	body, ok := v.(map[string]any)
	if !ok {
		return shownPatch
	}
	switch body["kind"] {
	case "Status":
		return shownStatus
	case types.HistoryKind:
		return shownHistory
	case "SelfSubjectAccessReview":
		return shownReview
	}
	return shownAny
}

// mask puts sizes in the place of what a shape doesn't show.
func mask(v any, s shape) any {
	at := func(key string) shape {
		if of, ok := s[key]; ok {
			return of
		}
		return s["*"]
	}
	switch v := v.(type) {
	case nil:
		return nil // a patch takes the key out
	case map[string]any:
		for key, value := range v {
			v[key] = mask(value, at(key))
		}
		return v
	case []any:
		for i, value := range v {
			v[i] = mask(value, s["*"])
		}
		return v
	}
	if s != nil && len(s) == 0 {
		return v
	}
	return size(fmt.Sprint(v))
}

func size(s string) string { return fmt.Sprintf("(%d bytes)", len(s)) }
