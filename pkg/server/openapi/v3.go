package openapi

import (
	"encoding/json"
	"regexp"
	"strings"

	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// splitV3 makes v3 documents of a v2 document, one for each version of each group,
// with the schemas that its paths refer to. They are named as the index names
// them, after the paths: "api/v1" for what is under /api/v1/.
func splitV3(s *spec.Swagger) map[string]*spec3.OpenAPI {
	whole := openapiconv.ConvertV2ToV3(s)
	parts := map[string]*spec3.OpenAPI{}
	for path, item := range whole.Paths.Paths {
		requireBodies(s.Paths.Paths[path], item)
		name := groupVersion(path)
		part, ok := parts[name]
		if !ok {
			part = &spec3.OpenAPI{
				Version:    whole.Version,
				Info:       whole.Info,
				Paths:      &spec3.Paths{Paths: map[string]*spec3.Path{}},
				Components: &spec3.Components{},
			}
			parts[name] = part
		}
		part.Paths.Paths[path] = item
	}
	for _, part := range parts {
		part.Components.Schemas = reachable(part.Paths, whole.Components.Schemas)
	}
	return parts
}

// groupVersion is the name of the document that a path belongs to.
func groupVersion(path string) string {
	const core = "api/v1"
	name := strings.Trim(path, "/")
	if strings.HasPrefix(name, core) {
		return core
	}
	if parts := strings.SplitN(name, "/", 4); len(parts) == 4 {
		return strings.Join(parts[:3], "/") // apis, the group and the version
	}
	return name
}

// requireBodies marks the bodies that must be sent, which the conversion forgets.
func requireBodies(v2 spec.PathItem, v3 *spec3.Path) {
	for from, to := range map[*spec.Operation]*spec3.Operation{v2.Post: v3.Post, v2.Put: v3.Put, v2.Patch: v3.Patch} {
		if from != nil && to.RequestBody != nil {
			to.RequestBody.Required = true
		}
	}
}

// reference is how the JSON of a v3 document refers to a schema.
var reference = regexp.MustCompile(`"#/components/schemas/([^"]+)"`)

// reachable are the schemas that paths refer to, and those that these do.
func reachable(paths *spec3.Paths, all map[string]*spec.Schema) map[string]*spec.Schema {
	found := map[string]*spec.Schema{}
	var follow func(any)
	follow = func(content any) {
		asJSON, err := json.Marshal(content)
		if err != nil {
			return // then the document can't be encoded either, and says why
		}
		for _, match := range reference.FindAllSubmatch(asJSON, -1) {
			name := string(match[1])
			if _, ok := found[name]; !ok {
				found[name] = all[name]
				follow(all[name])
			}
		}
	}
	follow(paths)
	return found
}
