package render

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// In Kubernetes' protobuf an object travels in an envelope that names its type
// (runtime.Unknown, behind four fixed bytes), a list has its items in it
// without envelopes, and an event has the envelope in it. So the message of an
// object is made once, and the rest is put around its bytes.

// protobufMagic begins every envelope.
const protobufMagic = "k8s\x00"

// Field tags of type bytes, which all fields here have.
const (
	field1 = 1<<3 | 2
	field2 = 2<<3 | 2
	field3 = 3<<3 | 2
	field4 = 4<<3 | 2
)

// message is what generated types offer.
type message interface{ Marshal() ([]byte, error) }

// appendField appends a field and its content.
func appendField(dst []byte, tag byte, content []byte) []byte {
	return append(appendHeader(dst, tag, len(content)), content...)
}

// appendHeader begins a field of that length.
func appendHeader(dst []byte, tag byte, length int) []byte {
	return binary.AppendUvarint(append(dst, tag), uint64(length))
}

// fieldSize is what a field of that length takes.
func fieldSize(length int) int {
	return 1 + max((bits.Len(uint(length))+6)/7, 1) + length
}

// envelope is where a message is put; Kind and APIVersion are those of what is
// in it.
type envelope metav1.TypeMeta

// typeSize is that of the envelope's word on its content.
func (e envelope) typeSize() int { return fieldSize(len(e.APIVersion)) + fieldSize(len(e.Kind)) }

// size is that of the envelope with a message of that length.
func (e envelope) size(length int) int {
	return len(protobufMagic) + fieldSize(e.typeSize()) + fieldSize(length) + 2*fieldSize(0)
}

// appendMessage appends the envelope with parts that make up one message.
func (e envelope) appendMessage(dst []byte, parts ...[]byte) []byte {
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	dst = append(slices.Grow(dst, e.size(length)), protobufMagic...)
	dst = appendHeader(dst, field1, e.typeSize())
	dst = appendField(dst, field1, []byte(e.APIVersion))
	dst = appendField(dst, field2, []byte(e.Kind))
	dst = appendHeader(dst, field2, length)
	for _, part := range parts {
		dst = append(dst, part...)
	}
	// Encoding and content type are the usual ones. Kubernetes sends the empty
	// fields, so we do too.
	return appendField(appendField(dst, field3, nil), field4, nil)
}

// appendFrame appends an event with an object as the streams of Kubernetes have
// it: behind its length, of four bytes.
func (e envelope) appendFrame(dst []byte, event watch.EventType, object []byte) []byte {
	size := e.size(len(object))
	extension := fieldSize(size) // runtime.RawExtension
	dst = binary.BigEndian.AppendUint32(dst, uint32(fieldSize(len(event))+fieldSize(extension)))
	dst = appendField(dst, field1, []byte(event))
	dst = appendHeader(dst, field2, extension)
	dst = appendHeader(dst, field1, size)
	return e.appendMessage(dst, object)
}

// marshal is the message of a value.
func marshal(v any) ([]byte, error) {
	m, ok := v.(message)
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf encoding", v)
	}
	return m.Marshal()
}

// message is that of an item, or of its metadata alone. It is made once. Nobody
// may change it.
func (r *Renderer) message(item Item, partial bool) ([]byte, error) {
	return r.cache.get(keyOf(item, partial), func() ([]byte, error) {
		if partial {
			return partialMessage(item)
		}
		object, err := item.Encoded.Decode(item.Version)
		if err != nil {
			return nil, err
		}
		return marshal(object)
	})
}

func partialMessage(item Item) ([]byte, error) {
	var partial metav1.PartialObjectMetadata
	if err := json.Unmarshal(member(item.Encoded.Value, "metadata"), &partial.ObjectMeta); err != nil {
		return nil, fmt.Errorf("decode stored metadata of %s: %w", item.Encoded.Resource.Kind, err)
	}
	partial.ResourceVersion = item.Version
	return partial.Marshal()
}

// listMessage writes a list with its items' messages.
func (r *Renderer) listMessage(f Form, l List) ([]byte, error) {
	meta := metav1.ListMeta{ResourceVersion: l.Version, Continue: l.Continue}
	if l.Remaining > 0 {
		remaining := int64(l.Remaining)
		meta.RemainingItemCount = &remaining
	}
	head, err := meta.Marshal()
	if err != nil {
		return nil, err
	}
	metaTag, itemTag := byte(field1), byte(field2)
	if f.version == "v1beta1" {
		metaTag, itemTag = field2, field1
	}
	parts := [][]byte{appendField(nil, metaTag, head)}
	for _, item := range l.Items {
		body, err := r.message(item, f.as != "")
		if err != nil {
			return nil, err
		}
		parts = append(parts, appendHeader(nil, itemTag, len(body)), body)
	}
	return envelope(f.listKind(l.Resource)).appendMessage(nil, parts...), nil
}
