package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/cmctl/pkg/types"
)

const (
	// pageSize is how many objects are asked for at once. Where that many are
	// too large for one answer, it is a tenth of it, and so on.
	pageSize = 500
	// maxRestarts is how often a list that the server can't continue begins
	// anew before that is an error.
	maxRestarts = 2
)

// List is a collection as it was at one resourceVersion.
type List struct {
	Items           []types.Document
	ResourceVersion string
}

// ListOptions choose what List returns. The zero value is all.
type ListOptions struct {
	// LabelSelector is a selector as Kubernetes writes it: "tier=web,!old".
	LabelSelector string
	// FieldSelector selects by metadata.name and metadata.namespace, the fields
	// that servers know for ConfigMaps: "metadata.name!=flags".
	FieldSelector string
}

// List reads the whole collection, page by page, as it was at one version: if
// the server no longer has that version when a later page is due, it begins
// anew.
func (m *ConfigMaps) List(ctx context.Context, o ListOptions) (*List, error) {
	k, err := m.collection()
	if err != nil {
		return nil, err
	}
	for restarts := 0; ; restarts++ {
		list, err := m.pages(ctx, k, o)
		if err == nil || !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) || restarts == maxRestarts {
			return list, err
		}
	}
}

func (m *ConfigMaps) collection() (call, error) {
	k := call{method: http.MethodGet, limit: listLimit}
	if m.namespace == "" {
		k.path = []string{"api", "v1", types.ConfigMaps.Plural}
		k.object = "configmaps in all namespaces"
		return k, nil
	}
	if err := checkSegment("metadata.namespace", m.namespace, ""); err != nil {
		return call{}, err
	}
	k.path = []string{"api", "v1", "namespaces", m.namespace, types.ConfigMaps.Plural}
	k.object = "configmaps in namespace " + strconv.Quote(m.namespace)
	return k, nil
}

// pages reads from the first page to the last.
func (m *ConfigMaps) pages(ctx context.Context, k call, o ListOptions) (*List, error) {
	all := &List{}
	token, size := "", pageSize
	for {
		k.query = url.Values{"limit": {strconv.Itoa(size)}}
		if o.LabelSelector != "" {
			k.query.Set("labelSelector", o.LabelSelector)
		}
		if o.FieldSelector != "" {
			k.query.Set("fieldSelector", o.FieldSelector)
		}
		if token != "" {
			k.query.Set("continue", token)
		}
		a, err := m.client.do(ctx, k)
		if errors.Is(err, errTooLarge) && size >= 10 {
			size /= 10
			continue
		}
		if err != nil {
			return nil, err
		}
		page, ok := parsePage(a.body)
		if !ok || token != "" && page.Continue() == token {
			return nil, m.client.notTheObject(k, a)
		}
		all.ResourceVersion = page.doc.ResourceVersion()
		all.Items = append(all.Items, page.items...)
		if token = page.Continue(); token == "" {
			return all, nil
		}
	}
}

// page is one answer to a list: a document whose items were taken apart.
type page struct {
	doc   types.Document
	items []types.Document
}

// Continue is the token that asks for the next page, empty on the last.
func (p page) Continue() string {
	meta, _ := p.doc["metadata"].(map[string]any)
	token, _ := meta["continue"].(string)
	return token
}

// parsePage reads a ConfigMapList; ok is false if the body is anything else.
func parsePage(body []byte) (p page, ok bool) {
	doc, err := types.ParseDocument(body)
	if err != nil || doc.Kind() != types.ListKind {
		return page{}, false
	}
	p.doc = doc
	raw, isList := doc["items"].([]any)
	if !isList && doc["items"] != nil {
		return page{}, false
	}
	for _, r := range raw {
		item, isObject := r.(map[string]any)
		if !isObject {
			return page{}, false
		}
		// The items of a list lack what the list's own kind implies.
		item["apiVersion"], item["kind"] = types.APIVersion, types.Kind
		p.items = append(p.items, item)
	}
	return p, true
}
