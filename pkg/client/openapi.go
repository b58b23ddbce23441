package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// OpenAPI reads the schema of the core API that the server publishes, an OpenAPI
// v3 document as JSON. A server that has none gives an *UnexpectedError.
func (c *Client) OpenAPI(ctx context.Context) ([]byte, error) {
	k := call{method: http.MethodGet, path: []string{"openapi", "v3", "api", "v1"}, object: "the schema of the API", limit: listLimit}
	a, err := c.do(ctx, k)
	if err != nil {
		return nil, err
	}
	if !json.Valid(a.body) {
		return nil, c.notTheObject(k, a)
	}
	return a.body, nil
}
