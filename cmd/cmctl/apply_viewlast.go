package main

import (
	"context"
	"fmt"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
)

type viewLastOptions struct {
	*factory
	selectors
	names  []string
	input  inputFlags
	all    bool
	output string
}

func newViewLastApplied(f *factory) *cobra.Command {
	o := &viewLastOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "view-last-applied {NAME... | -f FILE... | -l SELECTOR | --all}",
		Short: "Show what was last applied to ConfigMaps, as it is recorded",
		Long: `Show what was last applied to ConfigMaps: the manifest in the annotation that
cmctl and kubectl record it in. That is what the next apply compares the file and the
live object with. Nothing is written.

An object without a record is exit code 4. So is one of which there are digests alone,
for it is too large for a record, or was applied with --server-side.`,
		Example: `  cmctl apply view-last-applied flags
  cmctl apply view-last-applied -f cm.yaml -o json
  cmctl apply view-last-applied flags | cmctl diff -f -`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if args, err = o.input.take(args); err != nil {
				return err
			}
			if o.names, err = parseNames(args); err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.input.add(cmd.Flags())
	o.selectors.add(cmd.Flags())
	addAll(cmd.Flags(), &o.all)
	cmd.Flags().StringVarP(&o.output, "output", "o", "yaml", "how to print: yaml or json")
	return cmd
}

func (o *viewLastOptions) validate() error {
	ways := 0
	for _, given := range []bool{len(o.names) > 0, o.input.given(), o.selectors.given(), o.all} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return usagef("view-last-applied takes NAMEs, or -f, or -l and --field-selector, or --all")
	}
	if err := o.selectors.check(); err != nil {
		return err
	}
	if o.output == "" {
		return usagef("-o takes yaml or json")
	}
	return checkOutput(o.output, "yaml", "json")
}

func (o *viewLastOptions) run(ctx context.Context) error {
	conn, err := o.connect("apply") // whose records it looks for
	if err != nil {
		return err
	}
	found, errs := o.find(ctx, conn)
	var records []types.Document
	for _, d := range found {
		record, err := recorded(d, conn.manager)
		if err != nil {
			errs = append(errs, conn.explain(d.Namespace(), d.Name(), err))
			continue
		}
		records = append(records, record)
	}
	list := len(found) > 1 || o.all || o.selectors.given()
	if len(records) > 0 {
		if err := printObjects(o.Out, o.output, output.Objects{Items: records, List: list}); err != nil {
			errs = append(errs, err)
		}
	}
	return oneOrMany(errs)
}

// find reads the objects that the command line means.
func (o *viewLastOptions) find(ctx context.Context, conn *connection) (found []types.Document, errs []error) {
	refs := references(conn.namespace, o.names)
	switch {
	case o.input.given():
		refs, errs = o.input.references(ctx, o.factory, conn)
	case len(o.names) == 0:
		found, err := o.matching(ctx, conn, o.selectors)
		if err != nil {
			return nil, []error{err}
		}
		return found, nil
	}
	found, failed := readNamed(ctx, conn, refs)
	return found, append(errs, failed...)
}

// recorded is the manifest that was last applied to an object.
func recorded(live types.Document, manager string) (types.Document, error) {
	text, whole := live.Annotation(types.LastApplied)
	switch {
	case whole:
		record, err := types.ParseDocument([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("the record of what was last applied (annotation %s) can't be read: %w", types.LastApplied, err)
		}
		return record, nil
	case hasRecord(live, manager):
		return nil, &output.MissingError{Message: "of what was last applied digests alone are recorded, by which changes are found and nothing can be shown: it is too large, or was applied with --server-side"}
	}
	return nil, &output.MissingError{Message: "nothing is recorded as last applied: nobody has applied it, or somebody removed the record"}
}
