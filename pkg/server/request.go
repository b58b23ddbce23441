package server

import (
	"cmp"
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/cmctl/pkg/server/render"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// request is one request to the API, as the verbs see it.
type request struct {
	http      *http.Request
	writer    http.ResponseWriter // for deadlines and body limits only
	info      *requestInfo
	resource  *types.Resource
	namespace string // empty: all namespaces, or none
	name      string
	query     url.Values
	form      render.Form // what the answer is written as
	warnings  []string    // sent with the answer, whether it is a success or not
}

func (r *request) context() context.Context { return r.http.Context() }

// warn adds a Warning header to the answer.
func (r *request) warn(text string) { r.warnings = append(r.warnings, text) }

// verb does what a request asks for.
type verb func(*request) (answer, error)

// verbs are the methods that a path has.
type verbs map[string]verb

// serve makes a handler of the verbs of a resource. With none, nothing is there.
func (s *Server) serve(res *types.Resource, known verbs) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		r := &request{
			http:      hr,
			writer:    w,
			info:      infoOf(hr),
			resource:  res,
			namespace: hr.PathValue("namespace"),
			name:      hr.PathValue("name"),
		}
		answer, err := s.dispatch(known, r)
		s.respond(w, r, answer, err)
	})
}

func (s *Server) dispatch(known verbs, r *request) (answer, error) {
	if known == nil {
		return answer{}, types.UnknownPath()
	}
	do, ok := known[r.http.Method]
	if !ok {
		return answer{}, types.MethodNotAllowed("")
	}
	// Query drops what it can't parse. A dropped dryRun would be a write.
	var err error
	if r.query, err = url.ParseQuery(r.http.URL.RawQuery); err != nil {
		return answer{}, types.BadRequest(fmt.Sprintf("the query can't be parsed: %v", err))
	}
	if err := r.negotiate(); err != nil {
		return answer{}, err
	}
	if err := checkParameters(r); err != nil {
		return answer{}, err
	}
	return do(r)
}

// negotiate finds the form of the answer. A write whose answer could not be
// written is refused before it is made.
func (r *request) negotiate() error {
	at, err := render.Document, error(nil)
	switch {
	case r.resource == nil || strings.HasSuffix(r.http.Pattern, "}"+historyPath): // an object may have that name
	case r.name == "" && r.http.Method == http.MethodGet:
		at = render.Collection
	default:
		at = render.Object
	}
	if r.form, err = render.Negotiate(r.http.Header, r.query, at); err != nil || at != render.Object || r.http.Method == http.MethodGet {
		return err
	}
	if r.name == "" && r.http.Method == http.MethodDelete {
		return r.form.ForList(r.resource)
	}
	return r.form.ForObject(r.resource)
}

// letters are those of a name: dry-run, dry_run and dryRun[] are all dryRun to
// whoever wrote them.
func letters(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) {
			return c
		}
		return -1
	}, name)
}

// parameters are those that this server knows, and that count once each.
var parameters = []string{"continue", "fieldManager", "fieldSelector", "fieldValidation", "gracePeriodSeconds",
	"labelSelector", "limit", "orphanDependents", "propagationPolicy", "resourceVersion", "resourceVersionMatch", "uid"}

// checkParameters refuses a write with a parameter that would be passed over
// though it was meant: one that is written in another way, or whose second value
// differs. labelselector= would delete a whole collection, and dryrun=All or
// dry-run=All would be no dry run.
func checkParameters(r *request) error {
	if r.http.Method == http.MethodGet {
		return nil
	}
	if r.http.Header.Get("If-Match") != "" {
		return types.BadRequest("header If-Match is no condition here: send metadata.resourceVersion, or preconditions to delete")
	}
	for name, values := range r.query {
		if slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
			return types.BadRequest(fmt.Sprintf("parameter %s is not UTF-8 text", strings.ToValidUTF8(name, "?")))
		}
		once := slices.Contains(parameters, name)
		if !once && name != "dryRun" {
			if err := checkUnknown(name); err != nil {
				return err
			}
		}
		if once && slices.ContainsFunc(values, func(v string) bool { return v != values[0] }) {
			return types.BadRequest(fmt.Sprintf("parameter %s is given twice, with different values", name))
		}
	}
	return nil
}

// checkUnknown refuses a parameter that was meant to be a known one.
func checkUnknown(name string) error {
	meant := letters(name)
	if strings.Contains(strings.ToLower(meant), "precondition") {
		return types.BadRequest(fmt.Sprintf("unknown parameter %q: in the query preconditions are written uid and resourceVersion", name))
	}
	for _, known := range append(parameters, "dryRun") {
		if strings.EqualFold(meant, known) {
			return types.BadRequest(fmt.Sprintf("unknown parameter %q: it is written %s", name, known))
		}
	}
	return nil
}

// body reads the request's body and the media type that it says it has. A
// missing type is JSON.
func (s *Server) body(r *request) (body []byte, mediaType string, err error) {
	if body, err = s.readAll(r); err != nil {
		return nil, "", err
	}
	mediaType, err = mediaTypeOf(r)
	return body, mediaType, err
}

