package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

type getOptions struct {
	*factory
	selection
	input          inputFlags
	watch          watchFlags
	names          []string
	key            string
	version        string
	output         string
	print          output.Options
	sortBy         []string
	showLabels     bool
	labelColumns   []string
	managedFields  bool
	failEmpty      bool
	ignoreNotFound bool

	printer output.Printer // nil for the tables
	sorter  output.Sorter
}

func newGet(f *factory) *cobra.Command {
	o := &getOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "get [NAME... | -f FILE...]",
		Short: "Show one ConfigMap, several, or all of a namespace",
		Long: `Show one ConfigMap, several, or all of a namespace.

The default is a table, for which no contents are read. -o takes wide, yaml,
json, name, and expressions: jsonpath=, go-template= and custom-columns=, each
also from a file (jsonpath-file=FILE). Objects that were listed, or asked for by
several names, are one List to yaml, json, jsonpath and go-template.

An expression about something that isn't there fails with exit code 4 and prints
nothing, unless --allow-missing is given.`,
		Example: `  cmctl get                  # all in the namespace
  cmctl get -A               # in all namespaces
  cmctl get -l tier=web      # those with that label
  cmctl get flags -o yaml
  cmctl get flags limits -o json
  cmctl get -f manifests/ -o yaml  # those that the files name, as they are live
  cmctl get flags --key app.yaml > app.yaml
  cmctl get flags --version 4711 -o yaml  # as it was: see 'cmctl history'
  cmctl get flags -o jsonpath='{.data.app\.yaml}'
  cmctl get -o custom-columns=NAME:.metadata.name,MODE:.data.mode
  cmctl get --sort-by=.metadata.labels.rank --sort-by=NAME -L rank
  cmctl get -w               # then each change, until Ctrl-C
  cmctl get flags -w -o json # one change a line`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if args, err = o.input.take(args); err != nil {
				return err
			}
			if o.names, err = parseNames(args); err != nil {
				return err
			}
			if err := o.complete(cmd.Flags().Changed("key")); err != nil {
				return err
			}
			if err := o.checkVersion(cmd.Flags().Changed("version")); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	o.input.add(flags)
	o.selection.add(flags)
	o.watch.add(flags)
	flags.StringVarP(&o.output, "output", "o", "", "how to print: wide, "+strings.Join(output.Formats, ", ")+" (default a table)")
	flags.StringVar(&o.key, "key", "", "print the value of this `key` alone, byte for byte")
	flags.StringVar(&o.version, "version", "", "show the object as it was in this `VERSION`")
	flags.StringVar(&o.print.Template, "template", "", "the `template` for -o go-template or -o jsonpath")
	flags.BoolVar(&o.print.AllowMissing, "allow-missing", false, "print nothing for what an expression doesn't find")
	flags.BoolVar(&o.print.AllowMissing, "allow-missing-template-keys", false, "the same as --allow-missing")
	flags.BoolVar(&o.print.NoHeaders, "no-headers", false, "leave out the first line of a table")
	flags.StringArrayVar(&o.sortBy, "sort-by", nil, "jsonpath `expression`, NAME, NAMESPACE or AGE to sort by; may be repeated")
	flags.BoolVar(&o.showLabels, "show-labels", false, "show all labels in a last column")
	flags.StringSliceVarP(&o.labelColumns, "label-columns", "L", nil, "`labels` to show in columns of their own")
	flags.BoolVar(&o.managedFields, "show-managed-fields", false, "show metadata.managedFields too")
	flags.BoolVar(&o.failEmpty, "fail-empty", false, "end with code 4 if there is nothing to show")
	flags.BoolVar(&o.ignoreNotFound, "ignore-not-found", false, "leave out names that don't exist, without an error")
	f.versionFlags(cmd, "version")
	return cmd
}

