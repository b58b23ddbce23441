package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/types"
)

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
	k.accept = tableOf
	for token := ""; ; {
		k.query = url.Values{"includeObject": {string(metav1.IncludeNone)}, "limit": {strconv.Itoa(min(limit-len(names), namesPage))}}
		if token != "" {
			k.query.Set("continue", token)
		}
		a, err := c.do(ctx, k)
		if err != nil {
			return names, err
		}
		page, err := types.ParseDocument(a.body)
		if err != nil {
			return names, c.notTheObject(k, a)
		}
		found, ok := namesIn(page)
		if !ok || token != "" && continueToken(page) == token {
			return names, c.notTheObject(k, a)
		}
		names = append(names, found...)
		if token = continueToken(page); token == "" || len(names) >= limit {
			return names, nil
		}
	}
}

// namesIn are the names of the objects of a page: a Table, or a list from a server
// that has none.
func namesIn(page types.Document) (names []string, ok bool) {
	if page.Kind() == "Table" {
		rows, ok := tableRows(page)
		for _, r := range rows {
			names = append(names, r.Name)
		}
		return names, ok
	}
	items, isList := page["items"].([]any)
	for _, item := range items {
		object, _ := item.(map[string]any)
		names = append(names, types.Document(object).Name())
	}
	return names, strings.HasSuffix(page.Kind(), "List") && (isList || page["items"] == nil)
}
