package render

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/types"
)

// Endpoint is the sort of path that was asked: what it answers differs, and so
// do the forms that it offers.
type Endpoint int

const (
	// Document is a path that answers neither objects nor lists of them, such as
	// a discovery document.
	Document Endpoint = iota
	// Object is a path that answers one object; also every create, and the
	// deletion of a collection.
	Object
	// Collection is a path that can be listed and watched.
	Collection
)

// Form is what an answer is written as. The zero value is compact JSON. Forms
// are plain values and may be compared.
type Form struct {
	media   string // empty: JSON
	pretty  bool   // JSON with indentation
	as      string // kind that objects are changed to; empty: none
	version string // of that kind, in group meta.k8s.io
	include metav1.IncludeObjectPolicy
}

// The kinds that an object or list can be changed to.
const (
	kindTable       = "Table"
	kindPartial     = "PartialObjectMetadata"
	kindPartialList = "PartialObjectMetadataList"
)

// The media types that are written, in order of preference, and those of
// streams. They appear in messages.
var (
	mediaTypes  = []string{types.MediaJSON, types.MediaYAML, types.MediaProtobuf}
	streamTypes = []string{types.MediaJSON + streamSuffix, types.MediaProtobuf + streamSuffix}
)

const streamSuffix = ";stream=watch"

// Negotiate chooses the form of an answer. The error is a 406 *StatusError.
// That a form fits what is answered is not checked here; see ForObject, ForList
// and Renderer.Stream.
func Negotiate(h http.Header, query url.Values, at Endpoint) (Form, error) {
	accept := accepted(h)
	// Kubernetes has two steps. Its router knows media types by name and no
	// wildcard but one; its handlers know parameters.
	offered := mediaTypes
	if at == Collection {
		offered = slices.Concat(mediaTypes, streamTypes)
	}
	if !namesOne(accept, offered) {
		return Form{}, types.NotAcceptable(offered...)
	}
	form, ok := choose(accept, at)
	if !ok {
		return Form{}, types.NotAcceptableForm(mediaTypes...)
	}
	if form.as == kindTable {
		form.include = metav1.IncludeObjectPolicy(query.Get("includeObject"))
	}
	return form.forReader(h, query), nil
}

// ForError is the form of a refusal: it never is a table, and it is JSON if the
// client accepts nothing that is offered.
func ForError(h http.Header, query url.Values) Form {
	form, ok := choose(accepted(h), Document)
	if !ok {
		return Form{media: types.MediaJSON, pretty: true}
	}
	return form.forReader(h, query)
}

// accepted is the Accept header. Like Kubernetes it takes the first, if there
// are several.
func accepted(h http.Header) string {
	if accept := h.Get("Accept"); accept != "" {
		return accept
	}
	return "*/*"
}

// namesOne tells whether an Accept header names one of the media types.
func namesOne(accept string, offered []string) bool {
	for clause := range strings.SplitSeq(accept, ",") {
		media, _, _ := strings.Cut(clause, ";")
		media = strings.Trim(media, " ")
		if media == "*/*" || slices.Contains(offered, media) {
			return true
		}
	}
	return false
}

// choose finds the first clause of an Accept header that can be met.
func choose(accept string, at Endpoint) (Form, bool) {
	for _, clause := range goautoneg.ParseAccept(accept) {
		for _, media := range mediaTypes {
			kind, subtype, _ := strings.Cut(media, "/")
			if clause.Type != "*" && (clause.Type != kind || clause.SubType != "*" && clause.SubType != subtype) {
				continue
			}
			if form, ok := withParams(media, clause.Params, at); ok {
				return form, true
			}
		}
	}
	return Form{}, false
}

