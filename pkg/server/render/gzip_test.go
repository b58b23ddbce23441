package render_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"testing"

	"example.com/cmctl/pkg/server/render"
)

func TestOnlyLargeAnswersAreCompressedAndOnlyIfTheClientSaysSo(t *testing.T) {
	const large = 128<<10 + 1
	for _, c := range []struct {
		accept string
		size   int
		want   bool
	}{
		{"gzip", large, true},
		{"deflate, gzip", large, true},
		{"gzip", large - 1, false},
		{"", large, false},
		{"deflate", large, false},
		// Kubernetes reads no weights.
		{"gzip;q=0", large, false},
	} {
		if got := render.Compressible(http.Header{"Accept-Encoding": {c.accept}}, c.size); got != c.want {
			t.Errorf("Accept-Encoding %q, %d bytes: got %v", c.accept, c.size, got)
		}
	}
}

func TestCompressedAnswersAreWhole(t *testing.T) {
	for range 3 { // writers are used again
		body := bytes.Repeat([]byte("some text "), 20000)
		var out bytes.Buffer
		if err := render.Compress(&out, body); err != nil {
			t.Fatal(err)
		}
		zip, err := gzip.NewReader(&out)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(zip); err != nil || !bytes.Equal(got, body) {
			t.Fatalf("got %d bytes, %v", len(got), err)
		}
		if err := render.Compress(broken{}, body); !errors.Is(err, errBroken) {
			t.Errorf("on a broken connection: got %v", err)
		}
	}
}

var errBroken = errors.New("connection is gone")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }
