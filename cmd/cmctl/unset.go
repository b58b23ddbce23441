package main

import (
	"context"

	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
)

type unsetOptions struct {
	*factory
	writeFlags
	name       string
	keys       []string
	conditions []string
}

func newUnset(f *factory) *cobra.Command {
	o := &unsetOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "unset NAME KEY...",
		Short: "Remove keys of a ConfigMap; all others stay as they are",
		Long: `Remove keys of a ConfigMap, of data or binaryData. A key that is not there is no
error: what was asked for is so already.`,
		Example: `  cmctl unset flags rollout
  cmctl unset lock holder --if=holder=$HOSTNAME`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.operands(args); err != nil {
				return err
			}
			if err := o.validate(cmd.Flags()); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	addConditions(cmd.Flags(), &o.conditions)
	addHelmForce(cmd.Flags(), &o.helm)
	o.add(cmd.Flags())
	return cmd
}

// operands takes one name, which may be written `cm NAME`, and the keys.
func (o *unsetOptions) operands(args []string) error {
	if len(args) > 0 && isConfigMapWord(args[0]) {
		args = args[1:]
	}
	if len(args) < 2 {
		return usagef("unset takes one NAME, and then the KEYs to remove")
	}
	names, err := parseNames(args[:1])
	if err != nil {
		return err
	}
	for _, key := range args[1:] {
		if err := checkKey(key); err != nil {
			return err
		}
	}
	o.name, o.keys = names[0], args[1:]
	return nil
}

func (o *unsetOptions) run(ctx context.Context) error {
	conditions, err := parseConditions(o.conditions)
	if err != nil {
		return err
	}
	w, err := o.writer("unset", o.writeFlags)
	if err != nil {
		return err
	}
	gone := map[types.Field]any{}
	for _, key := range o.keys {
		gone[types.Field{Section: "data", Key: key}] = nil
	}
	return w.one(ctx, "unset", change{
		name: o.name,
		edit: func(ctx context.Context, fresh types.Document) (types.Document, error) {
			if err := w.holds(ctx, fresh, conditions); err != nil {
				return nil, err
			}
			return withFields(fresh, gone)
		},
		word:     func(_, _ types.Document) string { return "unset" },
		computed: len(conditions) > 0,
	})
}
