// Package condition has the conditions that an object is waited for with: that
// it is there, gone, changed, or has a certain value.
//
//	c, err := condition.Parse("key=mode=green")
//	object := &condition.Object{}
//	object.Take(event, synced)          // each event of a watch
//	unmet := object.Unmet([]condition.Condition{c})
package condition

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
)

// Condition is what an object is waited for with. It is made by Parse.
type Condition struct {
	// unmet is empty if the condition holds, and says what is the case otherwise.
	unmet func(o *Object) string
	// absent tells whether it holds where there is no object at all.
	absent bool
}

// Parse reads a condition: create, delete, change, key=KEY, key=KEY=VALUE,
// jsonpath=EXPR or jsonpath=EXPR=VALUE. A value goes to the end of the text, and
// may hold equals signs.
func Parse(text string) (Condition, error) {
	kind, rest, given := strings.Cut(text, "=")
	switch kind {
	case "create", "delete", "change":
		if given {
			return Condition{}, fmt.Errorf("%s takes no value", kind)
		}
		return plain[kind], nil
	case "key":
		return parseKey(rest)
	case "jsonpath":
		return parsePath(rest)
	}
	return Condition{}, errors.New("this is none of create, delete, change, key=KEY, key=KEY=VALUE, jsonpath=EXPR and jsonpath=EXPR=VALUE")
}

var plain = map[string]Condition{
	"create": {unmet: func(o *Object) string { return o.there() }},
	"delete": {absent: true, unmet: func(o *Object) string {
		if o.now == nil || o.gone {
			return ""
		}
		return "it is still there"
	}},
	"change": {unmet: func(o *Object) string {
		if o.changed {
			return ""
		}
		if o.now == nil {
			return "it is not there"
		}
		return "it is still at version " + o.now.ResourceVersion()
	}},
}

// parseKey reads KEY or KEY=VALUE. No key holds an equals sign.
func parseKey(text string) (Condition, error) {
	key, want, compare := strings.Cut(text, "=")
	if key == "" {
		return Condition{}, errors.New("it names no key")
	}
	return Condition{unmet: func(o *Object) string {
		value := o.now.Fields()[types.Field{Section: "data", Key: key}]
		raw, _ := types.RawValue(value)
		switch {
		case o.now == nil:
			return o.there()
		case value == nil:
			return fmt.Sprintf("it has no key %q", key)
		case compare && string(raw) != want:
			return fmt.Sprintf("%s is %s, not %s", key, short(string(raw)), short(want))
		}
		return ""
	}}, nil
}

// parsePath reads EXPR or EXPR=VALUE. An expression in braces may hold equals
// signs, as filters do.
func parsePath(text string) (Condition, error) {
	expr, want, compare := strings.Cut(text, "=")
	if strings.HasPrefix(text, "{") {
		if end := strings.Index(text, "}="); end >= 0 {
			expr, want, compare = text[:end+1], text[end+2:], true
		} else {
			expr, want, compare = text, "", false
		}
	}
	path, err := output.ParsePath(expr)
	if err != nil {
		return Condition{}, err
	}
	return Condition{unmet: func(o *Object) string {
		if o.now == nil {
			return o.there()
		}
		values, err := path.Values(o.now)
		switch {
		case err != nil:
			return err.Error()
		case len(values) == 0:
			return expr + " finds nothing"
		case !compare:
			return ""
		case len(values) > 1:
			return fmt.Sprintf("%s finds %d values, not one", expr, len(values))
		case asText(values[0]) != want:
			return fmt.Sprintf("%s is %s, not %s", expr, short(asText(values[0])), short(want))
		}
		return ""
	}}, nil
}

// HoldForNothing tells whether all conditions hold where there is no object.
func HoldForNothing(conditions []Condition) bool {
	return !slices.ContainsFunc(conditions, func(c Condition) bool { return !c.absent })
}

// Object is what a watch tells of one name. Its zero value has seen nothing.
type Object struct {
	// Since is the version since which a change counts; empty: what comes after
	// the watch is synced.
	Since string
	// UID is that of the object which was there before the watch; empty: the one
	// that the watch shows first.
	UID string

	now     types.Document // nil if there is none
	last    types.Document // what there was
	gone    bool           // what was there at first
	changed bool
}

// Take notes an event about the object. synced is true of those that are not
// about what was there at first.
func (o *Object) Take(e client.Event, synced bool) {
	o.last = e.Object
	o.now = e.Object
	if e.Type == client.Deleted {
		o.now, o.gone = nil, true
	}
	o.changed = o.changed || synced
}

// Sync is to be called once what was there at first has been taken.
func (o *Object) Sync() {
	if o.UID != "" && (o.now == nil || o.now.UID() != o.UID) {
		o.gone = true
	}
	if o.Since != "" && (o.now == nil || o.now.ResourceVersion() != o.Since) {
		o.changed = true
	}
}

// There tells whether there is one now.
func (o *Object) There() bool { return o.now != nil }

// Last is the object as it is or, if it is gone, was; nil if it never was.
func (o *Object) Last() types.Document { return o.last }

// Unmet says, for each condition that doesn't hold, what is the case.
func (o *Object) Unmet(conditions []Condition) []string {
	var unmet []string
	for _, c := range conditions {
		if text := c.unmet(o); text != "" {
			unmet = append(unmet, text)
		}
	}
	return unmet
}

func (o *Object) there() string {
	if o.now == nil {
		return "it is not there"
	}
	return ""
}

// asText is a value as it would be given on a command line.
func asText(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// short shows a value on one line of a message.
func short(text string) string {
	const limit = 60
	if len(text) <= limit {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q... (%d bytes)", strings.ToValidUTF8(text[:limit], ""), len(text))
}
