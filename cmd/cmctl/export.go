package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/fromfiles"
	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
)

type exportOptions struct {
	*factory
	selection
	names  []string
	all    bool
	output string
}

func newExport(f *factory) *cobra.Command {
	o := &exportOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "export NAME...",
		Short: "Print ConfigMaps as manifests to apply elsewhere, or as an env file",
		Long: `Print ConfigMaps without what only the server sets (uid, resourceVersion,
creationTimestamp, managedFields) and without the record of the last apply, as
manifests that can be applied to another namespace or server.

The namespace is left out too, unless -A is given. So are owners and finalizers:
elsewhere, an owner that doesn't exist gets the object deleted.

-o env prints the data of one ConfigMap as lines KEY=VALUE, which
'cmctl create --from-env-file' reads back byte for byte. These have no quotes, so
a value with line breaks, or a binary one, can't be said in them.`,
		Example: `  cmctl export flags > flags.yaml
  cmctl export flags | cmctl apply -n team-b -f -
  cmctl export --all -o json
  cmctl export -l tier=web -A
  cmctl export flags -o env > flags.env`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.names, err = parseNames(args); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.selection.add(cmd.Flags())
	addAll(cmd.Flags(), &o.all)
	cmd.Flags().StringVarP(&o.output, "output", "o", "yaml", "how to print: yaml, json or env")
	return cmd
}

func (o *exportOptions) check() error {
	if err := o.selection.check(o.names); err != nil {
		return err
	}
	selected := o.all || o.allNamespaces || o.selector != "" || o.fieldSelector != ""
	switch {
	case !slices.Contains([]string{"yaml", "json", "env"}, o.output):
		return usagef("-o %s is not known here; use one of yaml, json, env", o.output)
	case len(o.names) == 0 && !selected:
		return usagef("which ConfigMaps? Give a NAME, -l SELECTOR, --all or -A")
	case len(o.names) > 0 && o.all:
		return usagef("give either a NAME or --all, not both")
	case o.output == "env" && len(o.names) != 1:
		return usagef("an env file holds one ConfigMap: give one NAME with -o env")
	}
	return nil
}

func (o *exportOptions) run(ctx context.Context) error {
	conn, err := o.connect("export")
	if err != nil {
		return err
	}
	found, errs := o.selection.read(ctx, conn, o.names)
	if len(found) == 0 && len(errs) == 0 {
		o.note("No ConfigMaps found; nothing is exported.")
	}
	if len(found) > 0 {
		if err := o.write(found); err != nil {
			errs = append(errs, conn.explain(conn.namespace, found[0].Name(), err))
		}
	}
	return oneOrMany(errs)
}

// write prints all or nothing of what was found.
func (o *exportOptions) write(found []types.Document) error {
	if o.output == "env" {
		text, err := o.asEnv(found[0])
		if err != nil {
			return err
		}
		_, err = o.Out.Write(text)
		return err
	}
	for i, d := range found {
		found[i] = o.clean(d)
	}
	if o.output == "json" {
		return printObjects(o.Out, o.output, output.Objects{Items: found, List: len(found) > 1 || len(o.names) != 1})
	}
	var b bytes.Buffer
	for i, d := range found {
		if i > 0 {
			b.WriteString("---\n")
		}
		text, err := asYAML(d)
		if err != nil {
			return fmt.Errorf("%s: %w", d.Name(), err)
		}
		b.Write(text)
	}
	_, err := o.Out.Write(b.Bytes())
	return err
}

// clean leaves of an object what a person would have written.
func (o *exportOptions) clean(d types.Document) types.Document {
	d, _ = withoutRecord(d)
	d.DropServerFields()
	if !o.allNamespaces {
		d.SetMeta("namespace", nil)
	}
	for _, field := range untie(d) {
		o.note("configmap/%s: metadata.%s is left out: it is about the object itself", d.Name(), field)
	}
	return d
}

// asEnv is the data as lines KEY=VALUE, as --from-env-file takes them.
func (o *exportOptions) asEnv(d types.Document) ([]byte, error) {
	var b bytes.Buffer
	var errs []error
	fields := d.Fields()
	for _, key := range d.DataKeys() {
		value, err := envValue(fields[types.Field{Section: "data", Key: key}])
		if err != nil {
			errs = append(errs, fmt.Errorf("key %q %w; an env file can't say that: export it as yaml, or alone with 'cmctl get %s --key %s'", key, err, d.Name(), key))
			continue
		}
		if !variableName.MatchString(key) {
			o.note("key %q can't be the name of an environment variable; shells and kubectl may refuse the line", key)
		}
		fmt.Fprintf(&b, "%s=%s\n", key, value)
	}
	return b.Bytes(), oneOrMany(errs)
}

// envValue is a value that is read back as it is from a line of an env file.
func envValue(v any) (string, error) {
	text, ok := v.(string)
	switch {
	case !ok:
		return "", errors.New("is binary")
	case strings.Contains(text, "\n"):
		return "", errors.New("has several lines")
	case strings.HasSuffix(text, "\r"):
		return "", errors.New("ends in a carriage return, which would be taken for a part of the line's end")
	case fromfiles.Unclosed(text):
		return "", errors.New("begins with a quote that has no second one, which is refused as the beginning of several lines")
	}
	return text, nil
}
