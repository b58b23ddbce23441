package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"example.com/cmctl/pkg/retry"
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

// ListOptions choose what List and Rows return. The zero value is all.
type ListOptions struct {
	// LabelSelector is a selector as Kubernetes writes it: "tier=web,!old".
	LabelSelector string
	// FieldSelector selects by metadata.name and metadata.namespace, the fields
	// that servers know for ConfigMaps: "metadata.name!=flags".
	FieldSelector string
	// PageSize is how many objects are asked for at once; 0 means 500.
	PageSize int
}

// List reads the whole collection, page by page, as it was at one version: if
// the server no longer has that version when a later page is due, it begins
// anew, twice at most. After that it fails with the server's Expired.
func (m *ConfigMaps) List(ctx context.Context, o ListOptions) (*List, error) {
	k, err := m.collection()
	if err != nil {
		return nil, err
	}
	items, version, err := wholeList(ctx, m.client, k, o, listItems)
	if err != nil {
		return nil, err
	}
	return &List{Items: items, ResourceVersion: version}, nil
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

// takePage makes items of one page; ok is false if the answer is no such page.
type takePage[T any] func(page types.Document) (items []T, ok bool)

// wholeList reads from the first page to the last, and begins anew where the
// server can't continue.
func wholeList[T any](ctx context.Context, c *Client, k call, o ListOptions, take takePage[T]) (items []T, version string, err error) {
	for range 1 + maxRestarts {
		items, version, err = pages(ctx, c, k, o, take)
		if err == nil || !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) && !errors.Is(err, errOtherVersion) {
			return items, version, err
		}
	}
	return nil, "", fmt.Errorf("no consistent list of %s: %d times in a row, the server dropped the version that was being read before the last page was (%w); "+
		"try again, or list fewer with a selector", k.object, 1+maxRestarts, err)
}

// errOtherVersion says that a page is not of the list that it was asked for as: a server
// with another store answered it.
var errOtherVersion = errors.New("a page came with another version than the one before it")

func pages[T any](ctx context.Context, c *Client, k call, o ListOptions, take takePage[T]) (all []T, version string, err error) {
	base, token, size := k.query, "", cmp.Or(o.PageSize, pageSize)
	for {
		k.query = o.query(base, token, size)
		a, err := c.do(ctx, k)
		if errors.Is(err, errTooLarge) && size >= 10 {
			size /= 10
			continue
		}
		if err != nil {
			return nil, "", err
		}
		doc, err := types.ParseDocument(a.body)
		if err != nil {
			return nil, "", c.notTheObject(k, a)
		}
		items, ok := take(doc)
		if !ok || token != "" && continueToken(doc) == token {
			return nil, "", c.notTheObject(k, a)
		}
		if token != "" && doc.ResourceVersion() != version {
			return nil, "", errOtherVersion
		}
		version = doc.ResourceVersion()
		all = append(all, items...)
		if token = continueToken(doc); token == "" {
			return all, version, nil
		}
	}
}

// query adds to base what asks for the page of that size which the token
// continues with.
func (o ListOptions) query(base url.Values, token string, size int) url.Values {
	query := o.selectors()
	maps.Copy(query, base)
	query.Set("limit", strconv.Itoa(size))
	if token != "" {
		query.Set("continue", token)
	}
	return query
}

// selectors are the parameters that choose the objects, in lists and watches.
func (o ListOptions) selectors() url.Values {
	query := url.Values{}
	for key, value := range map[string]string{"labelSelector": o.LabelSelector, "fieldSelector": o.FieldSelector} {
		if value != "" {
			query.Set(key, value)
		}
	}
	return query
}

// continueToken asks for the next page; it is empty on the last.
func continueToken(page types.Document) string {
	token, _ := page.Value("metadata", "continue")
	text, _ := token.(string)
	return text
}

// listItems takes a ConfigMapList apart.
func listItems(page types.Document) (items []types.Document, ok bool) {
	raw, isList := page["items"].([]any)
	if page.Kind() != types.ListKind || !isList && page["items"] != nil {
		return nil, false
	}
	for _, r := range raw {
		item, isObject := r.(map[string]any)
		if !isObject {
			return nil, false
		}
		// The items of a list lack what the list's own kind implies.
		item["apiVersion"], item["kind"] = types.APIVersion, types.Kind
		items = append(items, item)
	}
	return items, true
}

// ErrNotReached says that the server has not come to a version: it is of another
// server, or of a time that a restored backup has undone.
var ErrNotReached = errors.New("the server has not reached this version")

// VersionAt is the version that the ConfigMap had when the collection was at another
// one, such as that of a list, of an event or of another object: the zero value if
// there was none. It returns ErrNotReached, or Expired if the server no longer keeps
// what was there then.
func (m *ConfigMaps) VersionAt(ctx context.Context, name, collection string) (retry.Version, error) {
	all, err := m.versionsAt(ctx, ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}, collection)
	if err != nil {
		if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
			err = ErrNotReached
		}
		return retry.Version{}, err
	}
	then := all[objectKey{m.namespace, name}]
	return retry.Version{UID: then.uid, ResourceVersion: then.version}, nil
}
