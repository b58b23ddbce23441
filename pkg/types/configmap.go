package types

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ConfigMap and its parts are Kubernetes' own types.
type (
	// ConfigMap holds text in Data and bytes in BinaryData.
	ConfigMap = corev1.ConfigMap
	// ConfigMapList is what a list answers.
	ConfigMapList = corev1.ConfigMapList
)

// What a ConfigMap is called on the wire.
const (
	APIVersion = "v1"
	Kind       = "ConfigMap"
	ListKind   = "ConfigMapList"
)

// WriteIDHeader is the request header by which a client names one logical
// write, so that it can find it in the object's history if the answer is lost.
const WriteIDHeader = "Cmctl-Write-Id"

// Resource is the resource as messages name it.
var Resource = schema.GroupResource{Resource: "configmaps"}

// typePrefix begins the JSON of a single object; list items lack it.
const typePrefix = `{"kind":"` + Kind + `","apiVersion":"` + APIVersion + `",`

// metadataPrefix begins the JSON of every encoded object.
const metadataPrefix = `{"metadata":{`

// versionKey begins the member that is left out of what is stored.
const versionKey = `"resourceVersion":"`

// Encoded is a ConfigMap as a store keeps it: the JSON of a list item, without
// kind and apiVersion, and without metadata.resourceVersion, which is known
// only once it is committed and is spliced in at VersionAt on the way out.
// Equal objects have equal Values. It may be shared as long as nobody changes
// Value.
type Encoded struct {
	Value     []byte
	VersionAt int
}

// Encode gives the stored form of a ConfigMap. Its type and resourceVersion
// are left out; its name must be set.
func Encode(cm *ConfigMap) (Encoded, error) {
	if cm.Name == "" {
		return Encoded{}, errors.New("encode ConfigMap: metadata.name is empty")
	}
	bare := *cm
	bare.Kind, bare.APIVersion = "", ""
	bare.ResourceVersion = "0" // marks the place; cut out below

	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&bare); err != nil {
		return Encoded{}, fmt.Errorf("encode ConfigMap %q: %w", cm.Name, err)
	}
	value := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))

	// Quotes inside JSON strings are escaped, so the first match is the member
	// itself: only plain metadata comes before it.
	member := []byte(versionKey + `0"`)
	at := bytes.Index(value, member)
	if at < 0 || !bytes.HasPrefix(value, []byte(metadataPrefix)) {
		return Encoded{}, fmt.Errorf("encode ConfigMap %q: unexpected JSON", cm.Name)
	}
	end := at + len(member)
	if value[end] == ',' {
		return Encoded{Value: append(value[:at], value[end+1:]...), VersionAt: at}, nil
	}
	// It was metadata's last member: the comma before it goes instead, and the
	// version is spliced in before the name.
	return Encoded{Value: append(value[:at-1], value[end:]...), VersionAt: len(metadataPrefix)}, nil
}

// AppendItem appends the object as a list item at this version. With an empty
// version (an object that was never stored) it has none.
func (e Encoded) AppendItem(dst []byte, version string) []byte {
	return e.splice(append(dst, e.Value[:1]...), version)
}

// AppendObject appends the object as it is sent alone: with kind and
// apiVersion.
func (e Encoded) AppendObject(dst []byte, version string) []byte {
	return e.splice(append(dst, typePrefix...), version)
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
func (e Encoded) Size() int { return len(e.Value) + len(typePrefix) + len(versionKey) + 24 }

// Decode is the reverse of Encode: the object at this version, its type set.
func (e Encoded) Decode(version string) (*ConfigMap, error) {
	cm := &ConfigMap{}
	if err := json.Unmarshal(e.Value, cm); err != nil {
		return nil, fmt.Errorf("decode stored ConfigMap: %w", err)
	}
	cm.Kind, cm.APIVersion = Kind, APIVersion
	cm.ResourceVersion = version
	return cm, nil
}

// DecodeHead is Decode without Data and BinaryData, which may be large.
func (e Encoded) DecodeHead(version string) (*ConfigMap, error) {
	var head struct {
		Metadata  json.RawMessage `json:"metadata"`
		Immutable *bool           `json:"immutable"`
	}
	if err := json.Unmarshal(e.Value, &head); err != nil {
		return nil, fmt.Errorf("decode stored ConfigMap: %w", err)
	}
	cm := &ConfigMap{Immutable: head.Immutable}
	if err := json.Unmarshal(head.Metadata, &cm.ObjectMeta); err != nil {
		return nil, fmt.Errorf("decode stored ConfigMap: %w", err)
	}
	cm.Kind, cm.APIVersion = Kind, APIVersion
	cm.ResourceVersion = version
	return cm, nil
}
