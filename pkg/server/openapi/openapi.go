// Package openapi describes the API in the words of OpenAPI, for clients that
// explain fields, check manifests before they send them, complete commands or
// generate code.
//
//	for _, path := range openapi.Paths {
//		mux.Handle(path, openapi.Handler(refuse))
//	}
//
// Definitions are the schemas of all types; server-side apply reads them too.
// The documents put the paths, verbs and parameters of the API beside them. They
// are made once, when the first client asks, and kept as bytes.
package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"sync"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	openapiv3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/schemamutation"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"example.com/cmctl/pkg/types"
)

// The protobuf media types. Clients may also spell them with "@v1.0" for ".v1.0".
const (
	mediaV2Protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	mediaV3Protobuf = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
)

// The paths of the documents. Those of v3 are one for each version of each
// group, below the index that lists them.
const (
	pathV2 = "/openapi/v2"
	pathV3 = "/openapi/v3"
)

// document is one document in the representations that it has. It never changes.
type document struct {
	mediaTypes []string // the first is for clients that don't mind
	bodies     map[string][]byte
	hash       string // of the JSON: another hash is another document
}

// etag is the hash as an ETag. All representations share it: Vary tells caches to
// keep them apart.
func (d *document) etag() string { return strconv.Quote(d.hash) }

// documents are all there are, by path, made when the first client asks.
var documents = sync.OnceValues(makeDocuments)

func makeDocuments() (map[string]*document, error) {
	swagger := newSwagger()
	v2, err := newDocument(withoutDefaults(swagger), mediaV2Protobuf, encodeV2)
	if err != nil {
		return nil, err
	}
	all := map[string]*document{pathV2: v2}
	index := map[string]any{}
	for name, part := range splitV3(swagger) {
		path := pathV3 + "/" + name
		if all[path], err = newDocument(part, mediaV3Protobuf, encodeV3); err != nil {
			return nil, err
		}
		index[name] = map[string]string{"serverRelativeURL": hashedURL(path, all[path].hash)}
	}
	all[pathV3], err = newDocument(map[string]any{"paths": index}, "", nil)
	return all, err
}

// withoutDefaults is the document as v2 has it: defaults are for v3 only.
func withoutDefaults(s *spec.Swagger) *spec.Swagger {
	walker := schemamutation.Walker{
		SchemaCallback: func(s *spec.Schema) *spec.Schema {
			if s.Default == nil {
				return s
			}
			bare := *s
			bare.Default = nil
			return &bare
		},
		RefCallback: schemamutation.RefCallbackNoop,
	}
	return walker.WalkRoot(s)
}

// hashedURL is where a document is found for as long as it is the same, so that
// clients may keep it under this URL.
func hashedURL(path, hash string) string {
	u := url.URL{Path: path, RawQuery: url.Values{"hash": {hash}}.Encode()}
	return u.String()
}

// newDocument encodes a document as JSON and, where it has that form, as protobuf.
func newDocument(content any, protobufType string, toProtobuf func(asJSON []byte) ([]byte, error)) (*document, error) {
	asJSON, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(asJSON)
	d := &document{
		mediaTypes: []string{types.MediaJSON},
		bodies:     map[string][]byte{types.MediaJSON: asJSON},
		hash:       hex.EncodeToString(sum[:]),
	}
	if toProtobuf != nil {
		d.mediaTypes = append(d.mediaTypes, protobufType)
		d.bodies[protobufType], err = toProtobuf(asJSON)
	}
	return d, err
}

func encodeV2(asJSON []byte) ([]byte, error) {
	d, err := openapiv2.ParseDocument(asJSON)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(d)
}

func encodeV3(asJSON []byte) ([]byte, error) {
	d, err := openapiv3.ParseDocument(asJSON)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(d)
}
