package openapi

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/munnerz/goautoneg"

	"example.com/cmctl/pkg/types"
)

// Paths are the patterns of net/http that Handler answers.
var Paths = []string{pathV2, pathV3, pathV3 + "/"}

// cacheYears is how long clients may keep a document that they asked for by its
// hash. Another document has another hash.
const cacheYears = 1

// Handler answers GET and HEAD on the documents:
//
//	/openapi/v2          all there is, as JSON or protobuf
//	/openapi/v3          the index of the v3 documents, as JSON
//	/openapi/v3/api/v1   ConfigMaps and Namespaces, as JSON or protobuf
//	/openapi/v3/api, /openapi/v3/apis, /openapi/v3/version
//
// It passes every refusal to refuse, as an error that is a *types.StatusError,
// having written nothing: 404 for other paths, 405 for other methods and 406 for
// what it does not have; anything else is an error of the server.
//
// Documents have an ETag, and If-None-Match with it is answered 304. The index
// gives each v3 document a URL with ?hash=: what is found there may be kept for a
// year (Cache-Control: public, immutable), and an outdated hash is redirected to
// the present one.
func Handler(refuse func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, media, err := find(r)
		if err != nil {
			refuse(w, r, err)
			return
		}
		d.write(w, r, media)
	})
}

// find is the document that a request asks for, and the media type that it
// prefers.
func find(r *http.Request) (*document, string, error) {
	all, err := documents()
	if err != nil {
		return nil, "", fmt.Errorf("make the OpenAPI documents: %w", err)
	}
	d, ok := all[r.URL.Path]
	if !ok {
		return nil, "", types.UnknownPath()
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, "", types.MethodNotAllowed("")
	}
	media, err := d.choose(r.Header.Get("Accept"))
	return d, media, err
}

// choose finds the media type that an Accept header prefers among those that
// there are.
func (d *document) choose(accept string) (string, error) {
	if accept == "" {
		return d.mediaTypes[0], nil
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		media := strings.Replace(clause.Type+"/"+clause.SubType, "@v1.0", ".v1.0", 1)
		if media == "*/*" || media == "application/*" {
			media = d.mediaTypes[0]
		}
		if _, ok := d.bodies[media]; ok && clause.Q > 0 {
			return media, nil
		}
	}
	return "", types.NotAcceptable(d.mediaTypes...)
}

func (d *document) write(w http.ResponseWriter, r *http.Request, media string) {
	h := w.Header()
	h.Set("Vary", "Accept")
	h.Set("Cache-Control", "no-cache, private")
	h.Set("ETag", d.etag())
	if hash := r.URL.Query().Get("hash"); hash != "" && r.URL.Path != pathV2 && r.URL.Path != pathV3 {
		if hash != d.hash {
			http.Redirect(w, r, hashedURL(r.URL.Path, d.hash), http.StatusMovedPermanently)
			return
		}
		h.Set("Cache-Control", "public, immutable")
		h.Set("Expires", time.Now().AddDate(cacheYears, 0, 0).UTC().Format(http.TimeFormat))
	}
	h.Set("Content-Type", media)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(d.bodies[media]))
}
