package server

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/types"
)

// version answers /version.
func (s *Server) version(r *request) (answer, error) {
	return marshalled(s.options.Version)
}

// apiVersions answers /api. Clients find the server where they reached it, so
// no address is given.
func (s *Server) apiVersions(*request) (answer, error) {
	return marshalled(metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
		Versions:                   []string{types.APIVersion},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	})
}

// apiGroups answers /apis: there are no named groups.
func (s *Server) apiGroups(*request) (answer, error) {
	return marshalled(metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups:   []metav1.APIGroup{},
	})
}

// apiResources answers /api/v1: what there is and what can be done with it.
func (s *Server) apiResources(*request) (answer, error) {
	return marshalled(metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList"},
		GroupVersion: types.APIVersion,
		APIResources: []metav1.APIResource{{
			Name:         types.ConfigMaps.Plural,
			SingularName: "configmap",
			Namespaced:   true,
			Kind:         types.Kind,
			Verbs:        metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "update"},
			ShortNames:   []string{"cm"},
		}},
	})
}

// ready is nil while the store takes writes.
func (s *Server) ready() error { return s.store.Healthy() }

// health answers a probe with text, as Kubernetes' are: "ok", or the failed
// check by name. Why it failed is for the log.
func (s *Server) health(name string, check func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			s.refuse(w, r, types.MethodNotAllowed(""))
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		var err error
		if check != nil {
			err = check()
		}
		switch {
		case err != nil:
			s.log.Warn("probe failed", "probe", name, "err", err)
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = fmt.Fprintf(w, "[+]ping ok\n[-]store failed: reason withheld\n%s check failed\n", name)
		case r.URL.Query().Has("verbose"):
			_, _ = fmt.Fprintf(w, "[+]ping ok\n[+]store ok\n%s check passed\n", name)
		default:
			_, _ = fmt.Fprint(w, "ok")
		}
	})
}