// complete checks the flags and makes of them what run needs, so that a mistake
// is found before anything is read.
func (o *getOptions) complete(byKey bool) (err error) {
	if err := o.selection.check(o.names); err != nil {
		return err
	}
	if err := o.watch.check(o); err != nil {
		return err
	}
	switch {
	case o.input.given() && (o.allNamespaces || o.selectors.given()):
		return usagef("-f names the objects; -A, -l and --field-selector choose in other ways")
	case byKey && len(o.names) != 1 && !o.input.given():
		return usagef("--key prints one value: give one NAME with it")
	case byKey && o.key == "":
		return usagef("--key needs the name of a key")
	case byKey && o.output != "":
		return usagef("--key prints the value as it is; leave out -o %s", o.output)
	}
	if o.output == "" && o.print.Template != "" {
		o.output = "go-template"
	}
	if o.sorter, err = output.ParseSorter(o.sortBy); err != nil {
		return usagef("--sort-by: %v", err)
	}
	if o.output == "" || o.output == "wide" {
		return nil
	}
	o.print.Colors = o.colors(o.Out)
	if o.printer, err = output.New(o.output, o.print); err != nil {
		return usagef("%v", err)
	}
	return nil
}

func (o *getOptions) run(ctx context.Context) error {
	conn, err := o.connect("get")
	if err != nil {
		return err
	}
	switch {
	case o.input.given():
		return o.inManifests(ctx, conn)
	case o.version != "":
		return o.asItWas(ctx, conn)
	case o.watch.on:
		return o.follow(ctx, conn)
	case o.key != "":
		return o.value(ctx, conn)
	case len(o.names) > 0:
		return o.named(ctx, conn, references(conn.namespace, o.names), nil)
	case o.tableWillDo():
		return o.rows(ctx, conn)
	}
	return o.list(ctx, conn)
}

// inManifests shows the objects that the manifests name.
func (o *getOptions) inManifests(ctx context.Context, conn *connection) error {
	refs, errs := o.input.references(ctx, o.factory, conn)
	switch {
	case !o.watch.on && o.key == "":
		return o.named(ctx, conn, refs, errs)
	case len(errs) > 0:
		return oneOrMany(errs)
	case o.key != "" && len(refs) != 1:
		return usagef("--key prints one value, but the manifests name %d objects", len(refs))
	}
	conn = conn.in(refs[0].namespace)
	for _, r := range refs {
		if r.namespace != conn.namespace {
			return usagef("--watch follows objects of one namespace, but the manifests name some in %q and %q", conn.namespace, r.namespace)
		}
		o.names = append(o.names, r.name)
	}
	if o.key != "" {
		return o.value(ctx, conn)
	}
	return o.follow(ctx, conn)
}

// value prints one value of one object, as it is stored.
func (o *getOptions) value(ctx context.Context, conn *connection) error {
	name := o.names[0]
	doc, err := conn.ConfigMaps(conn.namespace).Get(ctx, name)
	if err != nil {
		return conn.explain(conn.namespace, name, err)
	}
	return conn.explain(conn.namespace, name, o.printKey(doc))
}

func (o *getOptions) printKey(doc types.Document) error {
	raw, err := rawKey(doc, o.key)
	if err != nil {
		return err
	}
	_, err = o.Out.Write(raw)
	return err
}

// rawKey are the bytes of the value of one key.
func rawKey(doc types.Document, key string) ([]byte, error) {
	value := doc.Fields()[types.Field{Section: "data", Key: key}]
	if value == nil {
		return nil, noKey(doc, key)
	}
	raw, ok := types.RawValue(value)
	if !ok {
		return nil, fmt.Errorf("the value of %q is neither text nor base64", key)
	}
	return raw, nil
}

func noKey(doc types.Document, key string) error {
	there := "it has no keys at all"
	if keys := doc.DataKeys(); len(keys) > 0 {
		there = "its keys are " + strings.Join(keys, ", ")
	}
	return &output.MissingError{Message: fmt.Sprintf("there is no key %q; %s", key, there)}
}

// named reads the objects one by one and prints those that are there. faults are
// what is wrong with how they were named.
func (o *getOptions) named(ctx context.Context, conn *connection, refs []objectRef, faults []error) error {
	found, errs := readNamed(ctx, conn, refs)
	if o.ignoreNotFound {
		errs = slices.DeleteFunc(errs, apierrors.IsNotFound)
	}
	errs = append(faults, errs...)
	switch {
	case len(found) > 0:
		if err := output.Sort(o.sorter, found, itself); err != nil {
			return err
		}
		if err := o.show(output.Objects{Items: found, List: len(refs) > 1}); errors.As(err, new(*output.MissingError)) && len(refs) == 1 {
			return conn.explain(refs[0].namespace, refs[0].name, err)
		} else if err != nil {
			return err
		}
	case len(errs) == 0 && o.failEmpty:
		return o.nothing(conn)
	}
	return oneOrMany(errs)
}

