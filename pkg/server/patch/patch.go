// Package patch makes the next version of an object from the one before it and
// a patch, in the three forms that Kubernetes has: JSON patch, merge patch and
// strategic merge patch. It also reads the configurations that are applied.
// Nothing here stores or keeps anything, and what it is given is not changed.
//
//	p, err := patch.Read(ktypes.MergePatchType, body, metav1.FieldValidationWarn)
//	...
//	next, warnings, err := p.Make(types.ConfigMaps, old)
//
// Every error but that of an object which can't be encoded is a
// *types.StatusError and leaves as it is.
package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktypes "k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"example.com/cmctl/pkg/types"
)

// Types are the media types of the patches that Read takes.
var Types = []ktypes.PatchType{ktypes.JSONPatchType, ktypes.MergePatchType, ktypes.StrategicMergePatchType}

// Limits on what one patch or configuration may ask for.
const (
	// MaxOperations is how many operations a JSON patch may have.
	MaxOperations = 10_000
	// MaxItems is how many items any other list in a patch may have. The time that
	// lists take to be merged grows with the square of their length.
	MaxItems = 1_000
	// MaxDepth is how deep maps and lists may be nested in a patch. The time that
	// a patch takes grows with its size times its depth.
	MaxDepth = 32
	// maxCopied is how many bytes the copy operations of a JSON patch may add.
	maxCopied = 3 << 20
)

func init() { jsonpatch.AccumulatedCopySizeLimit = maxCopied }

// Patch is a patch that was read. It may be made to any number of objects, by
// any number of goroutines.
type Patch struct {
	kind       ktypes.PatchType
	body       []byte
	validation string
}

// Read takes a patch of one of the Types. fieldValidation says what becomes of
// unknown and repeated fields; empty stands for Warn. Only what can be seen
// without an object is refused here, for a missing object is told before the
// rest.
func Read(kind ktypes.PatchType, body []byte, fieldValidation string) (Patch, error) {
	switch {
	case !slices.Contains(Types, kind):
		return Patch{}, UnsupportedType()
	case !json.Valid(body):
		return Patch{}, types.BadRequest("invalid JSON patch")
	case !utf8.Valid(body):
		return Patch{}, types.BadRequest("the patch is not UTF-8 text; a ConfigMap keeps bytes in binaryData, as base64")
	}
	return Patch{kind: kind, body: body, validation: fieldValidation}, checkShape(body)
}

// Make is what the patch makes of old: a new object, with whatever it says of
// name, version and the like for the caller to judge. warnings name the fields
// that were dropped; they count with an error too.
func (p Patch) Make(res *types.Resource, old types.Object) (next types.Object, warnings []string, err error) {
	defer func() {
		// The libraries panic on some patches that they should refuse.
		if cause := recover(); cause != nil {
			next, warnings, err = nil, nil, types.BadRequest(fmt.Sprintf("the patch can't be applied: %v", cause))
		}
	}()
	made, err := p.apply(res, old)
	if err != nil {
		return nil, nil, err
	}
	next, unknown, err := decode(res, made.document)
	if err != nil {
		return nil, nil, invalid(made.shown(), made.reason(err))
	}
	var refusal error
	if p.kind != ktypes.StrategicMergePatchType {
		if fields, typed := untyped(made.document); !typed {
			next, unknown, refusal = nil, fields, typeless(res)
		}
	}
	problems := append(made.problems, unknown...)
	switch {
	case p.validation == metav1.FieldValidationIgnore:
		return next, nil, refusal
	case p.validation == metav1.FieldValidationStrict && len(problems) > 0:
		return nil, nil, invalid(made.shown(), runtime.NewStrictDecodingError(asErrors(problems)))
	}
	return next, problems, refusal
}

// untyped tells whether a patched object still has its apiVersion. Without it,
// none of its fields is known to Kubernetes; these are the problems.
func untyped(document []byte) (problems []string, typed bool) {
	var object map[string]any
	if kjson.UnmarshalCaseSensitivePreserveInts(document, &object) != nil || object["apiVersion"] != nil && object["apiVersion"] != "" {
		return nil, true
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if name != "apiVersion" && name != "kind" {
			problems = append(problems, fmt.Sprintf("unknown field %q", name))
		}
	}
	return problems, false
}

// strict tells whether the patch itself is read strictly.
func (p Patch) strict() bool { return p.validation != metav1.FieldValidationIgnore }

// result is a patched object that is still to be decoded.
type result struct {
	document []byte   // JSON
	problems []string // with the patch itself
	shown    func() string
	reason   func(error) error // may word better why document is no object
}

