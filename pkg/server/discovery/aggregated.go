package discovery

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/munnerz/goautoneg"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"example.com/cmctl/pkg/types"
)

// aggregatedKind is what Accept headers call the aggregated form.
const aggregatedKind = "APIGroupDiscoveryList"

// parameters of the Content-Type tell clients that they got the aggregated form.
var parameters = ";g=" + apidiscoveryv2.GroupName + ";v=" + apidiscoveryv2.SchemeGroupVersion.Version + ";as=" + aggregatedKind

// document is an aggregated document in every media type that clients may ask
// for. It never changes.
type document struct {
	bodies map[string][]byte // by media type
	etag   string            // quoted
}

// documents are the aggregated ones by path, made when the first client asks.
var documents = sync.OnceValue(func() map[string]*document {
	var named []apidiscoveryv2.APIGroupDiscovery
	for _, name := range groupNames() {
		named = append(named, group(name, ReviewResources(name).APIResources))
	}
	return map[string]*document{
		"/api":  newDocument(group("", APIResources().APIResources)),
		"/apis": newDocument(named...),
	}
})

func newDocument(groups ...apidiscoveryv2.APIGroupDiscovery) *document {
	list := &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: aggregatedKind, APIVersion: apidiscoveryv2.SchemeGroupVersion.String()},
		Items:    append([]apidiscoveryv2.APIGroupDiscovery{}, groups...), // none is [], not null
	}
	asJSON, err := json.Marshal(list)
	if err != nil {
		panic(err) // our own lists hold nothing that could fail
	}
	asYAML, err := types.JSONToYAML(asJSON)
	if err != nil {
		panic(err)
	}
	var asProtobuf bytes.Buffer
	if err := protobuf.NewSerializer(nil, nil).Encode(list, &asProtobuf); err != nil {
		panic(err)
	}
	sum := sha256.Sum256(asJSON)
	return &document{
		bodies: map[string][]byte{
			types.MediaJSON:     append(asJSON, '\n'),
			types.MediaYAML:     asYAML,
			types.MediaProtobuf: asProtobuf.Bytes(),
		},
		etag: strconv.Quote(hex.EncodeToString(sum[:])),
	}
}

// group is what a group serves, made of the list of its resources. The
// subresource that Kubernetes does not have is left out, so that clients see here
// exactly what they see there.
func group(name string, resources []metav1.APIResource) apidiscoveryv2.APIGroupDiscovery {
	var found []apidiscoveryv2.APIResourceDiscovery
	for _, r := range resources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		scope := apidiscoveryv2.ScopeCluster
		if r.Namespaced {
			scope = apidiscoveryv2.ScopeNamespace
		}
		found = append(found, apidiscoveryv2.APIResourceDiscovery{
			Resource:         r.Name,
			ResponseKind:     &metav1.GroupVersionKind{Kind: r.Kind},
			Scope:            scope,
			SingularResource: r.SingularName,
			Verbs:            r.Verbs,
			ShortNames:       r.ShortNames,
		})
	}
	return apidiscoveryv2.APIGroupDiscovery{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Versions: []apidiscoveryv2.APIVersionDiscovery{{
			Version:   types.APIVersion,
			Resources: found,
			Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
		}},
	}
}

// preferred is the media type in which an Accept header prefers the aggregated
// form, empty if it prefers the plain one or neither. Clauses with another
// version of the form are passed over: clients that know several list them all.
func preferred(accept string) string {
	for _, clause := range goautoneg.ParseAccept(accept) {
		media := clause.Type + "/" + clause.SubType
		if media == "*/*" {
			media = types.MediaJSON
		}
		if clause.Q == 0 || !slices.Contains(types.MediaTypes, media) {
			continue
		}
		group, version, kind := clause.Params["g"], clause.Params["v"], clause.Params["as"]
		switch {
		case group == apidiscoveryv2.GroupName && version == apidiscoveryv2.SchemeGroupVersion.Version && kind == aggregatedKind:
			return media
		case group == "" && version == "" && kind == "":
			return ""
		}
	}
	return ""
}
