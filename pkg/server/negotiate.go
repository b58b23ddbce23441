package server

import (
	"net/http"
	"strings"

	"github.com/munnerz/goautoneg"

	"example.com/cmctl/pkg/types"
)

// negotiate chooses what the answer is written as. Representations that
// Kubernetes has beyond JSON and YAML (tables, metadata only, protobuf) are not
// offered; clients that ask for them name plain JSON as well.
func negotiate(h http.Header) (string, error) {
	accept := strings.Join(h.Values("Accept"), ",")
	switch strings.TrimSpace(accept) {
	case "", "*/*", types.MediaJSON:
		return types.MediaJSON, nil
	}
	transformed := false
	for _, clause := range goautoneg.ParseAccept(accept) {
		media := clause.Type + "/" + clause.SubType
		if media == "*/*" {
			media = types.MediaJSON
		}
		if clause.Q == 0 || (media != types.MediaJSON && media != types.MediaYAML) {
			continue
		}
		if clause.Params["as"] == "" && clause.Params["stream"] == "" {
			return media, nil
		}
		transformed = true
	}
	if transformed {
		return "", types.NotAcceptableForm(types.MediaJSON, types.MediaYAML)
	}
	return "", types.NotAcceptable(types.MediaJSON, types.MediaYAML)
}
