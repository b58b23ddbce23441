package manifest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checker finds what the server would refuse, or silently drop, and names the
// lines.
type checker struct {
	Manifest
	known   types.Document // what the person was shown, nil if they wrote it all
	unnamed bool           // a generateName will do

	faults []error
}

// fault is an error at a place of the manifest.
func (c *checker) fault(path []string, format string, args ...any) error {
	return &Fault{File: c.File, Line: c.doc.LineOf(slices.Concat(c.at, path)), Message: fmt.Sprintf(format, args...)}
}

// add notes a fault, unless it is about a part that the person was shown as it
// is and left alone: an edit must not be refused for what it doesn't touch.
func (c *checker) add(path []string, format string, args ...any) {
	if c.known == nil || !Untouched(c.known, c.Document, path) {
		c.faults = append(c.faults, c.fault(path, format, args...))
	}
}

// Untouched tells whether a part is there and the same in both documents.
func Untouched(base, mine types.Document, path []string) bool {
	was, ok := base.Value(path...)
	now, still := mine.Value(path...)
	return ok && still && len(path) > 0 && reflect.DeepEqual(was, now)
}

// check returns all faults of one kind at once; the later kinds make sense only
// where the earlier ones found nothing.
func (c *checker) check() []error {
	for _, find := range []func(){c.kind, c.values, c.fields, c.rules} {
		if find(); len(c.faults) > 0 {
			return c.faults
		}
	}
	return nil
}

// otherKind tells whether the object says that it is no ConfigMap.
func (c *checker) otherKind() bool {
	return c.Kind() != "" && c.APIVersion() != "" && (c.Kind() != types.Kind || c.APIVersion() != types.APIVersion)
}

// title names an object of another kind: v1 Secret "s".
func (c *checker) title() string {
	title := c.APIVersion() + " " + c.Kind()
	if c.Name() != "" {
		title += fmt.Sprintf(" %q", c.Name())
	}
	return title
}

func (c *checker) kind() {
	switch {
	case c.Kind() == "":
		c.add(nil, "no kind: a manifest begins with apiVersion: v1 and kind: ConfigMap")
	case c.APIVersion() == "":
		c.add(nil, "no apiVersion: a manifest begins with apiVersion: v1 and kind: ConfigMap")
	case c.otherKind():
		fault := &Fault{File: c.File, Line: c.doc.LineOf(slices.Concat(c.at, []string{"kind"})), OtherKind: true,
			Message: c.title() + ": cmctl writes ConfigMaps of v1 only"}
		c.faults = append(c.faults, fault)
	}
}

// values finds values of a wrong type.
func (c *checker) values() {
	for _, p := range c.Problems(true) {
		message := p.Message
		if typed := c.doc.Typed(slices.Concat(c.at, p.Path)); typed != "" && strings.Contains(message, "must be a string") {
			message += fmt.Sprintf("; write it in quotes: %q", typed)
			if c.known == nil {
				message += ", or give --stringify"
			}
		}
		c.add(p.Path, "%s", message)
	}
	meta, _ := c.Document["metadata"].(map[string]any)
	for _, field := range []string{"name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"} {
		path := []string{"metadata", field}
		if _, ok := meta[field].(string); !ok && meta[field] != nil {
			message := "metadata." + field + " must be a string"
			if typed := c.doc.Typed(slices.Concat(c.at, path)); typed != "" {
				message += fmt.Sprintf("; write it in quotes: %q", typed)
			}
			c.add(path, "%s", message)
		}
	}
	if _, ok := c.Document["immutable"].(bool); !ok && c.Document["immutable"] != nil {
		c.add([]string{"immutable"}, "immutable must be true or false")
	}
}

var (
	objectFields = []string{"apiVersion", "kind", "metadata", "data", "binaryData", "immutable", "status"}
	metaFields   = []string{"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation",
		"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations",
		"ownerReferences", "finalizers", "managedFields"}
)

// fields finds names that no ConfigMap has: the server would drop them with a
// warning, and what was meant would be lost.
func (c *checker) fields() {
	for _, key := range sortedKeys(c.Document) {
		if _, known := c.known[key]; !known && !slices.Contains(objectFields, key) {
			otherwise := "does it belong under data?"
			if slices.Contains(metaFields, key) {
				otherwise = "does it belong under metadata?"
			}
			c.add([]string{key}, "unknown field %q; %s", key, guess(key, objectFields, otherwise))
		}
	}
	meta, _ := c.Document["metadata"].(map[string]any)
	knownMeta, _ := c.known["metadata"].(map[string]any)
	for _, key := range sortedKeys(meta) {
		if _, known := knownMeta[key]; !known && !slices.Contains(metaFields, key) {
			c.add([]string{"metadata", key}, "unknown field \"metadata.%s\"; %s", key, guess(key, metaFields, "the server would drop it"))
		}
	}
	prefix, _ := c.Value("metadata", "generateName")
	generated := prefix != nil && prefix != ""
	switch {
	case c.Name() != "" || generated && c.unnamed:
	case generated:
		c.add([]string{"metadata"}, "metadata.name is missing; metadata.generateName is for 'cmctl create' alone, for it says of no object which one is meant")
	default:
		c.add([]string{"metadata"}, "metadata.name is missing")
	}
}

// guess is the field that was probably meant, or what to say if none is close.
func guess(key string, fields []string, otherwise string) string {
	if near := types.Nearest(key, fields); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return otherwise
}

// rules runs Kubernetes' own validation before anything is sent.
func (c *checker) rules() {
	cm, err := client.ToConfigMap(c.WithoutNulls())
	var misfit *client.MisfitError
	switch {
	case errors.As(err, &misfit):
		c.add(strings.Split(misfit.Field, "."), "%v", misfit)
		return
	case err != nil:
		c.add(nil, "%v", err)
		return
	}
	if cm.Namespace == "" {
		cm.Namespace = "default"
	}
	if cm.Name == "" {
		cm.Name = "generated" // the server makes one before it looks
	}
	cm.ManagedFields = nil // the server's, and dropped before sending
	for _, e := range types.ValidateConfigMap(cm) {
		if e.Type == field.ErrorTypeTooLong && (e.Field == "[]" || e.Field == "metadata.annotations") {
			continue // of the whole: whoever sends it knows what makes it so large
		}
		path := strings.FieldsFunc(e.Field, func(r rune) bool { return r == '[' || r == ']' })
		if len(path) > 0 {
			path = append(strings.Split(path[0], "."), path[1:]...)
		}
		c.add(path, "%s", e.Error())
	}
}

func sortedKeys(d types.Document) []string {
	keys := make([]string, 0, len(d))
	for k := range d {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
