package render

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/cmctl/pkg/types"
)

// Stream writes the events of one watch. It is for one goroutine.
type Stream struct {
	renderer *Renderer
	resource *types.Resource
	form     Form
	columns  json.RawMessage // of the next table
}

// Stream begins a watch of a resource. The error is a *StatusError as of
// Form.ForObject, or 406 for a form that has no stream.
func (r *Renderer) Stream(f Form, resource *types.Resource) (*Stream, error) {
	if err := f.ForObject(resource); err != nil {
		return nil, err
	}
	if f.media == types.MediaYAML {
		return nil, types.NotAcceptableForm(streamTypes...)
	}
	return &Stream{renderer: r, resource: resource, form: f, columns: columnsOf(resource)}, nil
}

// ContentType is the media type of the stream.
func (s *Stream) ContentType() string {
	if s.form.media == types.MediaProtobuf {
		return types.MediaProtobuf + streamSuffix
	}
	return types.MediaJSON
}

// Event appends an event with an object: a line of JSON or a frame of protobuf.
// The error says that the stored object can't be read; dst is then as it was.
func (s *Stream) Event(dst []byte, event watch.EventType, item Item) ([]byte, error) {
	if s.form.media != types.MediaProtobuf {
		return s.appendLine(dst, s.form, event, item, item.Version), nil
	}
	body, err := s.renderer.message(item, s.form.as != "")
	if err != nil {
		return dst, err
	}
	return envelope(s.form.kind(s.resource)).appendFrame(dst, event, body), nil
}

// Shared is a whole event that all streams of this form share, for objects that are
// large. Nobody may change it. The error is that of Event.
func (s *Stream) Shared(event watch.EventType, item Item) ([]byte, error) {
	if s.form.as == kindTable {
		return s.Event(nil, event, item) // its ages change, and it is small
	}
	key := keyOf(item, s.form.as != "")
	key.event, key.form = event, s.form
	return s.renderer.cache.get(key, func() ([]byte, error) { return s.Event(nil, event, item) })
}

// Bookmark appends an event that says how far the stream has come.
func (s *Stream) Bookmark(dst []byte, version string) ([]byte, error) {
	return s.mark(dst, s.form, version, nil)
}

// InitialEventsEnd appends the bookmark that ends the initial events.
func (s *Stream) InitialEventsEnd(dst []byte, version string) ([]byte, error) {
	form := s.form
	if form.include == metav1.IncludeNone {
		form.include = metav1.IncludeMetadata // the annotation is there
	}
	return s.mark(dst, form, version, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
}

// Error appends the event that tells why a stream ends early.
func (s *Stream) Error(dst []byte, status *types.Status) ([]byte, error) {
	typed := *status
	typed.TypeMeta = statusKind
	if s.form.media == types.MediaProtobuf {
		body, err := typed.Marshal()
		if err != nil {
			return dst, fmt.Errorf("write Status: %w", err)
		}
		return envelope(statusKind).appendFrame(dst, watch.Error, body), nil
	}
	body, err := json.Marshal(&typed)
	if err != nil {
		return dst, fmt.Errorf("write Status: %w", err)
	}
	return endLine(append(beginLine(dst, watch.Error), body...)), nil
}

// mark appends a bookmark: an object that was never stored and has no name.
func (s *Stream) mark(dst []byte, form Form, version string, annotations map[string]string) ([]byte, error) {
	object := s.resource.New()
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	object.SetResourceVersion(version)
	object.SetAnnotations(annotations)
	if form.media == types.MediaProtobuf {
		var content any = object
		if form.as != "" {
			content = meta.AsPartialObjectMetadata(object)
		}
		body, err := marshal(content)
		if err != nil {
			return dst, fmt.Errorf("write bookmark: %w", err)
		}
		return envelope(form.kind(s.resource)).appendFrame(dst, watch.Bookmark, body), nil
	}
	value, err := json.Marshal(object)
	if err != nil {
		return dst, fmt.Errorf("write bookmark: %w", err)
	}
	// The version is in it already, so none is spliced in.
	item := Item{Encoded: types.Encoded{Resource: s.resource, Value: value, VersionAt: 1}}
	return s.appendLine(dst, form, watch.Bookmark, item, version), nil
}

// appendLine appends an event as JSON. Only the first table has columns.
func (s *Stream) appendLine(dst []byte, form Form, event watch.EventType, item Item, version string) []byte {
	dst = beginLine(slices.Grow(dst, form.jsonSize(item)+64), event)
	if form.as == kindTable {
		dst = s.renderer.appendTable(dst, form, s.columns, List{Version: version, Items: []Item{item}})
		s.columns = noColumns
	} else {
		dst = form.appendObject(dst, item)
	}
	return endLine(dst)
}

// beginLine and endLine stand around the object of an event in JSON.
func beginLine(dst []byte, event watch.EventType) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, event...)
	return append(dst, `","object":`...)
}

func endLine(dst []byte) []byte { return append(dst, '}', '\n') }