// itself is the object that an object is sorted by.
func itself(d types.Document) types.Document { return d }

// list reads whole objects and prints them.
func (o *getOptions) list(ctx context.Context, conn *connection) error {
	list, err := conn.ConfigMaps(o.scope(conn)).List(ctx, o.selection.listOptions())
	if err != nil {
		return conn.explainList(o.scope(conn), err)
	}
	if len(list.Items) == 0 {
		if err := o.nothing(conn); err != nil || o.forPeople() {
			return err
		}
	}
	if err := output.Sort(o.sorter, list.Items, itself); err != nil {
		return err
	}
	return o.show(output.Objects{Items: list.Items, List: true})
}

// tableWillDo tells whether a list can be printed without the contents.
func (o *getOptions) tableWillDo() bool {
	return (o.output == "" || o.output == "name") && !o.sorter.NeedsContents()
}

// rows reads a list without the contents, and without the metadata too where
// these aren't shown, and prints it.
func (o *getOptions) rows(ctx context.Context, conn *connection) error {
	options := client.RowOptions{
		ListOptions: o.selection.listOptions(),
		Metadata:    o.showLabels || len(o.labelColumns) > 0 || len(o.sorter) > 0,
	}
	rows, err := conn.ConfigMaps(o.scope(conn)).Rows(ctx, options)
	if err != nil {
		return conn.explainList(o.scope(conn), err)
	}
	if len(rows) == 0 {
		return o.nothing(conn)
	}
	if err := output.Sort(o.sorter, rows, func(r client.Row) types.Document { return r.Object }); err != nil {
		return err
	}
	if o.output == "" {
		return o.table().print(o.Out, rows)
	}
	names := make([]types.Document, len(rows))
	for i, r := range rows {
		names[i] = types.NewDocument(r.Namespace, r.Name)
	}
	return o.printer.Print(o.Out, output.Objects{Items: names, List: true})
}

// show prints whole objects.
func (o *getOptions) show(objects output.Objects) error {
	// An expression that names them has asked for them.
	if !o.managedFields && (o.output == "yaml" || o.output == "json") {
		for _, d := range objects.Items {
			d.SetMeta("managedFields", nil)
		}
	}
	if o.printer != nil {
		return o.printer.Print(o.Out, objects)
	}
	rows := make([]client.Row, len(objects.Items))
	for i, d := range objects.Items {
		rows[i] = client.Row{Namespace: d.Namespace(), Name: d.Name(), Keys: strconv.Itoa(d.DataCount()), Object: d}
	}
	t := o.table()
	t.namespaces = t.namespaces || slices.ContainsFunc(rows, func(r client.Row) bool { return r.Namespace != rows[0].Namespace })
	return t.print(o.Out, rows)
}

func (o *getOptions) table() table {
	return table{
		namespaces: o.allNamespaces, wide: o.output == "wide", labelColumns: o.labelColumns, labels: o.showLabels,
		noHeaders: o.print.NoHeaders, colors: o.colors(o.Out), now: o.now(),
	}
}

// forPeople is true of the forms in which nothing is shown of an empty list.
func (o *getOptions) forPeople() bool {
	return o.output == "wide" || o.output == "" || o.output == "name" || strings.HasPrefix(o.output, "custom-columns")
}

// nothing says that there is nothing, which is an error only if that was asked
// for.
func (o *getOptions) nothing(conn *connection) error {
	message := "No ConfigMaps found."
	if !o.allNamespaces {
		message = fmt.Sprintf("No ConfigMaps found in namespace %q.", conn.namespace)
	}
	if o.failEmpty {
		return &output.MissingError{Message: message}
	}
	if o.forPeople() {
		o.note("%s", message)
	}
	return nil
}
