package main

import (
	"context"
	"errors"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/cmd/cmctl/internal/schema"
	"github.com/spf13/cobra"
)

type explainOptions struct {
	*factory
	path      []string
	recursive bool
}

func newExplain(f *factory) *cobra.Command {
	o := &explainOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "explain [configmap.FIELD]",
		Short: "Explain the fields of ConfigMaps, as the server's own schema does",
		Example: `  cmctl explain
  cmctl explain configmap.immutable
  cmctl explain cm.metadata --recursive`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("explain takes one field, as configmap.metadata.labels")
			}
			if len(args) == 1 {
				o.path = fieldPath(args[0])
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.recursive, "recursive", false, "list the fields inside fields too")
	return cmd
}

// fieldPath is configmap.metadata.labels taken apart; the first word may be
// left out.
func fieldPath(text string) []string {
	path := strings.Split(strings.Trim(text, "."), ".")
	if isConfigMapWord(path[0]) {
		path = path[1:]
	}
	return path
}

func (o *explainOptions) run(ctx context.Context) error {
	conn, err := o.connect("explain")
	if err != nil {
		return err
	}
	document, err := conn.OpenAPI(ctx)
	if err != nil {
		return err
	}
	root, err := schema.ConfigMap(document)
	if err != nil {
		return err
	}
	field, err := root.At(o.path...)
	if unknown := (*schema.UnknownFieldError)(nil); errors.As(err, &unknown) {
		return &output.MissingError{Message: unknown.Error()}
	}
	if err != nil {
		return err
	}
	return field.Write(o.Out, o.recursive)
}
