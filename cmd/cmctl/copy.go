package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

type copyOptions struct {
	*factory
	writeFlags
	from      string
	to        string
	namespace string
	context   string
	overwrite bool
}

func newCopy(f *factory) *cobra.Command {
	o := &copyOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "copy NAME [NEWNAME]",
		Short: "Copy a ConfigMap to another name, namespace or context",
		Long: `Copy a ConfigMap, with binary data, labels and annotations, to another name or
namespace, or to the server of another context. What ties the object to its place stays behind: what only the server sets,
its owners and finalizers, and the record of the last apply.

An object that is there already is left alone, unless --overwrite is given: then it
becomes equal to the copied one, on the version that it was read at, and what changes
is shown.`,
		Example: `  cmctl copy flags flags-v2
  cmctl copy flags --to-namespace=team-b
  cmctl copy flags flags-v2 --to-namespace=team-b --overwrite
  cmctl copy flags --to-context=staging`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := parseNames(args)
			if err != nil {
				return err
			}
			if len(names) != 1 && len(names) != 2 {
				return usagef("copy takes the NAME to copy, and then the NEWNAME")
			}
			o.from, o.to = names[0], names[len(names)-1]
			if problems := types.ValidateNamespace(o.namespace); cmd.Flags().Changed("to-namespace") && len(problems) > 0 {
				return usagef("%q can't be a namespace: %s", o.namespace, strings.Join(problems, "; "))
			}
			if cmd.Flags().Changed("to-context") && o.context == "" {
				return usagef("--to-context is given, and is empty")
			}
			if o.guard.given() && !o.overwrite {
				return usagef("--resource-version and --uid are of the object to overwrite; give --overwrite too")
			}
			if err := o.validate(cmd.Flags()); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.namespace, "to-namespace", "", "`NAMESPACE` to copy to (default that of --to-context, else the one to copy from)")
	cmd.Flags().StringVar(&o.context, "to-context", "", "`CONTEXT` whose server to copy to (default the server to copy from)")
	cmd.Flags().BoolVar(&o.overwrite, "overwrite", false, "make an object that is there already equal to the copied one")
	o.add(cmd.Flags())
	return cmd
}

func (o *copyOptions) run(ctx context.Context) error {
	source, err := o.connect("copy")
	if err != nil {
		return err
	}
	conn, err := o.destination(source)
	if err != nil {
		return err
	}
	w := o.writerOn(conn, o.writeFlags)
	w.helm = o.overwrite // a record's copy is one that Helm can read
	object := source.ConfigMaps(source.namespace).Object(o.from)
	original, err := retry.Read(ctx, object, o.persistent(o.progress(object)))
	if err != nil {
		return source.explain(source.namespace, o.from, err)
	}
	doc := o.portable(original, w.conn.namespace)
	if !o.overwrite {
		return w.ending(ctx, "copy", func() (outcome, error) { return o.create(ctx, w, doc) })
	}
	created := false
	return w.one(ctx, "copy", change{
		name: o.to,
		edit: func(_ context.Context, fresh types.Document) (types.Document, error) {
			created = false
			return becomes(fresh, doc)
		},
		make: func(context.Context) (types.Document, error) {
			created = true
			return doc, nil
		},
		word: func(was, now types.Document) string {
			if created {
				return "created"
			}
			o.tellChanges(was, now)
			return "overwritten"
		},
	})
}

// destination is where the copy goes: a connection of its own, on which a dry run
// leaves the reading of the original alone.
func (o *copyOptions) destination(source *connection) (conn *connection, err error) {
	if o.context != "" {
		conn, err = o.connectTo("copy", o.context)
	} else {
		conn, err = o.connect("copy")
	}
	if err != nil {
		return nil, err
	}
	if o.namespace != "" {
		conn.namespace = o.namespace
		conn.where = conn.host + flagText("namespace", o.namespace)
	}
	if o.context == "" && o.to == o.from && conn.namespace == source.namespace {
		return nil, usagef("a copy needs another name, namespace or context; give NEWNAME, --to-namespace or --to-context")
	}
	if o.context != "" {
		o.note("copying to namespace %q on %s", conn.namespace, conn.Target())
	}
	return conn, nil
}

