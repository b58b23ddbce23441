package main

import (
	"context"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/retry"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

type deleteOptions struct {
	*factory
	names          []string
	files          []string
	ignoreNotFound bool
	output         string
}

func newDelete(f *factory) *cobra.Command {
	o := &deleteOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "delete {NAME... | -f FILE}",
		Short: "Delete ConfigMaps",
		Long: `Delete ConfigMaps by name, or those that manifests name.

The object is read first, and only the one that was read is deleted: another of
the same name, made meanwhile, stays.`,
		Example: `  cmctl delete flags
  cmctl delete flags limits -n team-a
  cmctl delete -f cm.yaml --ignore-not-found`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.names, err = parseNames(args); err != nil {
				return err
			}
			if len(o.names) == 0 && len(o.files) == 0 {
				return usagef("delete takes the NAMEs to delete, or -f FILE")
			}
			if len(o.names) > 0 && len(o.files) > 0 {
				return usagef("give either NAMEs or -f, not both")
			}
			if err := checkOutput(o.output, "name"); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "`FILE` or folder with manifests, - for stdin; may be repeated")
	cmd.Flags().BoolVar(&o.ignoreNotFound, "ignore-not-found", false, "what isn't there counts as deleted")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "print name alone: name")
	return cmd
}

func (o *deleteOptions) run(ctx context.Context) error {
	conn, err := o.connect("delete")
	if err != nil {
		return err
	}
	var errs []error
	for i, name := range o.names {
		if err := untried(ctx, len(o.names)-i); err != nil {
			return oneOrMany(append(errs, err))
		}
		errs = o.collect(errs, o.delete(ctx, conn, conn.namespace, name))
	}
	if len(o.files) > 0 {
		manifests, faults := manifest.Read(o.files, o.In)
		errs = append(errs, faults...)
		manifests, misplaced := conn.placeAll(manifests)
		errs = append(errs, misplaced...)
		for i, m := range manifests {
			if err := untried(ctx, len(manifests)-i); err != nil {
				return oneOrMany(append(errs, err))
			}
			errs = o.collect(errs, o.delete(ctx, conn, m.Namespace(), m.Name()))
		}
	}
	return oneOrMany(errs)
}

func (o *deleteOptions) collect(errs []error, err error) []error {
	if err == nil {
		return errs
	}
	return append(errs, err)
}

func (o *deleteOptions) delete(ctx context.Context, conn *connection, namespace, name string) error {
	object := conn.ConfigMaps(namespace).Object(name)
	_, err := retry.Delete(ctx, object, retry.Version{}, o.retryOptions(o.progress(object)))
	if o.ignoreNotFound && apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return conn.explain(namespace, name, err)
	}
	if o.output == "name" {
		return o.say("configmap/%s", name)
	}
	return o.say("configmap %q deleted from namespace %q", name, namespace)
}