func (p Patch) apply(res *types.Resource, old types.Object) (result, error) {
	if p.kind == ktypes.StrategicMergePatchType {
		return p.strategic(res, old)
	}
	encoded, err := res.Encode(old)
	if err != nil {
		return result{}, err
	}
	before := encoded.AppendObject(nil, old.GetResourceVersion())
	var document []byte
	var problems []string
	if p.kind == ktypes.JSONPatchType {
		document, problems, err = p.operations(before)
	} else {
		document, problems, err = p.merge(before)
	}
	return result{
		document: document,
		problems: problems,
		shown:    func() string { return string(document) },
		reason:   func(err error) error { return err },
	}, err
}

// jsonPatchOp is what an operation of a JSON patch may have.
type jsonPatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

// operations applies a JSON patch.
func (p Patch) operations(before []byte) (after []byte, problems []string, err error) {
	if p.strict() {
		var ops []jsonPatchOp
		if problems, err = decodeStrict(p.body, &ops); err != nil {
			// Clients know the type by the name that kube-apiserver has for it.
			return nil, nil, undecodable(strings.ReplaceAll(err.Error(), "patch.jsonPatchOp", "handlers.jsonPatchOp"))
		}
		for i, problem := range problems {
			problems[i] = "json patch " + problem
		}
	}
	ops, err := jsonpatch.DecodePatch(p.body)
	if err != nil {
		return nil, nil, types.BadRequest(err.Error())
	}
	if len(ops) > MaxOperations {
		return nil, nil, tooLarge(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", MaxOperations, len(ops)))
	}
	if after, err = ops.Apply(before); err != nil {
		return nil, nil, inapplicable(err)
	}
	return after, problems, nil
}

// merge applies a merge patch.
func (p Patch) merge(before []byte) (after []byte, problems []string, err error) {
	if p.strict() {
		if problems, err = decodeStrict(p.body, &map[string]any{}); err != nil {
			return nil, nil, undecodable(err.Error())
		}
	}
	if after, err = jsonpatch.MergePatch(before, p.body); err != nil {
		return nil, nil, types.BadRequest(err.Error())
	}
	return after, problems, nil
}

// decodeStrict reads JSON and tells the fields that are repeated or unknown.
func decodeStrict(body []byte, into any) (problems []string, err error) {
	strict, err := kjson.UnmarshalStrict(body, into)
	for _, s := range strict {
		problems = append(problems, s.Error())
	}
	return problems, err
}

// decode reads a patched object by the rules that bodies have.
func decode(res *types.Resource, document []byte) (o types.Object, problems []string, err error) {
	o, problems, refusal := res.Decode(document, types.MediaJSON)
	if refusal == nil {
		return o, problems, nil
	}
	if err := otherType(res, document); err != nil {
		return nil, nil, err
	}
	// The decoder's own words are those that kube-apiserver shows.
	if _, err := kjson.UnmarshalStrict(document, res.New()); err != nil {
		return nil, nil, err
	}
	return nil, nil, refusal
}

// otherType refuses a patched object that says that it is something else.
func otherType(res *types.Resource, document []byte) error {
	var t metav1.TypeMeta
	if kjson.UnmarshalCaseSensitivePreserveInts(document, &t) != nil {
		return nil
	}
	switch {
	case t.APIVersion != "" && t.APIVersion != types.APIVersion:
		return fmt.Errorf(`no kind %q is registered for version %q in scheme "cmserver"`, t.Kind, t.APIVersion)
	case t.Kind != "" && t.Kind != res.Kind:
		return fmt.Errorf("converting (v1.%s) to (core.%s): unknown conversion", t.Kind, res.Kind)
	}
	return nil
}

func asErrors(texts []string) []error {
	var errs []error
	for _, text := range texts {
		errs = append(errs, errors.New(text))
	}
	return errs
}

// checkShape refuses valid JSON that would take too long to be worked on.
func checkShape(body []byte) error {
	switch depth, items := measure(body); {
	case depth > MaxDepth:
		return types.BadRequest(fmt.Sprintf("the patch is nested deeper than %d levels", MaxDepth))
	case items > MaxItems:
		return tooLarge(fmt.Sprintf("The allowed maximum items of a list in a patch is %d, got %d", MaxItems, items))
	}
	return nil
}

// measure tells how deep maps and lists are nested in valid JSON, and how many
// items the longest list inside has.
func measure(body []byte) (depth, items int) {
	var open []int // the items so far of each list that is open; of maps, -1
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{':
			open = append(open, -1)
		case '[':
			open = append(open, 1)
		case ',':
			if last := len(open) - 1; last > 0 && open[last] > 0 {
				open[last]++
				items = max(items, open[last])
			}
		case '}', ']':
			open = open[:len(open)-1]
		case '"':
			i = stringEnd(body, i)
		}
		depth = max(depth, len(open))
	}
	return depth, items
}

// stringEnd is the offset of the quote that ends the string which begins at i.
func stringEnd(body []byte, i int) int {
	for i++; ; i++ {
		next := bytes.IndexAny(body[i:], `"\`)
		if next < 0 {
			return len(body)
		}
		if i += next; body[i] == '"' {
			return i
		}
		i++ // whatever is escaped
	}
}
