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
)

// Detail is how much a trace tells.
type Detail int

const (
	// TraceRequests is a line a request: method, URL, code and duration.
	TraceRequests Detail = iota
	// TraceHeaders adds the headers of request and answer, credentials masked.
	TraceHeaders
	// TraceBodies adds the bodies, with sizes in the place of data.
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
	lines := fmt.Sprintf("%s %s %s in %s", e.method, e.address, end, took.Round(time.Millisecond))
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

// maskBody is a body in which sizes stand for what people keep in ConfigMaps.
// What isn't JSON could be anything, and is a size as a whole.
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
	if err := enc.Encode(mask(v)); err != nil {
		return fmt.Sprintf("(%d bytes)", len(body))
	}
	return strings.TrimSpace(text.String())
}

// maskedFields are those that hold people's text, wherever they stand. The
// annotations are among them because the record of the last apply is.
var maskedFields = []string{"data", "binaryData", "annotations"}

func mask(v any) any {
	switch v := v.(type) {
	case map[string]any:
		_, operation := v["op"] // of a JSON patch
		for key, value := range v {
			if slices.Contains(maskedFields, key) || operation && key == "value" {
				v[key] = maskAll(value)
			} else {
				v[key] = mask(value)
			}
		}
	case []any:
		for i, value := range v {
			v[i] = mask(value)
		}
	}
	return v
}

func maskAll(v any) any {
	switch v := v.(type) {
	case nil:
		return nil // a patch takes the key out
	case map[string]any:
		for key, value := range v {
			v[key] = maskAll(value)
		}
		return v
	case []any:
		for i, value := range v {
			v[i] = maskAll(value)
		}
		return v
	}
	return size(fmt.Sprint(v))
}

func size(s string) string { return fmt.Sprintf("(%d bytes)", len(s)) }
