package main

import (
	"errors"
	"slices"
	"strings"

	"example.com/cmctl/pkg/types"
	"github.com/spf13/pflag"
)

// addHelmForce is the flag of the verbs that change single values, and so refuse
// those that only Helm can make.
func addHelmForce(flags *pflag.FlagSet, force *bool) {
	flags.BoolVar(force, "force", false, "write the data of Helm's release records too")
}

// helmRecord tells whether Helm keeps a release in this object.
func helmRecord(doc types.Document) bool {
	return strings.HasPrefix(doc.Name(), "sh.helm.release.v1.") && doc.Fields()[types.Field{Section: "metadata.labels", Key: "owner"}] == "helm"
}

// errHelm refuses to write what only Helm can read again.
var errHelm = errors.New("this is a release record of Helm, whose data nobody else can write so that Helm reads it; change its labels alone, or give --force")

// leavesHelms is errHelm if the changes are of a release record's data.
func leavesHelms(doc types.Document, changes []types.Change) error {
	if helmRecord(doc) && slices.ContainsFunc(changes, func(c types.Change) bool { return c.Field.Section == "data" }) {
		return errHelm
	}
	return nil
}

// leavesHelms is errHelm if the plan, or a decision for the file's side, would
// write a release record's data.
func (a *application) leavesHelms(p plan) error {
	if a.force || p.live == nil {
		return nil
	}
	changes := slices.Clone(p.changes)
	if !a.keep {
		changes = append(changes, disputed(p.overruled())...)
	}
	return leavesHelms(p.live, changes)
}
