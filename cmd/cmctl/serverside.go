package main

import (
	"crypto/sha256"
	"encoding/hex"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// appliedBy is the annotation with the record of what a field manager applied
// through the server. A manager's name that no annotation can carry is there by
// its digest.
func appliedBy(manager string) types.Field {
	f := annotation(types.AppliedBy + manager)
	if len(validation.IsQualifiedName(f.Key)) > 0 {
		sum := sha256.Sum256([]byte(manager))
		f.Key = types.AppliedBy + hex.EncodeToString(sum[:8])
	}
	return f
}

// target is the object as the loop writes it.
func (a *application) target() retry.Creator[types.Document] { return a.object() }
