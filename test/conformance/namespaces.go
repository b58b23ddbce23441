package conformance

import (
	"fmt"
	"net/http"
)

// createNamespaces makes the namespaces of the scenario.
func (r *replay) createNamespaces() error {
	for _, name := range r.namespaces {
		namespace := object{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", object{{"name", name}}}}
		resp, body, err := r.client.call(request{
			method:  http.MethodPost,
			target:  "/api/v1/namespaces",
			headers: withDefaults(nil, true),
			body:    []byte(encodeJSON(namespace)),
		})
		if err != nil {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
		if resp.StatusCode != http.StatusCreated {
			return fmt.Errorf("create namespace %s: %s: %s", name, resp.Status, body)
		}
	}
	return nil
}

// cleanUp deletes the ConfigMaps that are left, and the namespaces if they were
// created. It goes as far as it gets: a server that fails here has failed a step
// before, and no other scenario uses the namespaces.
func (r *replay) cleanUp(namespaces bool) {
	for _, name := range r.namespaces {
		collection := "/api/v1/namespaces/" + name + "/configmaps"
		for _, item := range r.items(collection) {
			r.remove(collection, item)
		}
		if namespaces {
			r.tryTo(request{method: http.MethodDelete, target: "/api/v1/namespaces/" + name})
		}
	}
}

// items are the objects of a collection, as far as they can be read.
func (r *replay) items(collection string) array {
	_, body, err := r.client.call(request{method: http.MethodGet, target: collection, headers: defaultHeaders})
	if err != nil {
		return nil
	}
	list, err := decodeJSON(body)
	if err != nil {
		return nil
	}
	items, _ := dig(list, "items").(array)
	return items
}

// remove deletes an object, its finalizers first: nobody is there to obey them.
func (r *replay) remove(collection string, item any) {
	name, _ := dig(item, "metadata.name").(string)
	if finalizers, ok := dig(item, "metadata.finalizers").(array); ok && len(finalizers) > 0 {
		r.tryTo(request{
			method:  http.MethodPatch,
			target:  collection + "/" + name,
			headers: object{{"Content-Type", "application/merge-patch+json"}},
			body:    []byte(`{"metadata":{"finalizers":null}}`),
		})
	}
	r.tryTo(request{method: http.MethodDelete, target: collection + "/" + name})
}

// tryTo makes a request of the cleaning up.
func (r *replay) tryTo(req request) {
	req.headers = withDefaults(req.headers, false)
	_, _, _ = r.client.call(req) // see cleanUp
}
