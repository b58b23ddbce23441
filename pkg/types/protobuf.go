package types

import (
	"bytes"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// protobufMagic begins every protobuf body of Kubernetes; an envelope follows
// that names the type of what is in it.
var protobufMagic = []byte("k8s\x00")

// decodeProtobuf reads a body as Kubernetes' own clients send it. Protobuf has
// no field names, so there are none that could be unknown.
func decodeProtobuf(body []byte, into any, kind string, check func(typeMeta) error) error {
	content, ok := bytes.CutPrefix(body, protobufMagic)
	if !ok {
		return unrecognized(kind, fmt.Errorf("protobuf: the body does not begin with the prefix %q", protobufMagic), body)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(content); err != nil {
		return unrecognized(kind, fmt.Errorf("protobuf: %w", err), body)
	}
	if err := check(typeMeta{Kind: envelope.Kind, APIVersion: envelope.APIVersion}); err != nil {
		return err
	}
	message, ok := into.(interface{ Unmarshal([]byte) error })
	if !ok {
		return UnsupportedMediaType(MediaJSON, MediaYAML)
	}
	if err := message.Unmarshal(envelope.Raw); err != nil {
		return BadRequest(unhandled(kind, APIVersion, kind, "protobuf: "+err.Error()))
	}
	// Nothing else checks the strings of protobuf.
	return checkStrings(reflect.ValueOf(into), "")
}
