package types

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// The media types of bodies.
const (
	MediaJSON = "application/json"
	MediaYAML = "application/yaml"
	// MediaProtobuf is what Kubernetes' own clients prefer.
	MediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// MediaTypes are those that Decode reads.
var MediaTypes = []string{MediaJSON, MediaYAML, MediaProtobuf}

// Decode reads an object of this type from a request body. It is strict about
// what it accepts: one JSON value or one YAML document, field names in their
// exact case, strings where strings belong. kind and apiVersion may be absent,
// but not different.
//
// Unknown and duplicate fields are dropped and told in problems, for the
// caller to warn about or to refuse with StrictDecoding; MaxProblems of them at
// most. Text that is not UTF-8 is refused. The error is a *StatusError
// with reason BadRequest or UnsupportedMediaType.
func (r *Resource) Decode(body []byte, mediaType string) (o Object, problems []string, err error) {
	o = r.New()
	problems, err = decode(body, mediaType, o, r.Kind, r.checkType)
	if err != nil {
		return nil, nil, err
	}
	if err := r.checkTimes(o); err != nil {
		return nil, nil, err
	}
	if err := checkFieldsV1(o); err != nil {
		return nil, nil, err
	}
	o.GetObjectKind().SetGroupVersionKind(r.GroupVersionKind())
	r.fillIn(o)
	return o, problems, nil
}

// MaxProblems is how many problems Decode tells. Where it tells that many, there
// may be more.
const MaxProblems = 100

// checkTimes refuses timestamps that can be read, but not written so that they
// can be read again: a zone can move a time out of the years that RFC 3339 has.
func (r *Resource) checkTimes(o Object) error {
	created := o.GetCreationTimestamp()
	times := map[string]*metav1.Time{
		"metadata.creationTimestamp": &created,
		"metadata.deletionTimestamp": o.GetDeletionTimestamp(),
	}
	for i, m := range o.GetManagedFields() {
		times[fmt.Sprintf("metadata.managedFields[%d].time", i)] = m.Time
	}
	for path, t := range times {
		if t != nil && (t.UTC().Year() < 0 || t.UTC().Year() > 9999) {
			return BadRequest(unhandled(r.Kind, APIVersion, r.Kind, path+": the year is not within 0000 and 9999"))
		}
	}
	return nil
}

// DecodeOptions reads the body of a request that carries parameters, such as
// DeleteOptions, into one of the option types of meta/v1. It tells the fields
// that this dropped as Decode does.
func DecodeOptions(body []byte, mediaType, kind string, into runtime.Object) (problems []string, err error) {
	return decode(body, mediaType, into, kind, func(t typeMeta) error {
		if t.Kind != "" && t.Kind != kind {
			return BadRequest(unhandled(t.Kind, t.APIVersion, kind, "this request takes kind "+kind+" only"))
		}
		return nil
	})
}

// typeMeta is what a body says that it is.
type typeMeta struct {
	Kind       string
	APIVersion string
}

// checkType refuses bodies that say that they are something else.
func (r *Resource) checkType(t typeMeta) error {
	if (t.Kind == "" || t.Kind == r.Kind) && (t.APIVersion == "" || t.APIVersion == APIVersion) {
		return nil
	}
	return BadRequest(unhandled(cmp.Or(t.Kind, r.Kind), cmp.Or(t.APIVersion, APIVersion), r.Kind,
		fmt.Sprintf("this path takes kind %s of apiVersion %s only", r.Kind, APIVersion)))
}

func decode(body []byte, mediaType string, into runtime.Object, kind string, check func(typeMeta) error) ([]string, error) {
	if mediaType == MediaProtobuf {
		return nil, decodeProtobuf(body, into, kind, check)
	}
	data, problems, err := toJSON(body, mediaType)
	if err != nil {
		return nil, unrecognized(kind, err, body)
	}
	strict, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		// What the body says that it is comes first.
		if err := checkTypeIn(data, body, kind, check); err != nil {
			return nil, err
		}
		return nil, BadRequest(unhandled(kind, APIVersion, kind, err.Error()+wrongValues(data)))
	}
	t := into.GetObjectKind().(*metav1.TypeMeta)
	if err := check(typeMeta{Kind: t.Kind, APIVersion: t.APIVersion}); err != nil {
		return nil, err
	}
	for _, s := range strict {
		problems = append(problems, s.Error())
	}
	return problems, nil
}

