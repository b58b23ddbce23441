package server

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/server/discovery"
	"example.com/cmctl/pkg/server/openapi"
	"example.com/cmctl/pkg/types"
)

// serveDiscovery serves what tells clients what there is: the lists of versions
// and resources, and the schemas.
func (s *Server) serveDiscovery(mux *http.ServeMux) {
	document := func(v any) http.Handler {
		return s.serve(nil, verbs{http.MethodGet: func(*request) (answer, error) { return documentAnswer(v) }})
	}
	s.handle(mux, "/api", route{}, discovery.Aggregated(document(discovery.APIVersions())))
	s.handle(mux, "/apis", route{}, discovery.Aggregated(document(discovery.APIGroups())))
	s.handle(mux, "/api/v1", route{}, document(discovery.APIResources()))
	for _, group := range discovery.APIGroups().Groups {
		s.handle(mux, "/apis/"+group.Name, route{}, document(discovery.APIGroup(group.Name)))
		s.handle(mux, "/apis/"+group.PreferredVersion.GroupVersion, route{}, document(discovery.ReviewResources(group.Name)))
	}
	s.handle(mux, "/version", route{}, document(s.options.Version))
	s.handle(mux, "/api/v1/namespaces/{namespace}/events", route{resource: "events"}, s.serve(nil, verbs{http.MethodGet: s.noEvents}))
	schemas := openapi.Handler(s.refuse)
	for _, path := range openapi.Paths {
		s.handle(mux, path, route{}, schemas)
	}
}

// noEvents answers a list of events. Nobody records any here, but kubectl
// describe asks for them, and takes a refusal for its own failure.
func (s *Server) noEvents(r *request) (answer, error) {
	o, err := listOptions(r)
	if err != nil {
		return answer{}, err
	}
	if o.Watch {
		return answer{}, types.MethodNotAllowed("there are no events to watch")
	}
	return documentAnswer(&corev1.EventList{
		TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: types.APIVersion},
		ListMeta: metav1.ListMeta{ResourceVersion: s.store.State().Current.String()},
		Items:    []corev1.Event{},
	})
}
