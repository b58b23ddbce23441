package main

import (
	"context"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
)

type getOptions struct {
	*factory
	names         []string
	allNamespaces bool
	output        string
	managedFields bool
	selector      string
}

func newGet(f *factory) *cobra.Command {
	o := &getOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "get [NAME...]",
		Short: "Show one ConfigMap, several, or all of a namespace",
		Example: `  cmctl get                  # all in the namespace
  cmctl get -A               # in all namespaces
  cmctl get -l tier=web      # those with that label
  cmctl get flags -o yaml
  cmctl get flags limits -o json`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.names, err = parseNames(args); err != nil {
				return err
			}
			if o.allNamespaces && len(o.names) > 0 {
				return usagef("a name can't be read from all namespaces at once; give -n NAMESPACE instead of -A")
			}
			if _, err := labels.Parse(o.selector); err != nil {
				return usagef("-l %q is no label selector: %v", o.selector, err)
			}
			if o.selector != "" && len(o.names) > 0 {
				return usagef("give either a NAME or -l, not both")
			}
			if err := checkOutput(o.output, outputs...); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "list all namespaces")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "how to print: yaml, json, name or wide (default a table)")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "only those whose labels match: tier=web,!old")
	cmd.Flags().BoolVar(&o.managedFields, "show-managed-fields", false, "show metadata.managedFields too")
	return cmd
}

func (o *getOptions) run(ctx context.Context) error {
	conn, err := o.connect("get")
	if err != nil {
		return err
	}
	if len(o.names) == 0 {
		return o.list(ctx, conn)
	}
	var found []types.Document
	var errs []error
	for i, name := range o.names {
		if err := untried(ctx, len(o.names)-i); err != nil {
			errs = append(errs, err)
			break
		}
		doc, err := conn.ConfigMaps(conn.namespace).Get(ctx, name)
		if err != nil {
			errs = append(errs, conn.explain(conn.namespace, name, err))
			continue
		}
		found = append(found, doc)
	}
	if len(found) > 0 {
		if err := o.print(found, len(o.names) > 1); err != nil {
			return err
		}
	}
	return oneOrMany(errs)
}

func (o *getOptions) list(ctx context.Context, conn *connection) error {
	namespace := conn.namespace
	if o.allNamespaces {
		namespace = ""
	}
	list, err := conn.ConfigMaps(namespace).List(ctx, client.ListOptions{LabelSelector: o.selector})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 && (o.output == "" || o.output == "wide") {
		if o.allNamespaces {
			o.note("No ConfigMaps found.")
		} else {
			o.note("No ConfigMaps found in namespace %q.", namespace)
		}
		return nil
	}
	return o.print(list.Items, true)
}

func (o *getOptions) print(items []types.Document, several bool) error {
	if !o.managedFields {
		for _, d := range items {
			d.SetMeta("managedFields", nil)
		}
	}
	switch o.output {
	case "", "wide":
		return table{namespaces: o.allNamespaces, wide: o.output == "wide", now: o.now()}.print(o.Out, items)
	case "name":
		for _, d := range items {
			if err := printDocument(o.Out, "name", d); err != nil {
				return err
			}
		}
		return nil
	}
	if several {
		return printDocument(o.Out, o.output, asList(items))
	}
	return printDocument(o.Out, o.output, items[0])
}