// checkTypeIn checks the type that a body has which can't be decoded as a whole.
func checkTypeIn(data, body []byte, kind string, check func(typeMeta) error) error {
	// Without a name: the decoder's messages show it.
	var t struct {
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &t); err != nil {
		return unrecognized(kind, fmt.Errorf("couldn't get version/kind; json parse error: %w", err), body)
	}
	return check(typeMeta{Kind: t.Kind, APIVersion: t.APIVersion})
}

// unhandled words the refusal of a body whose type is known, and which type was
// wanted.
func unhandled(kind, version, wanted, why string) string {
	return fmt.Sprintf("%s in version %q cannot be handled as a %s: %s", kind, version, wanted, why)
}

// unrecognized refuses a body of which not even the type could be read, and
// shows how it begins.
func unrecognized(kind string, err error, body []byte) error {
	var status *StatusError
	if errors.As(err, &status) {
		return status
	}
	return BadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", kind, err, beginning(body)))
}

// beginning quotes the first bytes of a body, in hexadecimal unless they look
// like JSON.
func beginning(body []byte) string {
	const limit = 30
	if len(body) == 0 {
		return "<empty>"
	}
	head, more := body, ""
	if len(head) > limit {
		head, more = head[:limit], " ..."
	}
	if body[0] == '{' {
		return strings.ToValidUTF8(string(head), "") + more
	}
	return fmt.Sprintf("%x%s", head, more)
}

// toJSON turns a body into JSON, all of it UTF-8, and tells the keys that are
// repeated in YAML.
func toJSON(body []byte, mediaType string) (data []byte, repeated []string, err error) {
	switch mediaType {
	case MediaJSON:
		return body, nil, checkUTF8(body)
	case MediaYAML:
	default:
		return nil, nil, UnsupportedMediaType(MediaTypes...)
	}
	// JSON under YAML's name is read as what it is: as YAML, its strings would
	// mean something else where they hold line breaks that only YAML knows.
	if start := bytes.TrimLeft(body, " \t\r\n"); len(start) > 0 && start[0] == '{' && json.Valid(start) {
		return start, nil, checkUTF8(body)
	}
	if data, repeated, err = YAMLToJSONRepeated(body); err != nil {
		return nil, nil, fmt.Errorf("yaml: %w", err)
	}
	return data, repeated, nil
}

// wrongValues names the entries of string maps whose value is no string: the
// decoder's own message names the map only.
func wrongValues(data []byte) string {
	var body struct {
		Data       json.RawMessage `json:"data"`
		BinaryData json.RawMessage `json:"binaryData"`
		Metadata   struct {
			Labels      json.RawMessage `json:"labels"`
			Annotations json.RawMessage `json:"annotations"`
		} `json:"metadata"`
	}
	// What can't be read here is told by the decoder's own error.
	_ = json.Unmarshal(data, &body)
	var found []string
	for _, m := range []struct {
		path string
		raw  json.RawMessage
	}{
		{"metadata.labels", body.Metadata.Labels},
		{"metadata.annotations", body.Metadata.Annotations},
		{"data", body.Data},
		{"binaryData", body.BinaryData},
	} {
		found = append(found, wrongEntries(m.path, m.raw)...)
	}
	if more := len(found) - MaxCauses; more > 0 {
		found = append(found[:MaxCauses], fmt.Sprintf("and %d more", more))
	}
	if len(found) == 0 {
		return ""
	}
	return ": " + strings.Join(found, ", ")
}

func wrongEntries(path string, raw json.RawMessage) []string {
	var entries map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &entries) != nil {
		return nil
	}
	var found []string
	for key, value := range entries {
		if what := jsonType(value); what != "" {
			found = append(found, fmt.Sprintf("%s[%s] must be a string, not %s", path, key, what))
		}
	}
	sort.Strings(found)
	return found
}

// jsonType names the type of a JSON value, or nothing for strings and null.
func jsonType(value json.RawMessage) string {
	switch value[0] {
	case '"', 'n':
		return ""
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean; put it in quotes"
	default:
		return "a number; put it in quotes"
	}
}
