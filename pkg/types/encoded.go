package types

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// metadataPrefix begins the JSON of every encoded object.
const metadataPrefix = `{"metadata":{`

// versionKey begins the member that is left out of what is stored.
const versionKey = `"resourceVersion":"`

// Encoded is an object as a store keeps it: the JSON of a list item, without
// kind and apiVersion, and without metadata.resourceVersion, which is known
// only once it is committed and is spliced in at VersionAt on the way out.
// Equal objects have equal Values. It may be shared as long as nobody changes
// Value.
type Encoded struct {
	Resource  *Resource
	Value     []byte
	VersionAt int
}

// Encode gives the stored form of an object of this type. Its type and
// resourceVersion are left out; its name must be set.
func (r *Resource) Encode(o Object) (Encoded, error) {
	if o.GetName() == "" {
		return Encoded{}, fmt.Errorf("encode %s: metadata.name is empty", r.Kind)
	}
	bare := r.shallow(o)
	bare.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	bare.SetResourceVersion("0") // marks the place; cut out below

	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(bare); err != nil {
		return Encoded{}, fmt.Errorf("encode %s %q: %w", r.Kind, o.GetName(), err)
	}
	value, at, err := cutVersion(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))
	if err != nil {
		return Encoded{}, fmt.Errorf("encode %s %q: %w", r.Kind, o.GetName(), err)
	}
	return Encoded{Resource: r, Value: value, VersionAt: at}, nil
}

// shallow is a copy that shares all that o points to.
func (r *Resource) shallow(o Object) Object {
	v := reflect.New(r.object)
	v.Elem().Set(reflect.ValueOf(o).Elem())
	return v.Interface().(Object)
}

// cutVersion takes the member with version 0 out, and says where another can be
// put in.
func cutVersion(value []byte) (cut []byte, at int, err error) {
	// Quotes inside JSON strings are escaped, so the first match is the member
	// itself: only plain metadata comes before it.
	member := []byte(versionKey + `0"`)
	at = bytes.Index(value, member)
	if at < 0 || !bytes.HasPrefix(value, []byte(metadataPrefix)) {
		return nil, 0, errors.New("unexpected JSON")
	}
	end := at + len(member)
	if value[end] == ',' {
		return append(value[:at], value[end+1:]...), at, nil
	}
	// It was metadata's last member: the comma before it goes instead, and the
	// version is spliced in before the name.
	return append(value[:at-1], value[end:]...), len(metadataPrefix), nil
}

// AppendItem appends the object as a list item at this version. With an empty
// version (an object that was never stored) it has none.
func (e Encoded) AppendItem(dst []byte, version string) []byte {
	return e.splice(append(dst, e.Value[:1]...), version)
}

// AppendObject appends the object as it is sent alone: with kind and
// apiVersion.
func (e Encoded) AppendObject(dst []byte, version string) []byte {
	dst = append(dst, `{"kind":"`...)
	dst = append(dst, e.Resource.Kind...)
	dst = append(dst, `","apiVersion":"`+APIVersion+`",`...)
	return e.splice(dst, version)
}

// splice appends what follows the opening brace.
func (e Encoded) splice(dst []byte, version string) []byte {
	dst = append(dst, e.Value[1:e.VersionAt]...)
	if version != "" {
		dst = append(dst, versionKey...)
		dst = append(dst, version...)
		dst = append(dst, '"', ',')
	}
	return append(dst, e.Value[e.VersionAt:]...)
}

// Size is how much AppendObject and AppendItem append at most.
func (e Encoded) Size() int { return len(e.Value) + 100 }

// Decode is the reverse of Encode: the object at this version, its type set.
func (e Encoded) Decode(version string) (Object, error) {
	o := reflect.New(e.Resource.object).Interface().(Object)
	if err := json.Unmarshal(e.Value, o); err != nil {
		return nil, fmt.Errorf("decode stored %s: %w", e.Resource.Kind, err)
	}
	o.GetObjectKind().SetGroupVersionKind(e.Resource.GroupVersionKind())
	o.SetResourceVersion(version)
	return o, nil
}

// DecodeMeta is the metadata of the object at this version, without the rest,
// which may be large.
func (e Encoded) DecodeMeta(version string) (*metav1.ObjectMeta, error) {
	var head struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(e.Value, &head); err != nil {
		return nil, fmt.Errorf("decode stored %s: %w", e.Resource.Kind, err)
	}
	head.Metadata.ResourceVersion = version
	return &head.Metadata, nil
}