// withParams is the form that the parameters of a clause make of a media type;
// false if they ask for what is not offered. Unknown ones are ignored.
func withParams(media string, params map[string]string, at Endpoint) (Form, bool) {
	if s := params["stream"]; s != "" && (s != "watch" || media == types.MediaYAML) {
		return Form{}, false
	}
	if v := params["sv"]; v != "" && (v != "v1" || at == Document) {
		return Form{}, false
	}
	form := Form{media: media, pretty: media == types.MediaJSON && params["pretty"] == "1"}
	if params["as"] == "" && params["g"] == "" && params["v"] == "" {
		return form, true
	}
	form.as, form.version = params["as"], params["v"]
	if at == Document || params["g"] != metav1.GroupName || form.version != "v1" && form.version != "v1beta1" {
		return Form{}, false
	}
	switch form.as {
	case kindPartial, kindPartialList:
		return form, true
	case kindTable:
		return form, media != types.MediaProtobuf
	}
	return Form{}, false
}

// forReader is the form with indentation, if it is JSON and a person reads it:
// the query says so, or the client is a tool that shows JSON as it is.
func (f Form) forReader(h http.Header, query url.Values) Form {
	if f.media != types.MediaJSON {
		return f
	}
	if text := query.Get("pretty"); text != "" {
		asked, err := strconv.ParseBool(text)
		f.pretty = f.pretty || err == nil && asked
		return f
	}
	agent := h.Get("User-Agent")
	f.pretty = f.pretty || slices.ContainsFunc([]string{"curl", "Wget", "Mozilla/5.0"}, func(tool string) bool {
		return strings.HasPrefix(agent, tool)
	})
	return f
}

// ContentType is the media type of an answer in this form. For a watch see
// Stream.ContentType.
func (f Form) ContentType() string {
	if f.media == "" {
		return types.MediaJSON
	}
	return f.media
}

// ForObject tells whether single objects of a resource can be written in this
// form. The error is a *StatusError: 400 for a bad includeObject parameter, 406
// for a form that only lists have.
func (f Form) ForObject(r *types.Resource) error {
	if f.as == kindPartialList {
		return misshapen("you requested PartialObjectMetadataList, but the requested object is not a list (*core." + r.Kind + ")")
	}
	return f.checkInclude()
}

// ForList tells the same of lists.
func (f Form) ForList(r *types.Resource) error {
	if f.as == kindPartial {
		return misshapen("you requested PartialObjectMetadata, but the requested object is a list (*core." + r.ListKind + ")")
	}
	return f.checkInclude()
}

// misshapen refuses a form that does not fit what was asked for.
func misshapen(message string) error {
	return &types.StatusError{ErrStatus: metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: types.APIVersion},
		Status:   metav1.StatusFailure,
		Message:  message,
		Reason:   metav1.StatusReasonNotAcceptable,
		Code:     http.StatusNotAcceptable,
	}}
}

func (f Form) checkInclude() error {
	switch f.include {
	case "", metav1.IncludeMetadata, metav1.IncludeObject, metav1.IncludeNone:
		return nil
	}
	return types.BadRequest(fmt.Sprintf("Unable to convert to Table as requested: includeObject: Invalid value: %q: "+
		"must be 'Metadata', 'Object', 'None', or empty", f.include))
}

// ShowsContents tells whether this form shows more of objects than their metadata
// and what the cells of a table say.
func (f Form) ShowsContents() bool { return f.as == "" || f.include == metav1.IncludeObject }

// ShowsMetadata tells whether this form shows the metadata of objects.
func (f Form) ShowsMetadata() bool { return f.include != metav1.IncludeNone }

// kind is the type of a single object in this form.
func (f Form) kind(r *types.Resource) metav1.TypeMeta {
	if f.as == "" {
		return metav1.TypeMeta{APIVersion: types.APIVersion, Kind: r.Kind}
	}
	return metav1.TypeMeta{APIVersion: f.apiVersion(), Kind: f.as}
}

// apiVersion is that of the kind that objects are changed to.
func (f Form) apiVersion() string { return metav1.GroupName + "/" + f.version }
