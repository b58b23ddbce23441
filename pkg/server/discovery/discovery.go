// Package discovery tells clients what the API serves: its versions, resources,
// verbs and short names. Clients ask before anything else, to map "cm" or the
// kind of a file to a path. The answers are those of kube-apiserver for the same
// resources.
//
// APIVersions, APIGroups and APIResources are the plain documents, for the server
// to write as it writes everything. Aggregated puts the aggregated ones before
// them, with which a client learns everything in two requests:
//
//	mux.Handle("/api", discovery.Aggregated(plainVersions))
//	mux.Handle("/apis", discovery.Aggregated(plainGroups))
//	mux.Handle("/api/v1", plainResources)
package discovery

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"example.com/cmctl/pkg/types"
)

// Aggregated answers GET on /api and /apis to clients that prefer the aggregated
// form, which have application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList
// first in their Accept header (or YAML or protobuf with these parameters). All
// else is for next, also to refuse it.
//
// Clients may keep the answer (Cache-Control: public) but revalidate it by its
// ETag: If-None-Match with it is answered 304.
func Aggregated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, media := documents()[r.URL.Path], preferred(r.Header.Get("Accept"))
		w.Header().Add("Vary", "Accept")
		if d == nil || media == "" || r.Method != http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		d.write(w, r, media)
	})
}

func (d *document) write(w http.ResponseWriter, r *http.Request, media string) {
	h := w.Header()
	h.Set("Cache-Control", "public")
	h.Set("ETag", d.etag)
	if r.Header.Get("If-None-Match") == d.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := d.bodies[media]
	if pretty, _ := strconv.ParseBool(r.URL.Query().Get("pretty")); pretty && media == types.MediaJSON {
		body = indented(body)
	}
	h.Set("Content-Type", media+parameters)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	// A client that is gone can't be told so.
	_, _ = w.Write(body)
}

func indented(body []byte) []byte {
	var out bytes.Buffer
	if err := json.Indent(&out, body, "", "  "); err != nil {
		return body // which is JSON all the same
	}
	return out.Bytes()
}