// mediaTypeOf says what the body claims to be, and refuses what is not read
// here.
func mediaTypeOf(r *request) (string, error) {
	mediaType := types.MediaJSON
	if given := r.http.Header.Get("Content-Type"); given != "" {
		var params map[string]string
		var err error
		if mediaType, params, err = mime.ParseMediaType(given); err != nil {
			mediaType = given // no type that we know either
		}
		if err := checkCharset(params["charset"]); err != nil && mediaType != types.MediaProtobuf {
			return "", err
		}
	}
	if !slices.Contains(types.MediaTypes, mediaType) || !isPlain(r.http.Header) {
		return "", types.UnsupportedMediaType(types.MediaTypes...)
	}
	return mediaType, nil
}

// checkCharset refuses what would be taken for other letters.
func checkCharset(charset string) error {
	if charset == "" || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8") {
		return nil
	}
	return types.UnsupportedCharset(charset)
}

// isPlain tells whether a body is sent as it is, and not compressed.
func isPlain(h http.Header) bool {
	encoding := h.Get("Content-Encoding")
	return encoding == "" || encoding == "identity"
}

// object reads the body as one of the request's resource, and warns about or
// refuses the fields that it does not know, as the client asked.
func (s *Server) object(r *request, o writeOptions) (types.Object, error) {
	body, mediaType, err := s.body(r)
	if err != nil {
		return nil, err
	}
	obj, problems, err := r.resource.Decode(body, mediaType)
	if err != nil {
		return nil, err
	}
	r.info.entry.Object(obj)
	r.auditSent(obj)
	if found := types.MisreadUpdate(problems); r.http.Method == http.MethodPut && len(found) > 0 {
		return nil, types.Misread(r.resource.Kind, found)
	}
	return obj, r.tell(o.fieldValidation, r.resource.Kind, problems)
}

// tell warns about what a body of this kind has too much, or refuses it, as the client
// asked.
func (r *request) tell(validation, kind string, problems []string) error {
	switch {
	case validation == metav1.FieldValidationStrict && len(problems) > 0:
		return types.StrictDecoding(kind, problems)
	case validation != metav1.FieldValidationIgnore:
		for _, p := range problems {
			r.warn(p)
		}
	}
	return nil
}

// writeOptions are the parameters that writes have in common.
type writeOptions struct {
	dryRun          bool
	fieldValidation string
	meta            store.Meta
	guards          []store.Guard // what must hold besides
	atHand          bool          // it is made from a version that may not be the newest
}

// writeOptions reads the parameters of a create or update; kind is what
// Kubernetes calls them.
func (s *Server) writeOptions(r *request, kind, verb string) (writeOptions, error) {
	dryRun := r.query["dryRun"]
	manager := r.query.Get("fieldManager")
	validation := r.query.Get("fieldValidation")
	errs := metavalidation.ValidateFieldManager(manager, field.NewPath("fieldManager"))
	errs = append(errs, metavalidation.ValidateDryRun(field.NewPath("dryRun"), dryRun)...)
	errs = append(errs, metavalidation.ValidateFieldValidation(field.NewPath("fieldValidation"), validation)...)
	if len(errs) > 0 {
		return writeOptions{}, types.InvalidOptions(kind, errs)
	}
	meta, err := s.meta(r, verb, manager)
	return writeOptions{dryRun: len(dryRun) > 0, fieldValidation: validation, meta: meta}, err
}

// maxWriteID is how long a Cmctl-Write-Id may be.
const maxWriteID = 64

// meta tells where a write comes from, to be kept with it.
func (s *Server) meta(r *request, verb, manager string) (store.Meta, error) {
	id := r.http.Header.Get(types.WriteIDHeader)
	if len(id) > maxWriteID || strings.ContainsFunc(id, func(c rune) bool { return c < ' ' || c > '~' }) {
		return store.Meta{}, types.BadRequest(fmt.Sprintf(
			"header %s must be at most %d printable ASCII characters", types.WriteIDHeader, maxWriteID))
	}
	if manager == "" {
		manager = defaultManager(r.http.UserAgent())
	}
	return store.Meta{
		Verb:    verb,
		Manager: manager,
		User:    r.info.userName(),
		Time:    s.now(),
		WriteID: id,
	}, nil
}

// now is the time as it is kept with a write.
func (s *Server) now() time.Time { return s.clock().UTC().Truncate(time.Millisecond) }

// defaultManager names the field manager of a client that names none: what can be
// printed of its User-Agent before the first slash, as in Kubernetes.
func defaultManager(userAgent string) string {
	agent, _, _ := strings.Cut(userAgent, "/")
	var name strings.Builder
	for _, c := range agent { // bytes that are no UTF-8 come as U+FFFD
		if !unicode.IsPrint(c) {
			continue
		}
		if name.Len()+utf8.RuneLen(c) > metavalidation.FieldManagerMaxLength {
			break
		}
		name.WriteRune(c)
	}
	return cmp.Or(name.String(), "unknown")
}
