package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"example.com/cmctl/pkg/types"
)

// metadataOnly asks for a list without what its objects hold. A server that
// doesn't know how sends all of them.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// namesPage is how many names are asked for at once. The server may have to read
// all of an object to tell its name.
const namesPage = 200

// Names lists the names of a namespace's ConfigMaps in the server's order, up to
// a limit. It moves no data where the server can leave it out. Those that came
// before an error are returned with it.
func (m *ConfigMaps) Names(ctx context.Context, limit int) ([]string, error) {
	k, err := m.collection()
	if err != nil {
		return nil, err
	}
	return m.client.names(ctx, k, limit)
}

// Namespaces lists the names of the server's namespaces as Names does.
func (c *Client) Namespaces(ctx context.Context, limit int) ([]string, error) {
	return c.names(ctx, call{method: http.MethodGet, path: []string{"api", "v1", types.Namespaces.Plural}, object: "the namespaces", limit: listLimit}, limit)
}

// names reads page by page.
func (c *Client) names(ctx context.Context, k call, limit int) ([]string, error) {
	var names []string
	k.accept = metadataOnly
	for token := ""; ; {
		k.query = url.Values{"limit": {strconv.Itoa(min(limit-len(names), namesPage))}}
		if token != "" {
			k.query.Set("continue", token)
		}
		a, err := c.do(ctx, k)
		if err != nil {
			return names, err
		}
		var page struct {
			Kind     string
			Metadata struct{ Continue string }
			Items    []struct{ Metadata struct{ Name string } }
		}
		if json.Unmarshal(a.body, &page) != nil || !strings.HasSuffix(page.Kind, "List") || token != "" && page.Metadata.Continue == token {
			return names, c.notTheObject(k, a)
		}
		for _, item := range page.Items {
			names = append(names, item.Metadata.Name)
		}
		if token = page.Metadata.Continue; token == "" || len(names) >= limit {
			return names, nil
		}
	}
}
