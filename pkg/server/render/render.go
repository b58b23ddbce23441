package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/cmctl/pkg/types"
)

// Renderer writes answers. It may be used concurrently.
type Renderer struct {
	cache *cache
	now   func() time.Time
}

// New makes a Renderer that keeps at most about cacheBytes of protobuf, and
// reckons ages by now.
func New(cacheBytes int, now func() time.Time) *Renderer {
	return &Renderer{cache: newCache(cacheBytes), now: now}
}

// Item is one object as a store keeps it. What a form doesn't show may be left out:
// the Value ends after the metadata, or is nil where not even these are shown; then
// the Row must be given.
type Item struct {
	Encoded types.Encoded
	Version string // empty: it was never stored
	Row     Row
}

// Row is what a table shows of an object without reading it. It is unknown where
// Name is empty.
type Row struct {
	Name    string
	Keys    int // of a ConfigMap's data
	Created time.Time
}

// List is what a list answers.
type List struct {
	Resource  *types.Resource
	Version   string // of the state that was read
	Continue  string // token of the next page, in base64; empty: there is none
	Remaining int    // items on later pages; 0: not told
	Items     []Item
}

// Object writes a single object. The error is a *StatusError as of
// Form.ForObject, or says that the stored object can't be read.
func (r *Renderer) Object(f Form, item Item) ([]byte, error) {
	if err := f.ForObject(item.Encoded.Resource); err != nil {
		return nil, err
	}
	if f.media == types.MediaProtobuf {
		body, err := r.message(item, f.as != "")
		if err != nil {
			return nil, err
		}
		return envelope(f.kind(item.Encoded.Resource)).appendMessage(nil, body), nil
	}
	dst := make([]byte, 0, f.jsonSize(item)+1)
	if f.as == kindTable {
		dst = r.appendTable(dst, f, columnsOf(item.Encoded.Resource), List{Version: item.Version, Items: []Item{item}})
	} else {
		dst = f.appendObject(dst, item)
	}
	return f.finish(dst)
}

// List writes a list. The error is a *StatusError as of Form.ForList, or says
// that a stored object can't be read.
func (r *Renderer) List(f Form, l List) ([]byte, error) {
	if err := f.ForList(l.Resource); err != nil {
		return nil, err
	}
	if f.media == types.MediaProtobuf {
		return r.listMessage(f, l)
	}
	size := 256 + len(l.Continue)
	for _, item := range l.Items {
		size += f.jsonSize(item)
	}
	dst := make([]byte, 0, size)
	if f.as == kindTable {
		dst = r.appendTable(dst, f, columnsOf(l.Resource), l)
	} else {
		dst = f.appendList(dst, l)
	}
	return f.finish(dst)
}

// Status writes a Status, which is never changed to another kind.
func (r *Renderer) Status(f Form, s *types.Status) ([]byte, error) {
	typed := *s
	typed.TypeMeta = statusKind
	return r.Document(f, &typed)
}

var statusKind = metav1.TypeMeta{Kind: "Status", APIVersion: types.APIVersion}

// Document writes what is neither a stored object nor a list of them, such as a
// discovery document. The type of a runtime.Object must be set; what is none has
// no protobuf, so that asking for it is a 406 *StatusError.
func (r *Renderer) Document(f Form, v any) ([]byte, error) {
	if f.media == types.MediaProtobuf {
		return documentMessage(v)
	}
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write %T: %w", v, err)
	}
	return f.finish(body)
}

func documentMessage(v any) ([]byte, error) {
	o, ok := v.(runtime.Object)
	if !ok {
		return nil, types.NotAcceptable(types.MediaJSON, types.MediaYAML)
	}
	var kind metav1.TypeMeta
	kind.APIVersion, kind.Kind = o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	body, err := marshal(o)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", kind.Kind, err)
	}
	return envelope(kind).appendMessage(nil, body), nil
}

// finish makes the last of a body that was written as compact JSON.
func (f Form) finish(body []byte) ([]byte, error) {
	switch {
	case f.media == types.MediaYAML:
		return types.JSONToYAML(body)
	case f.pretty:
		var out bytes.Buffer
		err := json.Indent(&out, body, "", "  ")
		return out.Bytes(), err
	}
	return append(body, '\n'), nil
}

// appendObject appends an object as JSON, or its metadata.
func (f Form) appendObject(dst []byte, item Item) []byte {
	if f.as == "" {
		return item.Encoded.AppendObject(dst, item.Version)
	}
	return f.appendPartial(dst, item)
}

// appendPartial appends the metadata of an object as JSON.
func (f Form) appendPartial(dst []byte, item Item) []byte {
	dst = append(dst, `{"kind":"`+kindPartial+`","apiVersion":"`...)
	dst = append(dst, f.apiVersion()...)
	dst = append(dst, '"')
	// Up to the end of its metadata, what is stored is {"metadata":{...}: its
	// brace becomes the comma after the type.
	comma := len(dst)
	head := item.Encoded
	head.Value = head.Value[:HeadLength(head.Value)]
	dst = head.AppendItem(dst, item.Version)
	dst[comma] = ','
	return append(dst, '}')
}

// appendList appends a list as JSON.
func (f Form) appendList(dst []byte, l List) []byte {
	dst = appendType(dst, f.listKind(l.Resource))
	dst = appendListMeta(dst, l)
	if f.as != "" && len(l.Items) == 0 {
		return append(dst, `,"items":null}`...) // Kubernetes has it so here alone
	}
	dst = append(dst, `,"items":[`...)
	for i, item := range l.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		if f.as == "" {
			dst = item.Encoded.AppendItem(dst, item.Version)
		} else {
			dst = f.appendObject(dst, item)
		}
	}
	return append(dst, ']', '}')
}

// appendType begins an object with its type.
func appendType(dst []byte, kind metav1.TypeMeta) []byte {
	dst = append(dst, `{"kind":"`...)
	dst = append(dst, kind.Kind...)
	dst = append(dst, `","apiVersion":"`...)
	dst = append(dst, kind.APIVersion...)
	return append(dst, `",`...)
}

// appendListMeta appends the metadata of a list.
func appendListMeta(dst []byte, l List) []byte {
	dst = append(dst, `"metadata":{`...)
	if l.Version != "" {
		dst = append(dst, `"resourceVersion":"`...)
		dst = append(dst, l.Version...)
		dst = append(dst, '"')
	}
	if l.Continue != "" {
		dst = append(dst, `,"continue":"`...)
		dst = append(dst, l.Continue...)
		dst = append(dst, '"')
	}
	if l.Remaining > 0 {
		dst = append(dst, `,"remainingItemCount":`...)
		dst = strconv.AppendInt(dst, int64(l.Remaining), 10)
	}
	return append(dst, '}')
}

// listKind is the type of a list in this form.
func (f Form) listKind(r *types.Resource) metav1.TypeMeta {
	if f.as == "" {
		return metav1.TypeMeta{APIVersion: types.APIVersion, Kind: r.ListKind}
	}
	return metav1.TypeMeta{APIVersion: f.apiVersion(), Kind: f.as}
}

// jsonSize is about how much an item takes in JSON.
func (f Form) jsonSize(item Item) int {
	switch {
	case f.ShowsContents():
		return item.Encoded.Size()
	case f.ShowsMetadata():
		return 1 << 10 // metadata, which may be more; its end is not known yet
	}
	return 64 + len(item.Row.Name)
}
