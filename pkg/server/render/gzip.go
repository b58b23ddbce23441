package render

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
)

// compressAbove is the size in bytes from which an answer is worth compressing.
const compressAbove = 128 << 10

var gzipWriters = sync.Pool{New: func() any {
	// An error can only say that the level is none.
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	return w
}}

// Compressible tells whether an answer of this size is to be sent with gzip:
// it is large, and the client's Accept-Encoding lists it. Streams are not
// compressed.
func Compressible(h http.Header, size int) bool {
	if size <= compressAbove {
		return false
	}
	for coding := range strings.SplitSeq(h.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(coding) == "gzip" {
			return true
		}
	}
	return false
}

// Compress writes a whole answer with gzip. It may be called concurrently. The
// error is that of w.
func Compress(w io.Writer, body []byte) error {
	zip := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(zip)
	defer zip.Reset(nil)
	zip.Reset(w)
	if _, err := zip.Write(body); err != nil {
		return err
	}
	return zip.Close()
}
