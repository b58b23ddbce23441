package main

import (
	"context"
	"fmt"

	"example.com/cmctl/cmd/cmctl/internal/difference"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// versionRange says which two versions of a ConfigMap are compared.
type versionRange struct {
	given bool
	from  string
	to    string // empty: as it is now
}

func (r *versionRange) add(flags *pflag.FlagSet) {
	flags.StringVar(&r.from, "from", "", "show what changed since this `VERSION` of the ConfigMap")
	flags.StringVar(&r.to, "to", "", "with --from: up to this `VERSION` (default as it is now)")
}

func (o *diffOptions) validateVersions(args []string) (err error) {
	switch {
	case o.versions.from == "":
		return usagef("--from takes the version that is compared with; 'cmctl history NAME' lists them")
	case o.input.given() || o.sourceFlags.from.given() || o.applyFlags != (applyFlags{}):
		return usagef("--from compares two versions that the server has; what goes with an apply doesn't go with it")
	case o.unified < 0:
		return usagef("--unified takes a number of lines, not %d", o.unified)
	}
	o.name, err = oneName("diff --from", args)
	return err
}

// compareVersions shows the differences between two versions, and tells whether there
// are any.
func (o *diffOptions) compareVersions(ctx context.Context) (errs []error, differs bool) {
	conn, err := o.connect("diff")
	if err != nil {
		return []error{err}, false
	}
	differs, err = o.showVersions(ctx, conn)
	if err != nil {
		errs = []error{conn.explain(conn.namespace, o.name, err)}
	}
	return errs, differs
}

func (o *diffOptions) showVersions(ctx context.Context, conn *connection) (differs bool, err error) {
	past := conn.past(o.name)
	from, err := past.version(ctx, o.versions.from)
	if err != nil {
		return false, err
	}
	to, name, err := o.other(ctx, past)
	if err != nil {
		return false, err
	}
	if to.UID() != "" && from.UID() != to.UID() {
		o.note("these are two objects of one name: uid %s and %s", from.UID(), to.UID())
	}
	show := o.show("")
	show.From, show.To = "version "+o.versions.from, name
	text := difference.Show(contents(types.Diff(from, to)), show)
	if text == "" {
		return false, nil
	}
	line := fmt.Sprintf("diff %s, version %s, with %s", conn.ConfigMaps(conn.namespace).Object(o.name).Object(), o.versions.from, name)
	return true, o.head(o.factory, line, text)
}

// other is what is compared with, and what to call it: a version, the object as it is
// now, or nothing if it is deleted.
func (o *diffOptions) other(ctx context.Context, past *past) (doc types.Document, name string, err error) {
	if o.versions.to != "" {
		doc, err = past.version(ctx, o.versions.to)
		return doc, "version " + o.versions.to, err
	}
	conn := past.conn
	doc, err = conn.ConfigMaps(conn.namespace).Get(ctx, o.name)
	switch {
	case apierrors.IsNotFound(err):
		o.note("it is deleted now; 'cmctl undo %s%s' brings it back", o.name, conn.where)
		return types.NewDocument(conn.namespace, o.name), "nothing", nil
	case err != nil:
		return nil, "", err
	}
	return doc, "live version " + doc.ResourceVersion(), nil
}