// tied are the fields of metadata that make no sense on another object: its
// owners would take the copy with them, and nobody would remove its finalizers.
var tied = []string{"ownerReferences", "finalizers", "generateName"}

// untie takes the tied fields out, and names those that were there.
func untie(doc types.Document) (there []string) {
	for _, field := range tied {
		if _, ok := doc.Value("metadata", field); ok {
			doc.SetMeta(field, nil)
			there = append(there, field)
		}
	}
	return there
}

// portable is an object as it can be made elsewhere.
func (o *copyOptions) portable(original types.Document, namespace string) types.Document {
	doc, _ := withoutRecord(original)
	doc.DropServerFields()
	for _, field := range untie(doc) {
		o.note("metadata.%s is left out: it is about the object itself", field)
	}
	doc.SetMeta("name", o.to)
	doc.SetMeta("namespace", namespace)
	return doc
}

// create makes the copy where nothing of its name is.
func (o *copyOptions) create(ctx context.Context, w *writer, doc types.Document) (outcome, error) {
	res, err := o.send(ctx, w, doc)
	if apierrors.IsAlreadyExists(err) && !unknownOutcome(err) {
		err = &hintedError{err, fmt.Sprintf("look at it with 'cmctl get %s -o yaml%s'; --overwrite makes it equal to the copied one", o.to, w.conn.where)}
		err = w.conn.nameTaken(ctx, w.conn.namespace, o.to, err)
	}
	if err == nil && o.dryRun == dryRunServer {
		err = o.checkUnstored(ctx, w.conn.ConfigMaps(w.conn.namespace).Object(o.to), nil, res.Object)
	}
	if err != nil && !o.landedAndGone(err) {
		return outcome{}, w.conn.explain(w.conn.namespace, o.to, err)
	}
	return w.told(o.to, "created", res.Object)
}

// send makes the copy. A dry run here only looks whether it could be made.
func (o *copyOptions) send(ctx context.Context, w *writer, doc types.Document) (retry.Result[types.Document], error) {
	object := w.conn.ConfigMaps(w.conn.namespace).Object(o.to)
	options := o.persistent(o.progress(object))
	if o.dryRun != dryRunClient {
		same := func(found types.Document) bool { return contains(found, doc) }
		return retry.Create(ctx, object, doc, same, options)
	}
	return retry.Result[types.Document]{Object: doc}, mayCreate(ctx, object, o.to, options)
}

// mayCreate finds out whether an object of that name could be created. It reads
// only.
func mayCreate(ctx context.Context, object *client.Object, name string, options retry.Options) error {
	_, err := retry.Read(ctx, object, options)
	switch {
	case apierrors.IsNotFound(err) && missingNamespace(err) == "":
		return nil
	case err == nil:
		return types.ConfigMaps.AlreadyExists(name)
	}
	return err
}

// becomes is an object with the content of another. Its own ties stay.
func becomes(fresh, doc types.Document) (types.Document, error) {
	values := map[types.Field]any{}
	for _, c := range types.Diff(fresh, doc) {
		if !c.Field.Bookkeeping() && !(c.Field.Section == "metadata" && slices.Contains(tied, c.Field.Key)) {
			values[c.Field] = c.To
		}
	}
	return withFields(fresh, values)
}

// tellChanges shows what an overwritten object was, and is.
func (o *copyOptions) tellChanges(was, now types.Document) {
	if was == nil || now == nil {
		return
	}
	for _, c := range types.Diff(was, now) {
		o.note("  %s: %s -> %s", c.Field, quote(c.From), quote(c.To))
	}
}
