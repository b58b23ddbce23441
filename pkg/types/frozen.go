package types

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Frozen is a server's refusal of changes that an immutable object can't take, known
// before it is asked; nil if they touch its metadata only, or it is not immutable.
func Frozen(live Document, changes []Change) error {
	if live["immutable"] != true {
		return nil
	}
	touched := map[string]bool{}
	for _, c := range changes {
		if c.Field == (Field{Key: "immutable"}) {
			touched["immutable"] = c.To != true
		}
		if c.Field.Section != "data" {
			continue
		}
		for _, value := range []any{c.From, c.To} {
			switch value.(type) {
			case nil:
			case Binary:
				touched["binaryData"] = true
			default:
				touched["data"] = true
			}
		}
	}
	var errs field.ErrorList
	for _, name := range []string{"immutable", "data", "binaryData"} { // in the server's order
		if touched[name] {
			errs = append(errs, field.Forbidden(field.NewPath(name), immutableMessage))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return ConfigMaps.Invalid(live.Name(), errs)
}
