package client

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"time"

	"example.com/cmctl/pkg/types"
)

// Whatever a stream holds, it ends, and what is taken for an event is one.
func FuzzStream(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"type":"ADDED","object":` + object(1) + `}{"type":"DELETED","object":` + object(2) + "}",
		`{"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"9"}}}`,
		`{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410,"reason":"Expired"}}`,
		`{"type":"ERROR","object":null}`, `{"type":"MODIFIED","object":[]}`, "<html>", `{"type":`,
	} {
		f.Add([]byte(seed))
	}
	target, err := ResolveTarget(TargetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	c, err := New(target, Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		body := &idleReader{body: io.NopCloser(bytes.NewReader(text)), limit: time.Hour, cancel: func() {}}
		s := &stream{client: c, exchange: exchange{ctx: t.Context(), turn: turn{peer: c.peers.current}}, cancel: func() {}, body: body, decoder: json.NewDecoder(body)}
		for range len(text) + 1 {
			e, err := s.next()
			if err != nil || e.Type == "" {
				return
			}
			if e.object.Kind() != types.Kind || e.object.ResourceVersion() == "" || e.Type != "BOOKMARK" && e.object.Name() == "" {
				t.Fatalf("%q passed for an event", e.Raw)
			}
		}
		t.Fatal("the stream does not end")
	})
}
