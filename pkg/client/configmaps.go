package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// ConfigMaps are the ConfigMaps of one namespace, or of all, which can only be
// listed. It may be shared. Errors are described with the package.
type ConfigMaps struct {
	client    *Client
	namespace string
}

// impatient are the same for a loop that decides itself about another try.
func (m *ConfigMaps) impatient() *ConfigMaps { return m.client.impatient().ConfigMaps(m.namespace) }

// Get reads one.
func (m *ConfigMaps) Get(ctx context.Context, name string) (types.Document, error) {
	k, err := m.named(http.MethodGet, name)
	if err != nil {
		return nil, err
	}
	return m.object(ctx, k, name)
}

// Create makes one. The document must not carry a resourceVersion: the server
// alone assigns them. id names the write in the object's history.
func (m *ConfigMaps) Create(ctx context.Context, doc types.Document, id retry.WriteID) (types.Document, error) {
	if doc.ResourceVersion() != "" {
		return nil, types.CreateSetsVersion()
	}
	k, err := m.named(http.MethodPost, doc.Name())
	if err != nil {
		return nil, err
	}
	k.path = k.path[:len(k.path)-1] // the name is in the body
	return m.write(ctx, k, doc, id)
}

// Put replaces the one that doc names, if it is still at the resourceVersion
// that doc carries: a document without one is refused here already, for a
// Kubernetes API server would take it and overwrite what others wrote.
func (m *ConfigMaps) Put(ctx context.Context, doc types.Document, id retry.WriteID) (types.Document, error) {
	if v := doc.ResourceVersion(); v == "" || v == "0" {
		return nil, types.UpdateNeedsVersion()
	}
	k, err := m.named(http.MethodPut, doc.Name())
	if err != nil {
		return nil, err
	}
	return m.write(ctx, k, doc, id)
}

// check is a dry run of Put.
func (m *ConfigMaps) check(ctx context.Context, doc types.Document) error {
	k, err := m.named(http.MethodPut, doc.Name())
	if err != nil {
		return err
	}
	k.query = url.Values{"dryRun": {metav1.DryRunAll}}
	_, err = m.write(ctx, k, doc, "")
	return err
}

// Delete removes one, if it still has the UID and the ResourceVersion that v
// names; an empty part of v is not compared.
func (m *ConfigMaps) Delete(ctx context.Context, name string, v retry.Version, id retry.WriteID) error {
	k, err := m.named(http.MethodDelete, name)
	if err != nil {
		return err
	}
	options := deleteOptions(v)
	if m.client.options.DryRun {
		// Beside a body, Kubernetes doesn't look at the query.
		options.DryRun = []string{metav1.DryRunAll}
	}
	if k.body, err = json.Marshal(options); err != nil {
		return fmt.Errorf("encode the deletion of %s: %w", k.object, err)
	}
	k.id = id
	a, err := m.client.do(ctx, k)
	if err != nil {
		return err
	}
	// The answer is a Status, or the object if a finalizer holds it back.
	status := metav1.Status{}
	if json.Unmarshal(a.body, &status) == nil && status.Kind == "Status" && status.Status == metav1.StatusSuccess {
		return nil
	}
	if _, ok := m.parse(a.body, name); ok {
		return nil
	}
	return m.client.notTheObject(k, a)
}

func deleteOptions(v retry.Version) metav1.DeleteOptions {
	o := metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"}}
	if v == (retry.Version{}) {
		return o
	}
	o.Preconditions = &metav1.Preconditions{}
	if v.UID != "" {
		uid := apitypes.UID(v.UID)
		o.Preconditions.UID = &uid
	}
	if v.ResourceVersion != "" {
		o.Preconditions.ResourceVersion = &v.ResourceVersion
	}
	return o
}

// write sends a document and reads the object that the server made of it.
func (m *ConfigMaps) write(ctx context.Context, k call, doc types.Document, id retry.WriteID) (types.Document, error) {
	body, err := doc.JSON()
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", k.object, err)
	}
	k.body, k.id = body, id
	// A field that the server doesn't know it would drop, and report a success.
	if k.query == nil {
		k.query = url.Values{}
	}
	k.query.Set("fieldValidation", metav1.FieldValidationStrict)
	a, err := m.client.do(ctx, k)
	if err != nil {
		return nil, err
	}
	name := doc.Name()
	if name == "" { // the server has made one
		made, _ := types.ParseDocument(a.body)
		name = made.Name()
	}
	got, ok := m.parse(a.body, name)
	if !ok || name == "" || doc.UID() != "" && got.UID() != doc.UID() {
		return nil, m.client.notTheObject(k, a)
	}
	return got, nil
}

// object makes a call whose answer is the object of that name.
func (m *ConfigMaps) object(ctx context.Context, k call, name string) (types.Document, error) {
	a, err := m.client.do(ctx, k)
	if err != nil {
		return nil, err
	}
	doc, ok := m.parse(a.body, name)
	if !ok {
		return nil, m.client.notTheObject(k, a)
	}
	return doc, nil
}

// parse reads an object; ok is false if the body is anything else, whatever
// the code that it came with.
func (m *ConfigMaps) parse(body []byte, name string) (doc types.Document, ok bool) {
	doc, err := types.ParseDocument(body)
	if err != nil {
		return nil, false
	}
	ok = doc.Kind() == types.Kind && doc.APIVersion() == types.APIVersion && doc.Name() == name &&
		doc.Namespace() == m.namespace &&
		(doc.ResourceVersion() != "" || m.client.options.DryRun) // what a dry run creates has no version
	return doc, ok
}

// named prepares a call about one object, and refuses names that could lead
// elsewhere: an empty one makes the path that of the whole collection.
func (m *ConfigMaps) named(method, name string) (call, error) {
	if err := checkSegment("metadata.name", name, name); err != nil {
		return call{}, err
	}
	if err := checkSegment("metadata.namespace", m.namespace, name); err != nil {
		return call{}, err
	}
	return call{
		method: method,
		path:   []string{"api", "v1", "namespaces", m.namespace, types.ConfigMaps.Plural, name},
		object: m.describe(name),
		limit:  objectLimit,
	}, nil
}

func (m *ConfigMaps) describe(name string) string {
	return fmt.Sprintf("%s %q in namespace %q", types.ConfigMaps.Plural, name, m.namespace)
}

// checkSegment refuses what can't be one segment of a path. Whether it is a
// valid name beyond that is for the server to say.
func checkSegment(path, segment, name string) error {
	if segment == "" {
		return types.ConfigMaps.Invalid(name, field.ErrorList{field.Required(field.NewPath(path), "")})
	}
	var errs field.ErrorList
	for _, message := range content.IsPathSegmentName(segment) {
		errs = append(errs, field.Invalid(field.NewPath(path), segment, message))
	}
	if len(errs) > 0 {
		return types.ConfigMaps.Invalid(name, errs)
	}
	return nil
}
