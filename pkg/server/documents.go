package server

import (
	"net/http"

	"example.com/cmctl/pkg/server/discovery"
	"example.com/cmctl/pkg/server/openapi"
)

// serveDiscovery serves what tells clients what there is: the lists of versions
// and resources, and the schemas.
func (s *Server) serveDiscovery(mux *http.ServeMux) {
	document := func(v any) http.Handler {
		return s.serve(nil, verbs{http.MethodGet: func(*request) (answer, error) { return documentAnswer(v) }})
	}
	mux.Handle("/api", discovery.Aggregated(document(discovery.APIVersions())))
	mux.Handle("/apis", discovery.Aggregated(document(discovery.APIGroups())))
	mux.Handle("/api/v1", document(discovery.APIResources()))
	mux.Handle("/version", document(s.options.Version))
	schemas := openapi.Handler(s.refuse)
	for _, path := range openapi.Paths {
		mux.Handle(path, schemas)
	}
}
