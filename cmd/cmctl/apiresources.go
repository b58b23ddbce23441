package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/client"
	"github.com/spf13/cobra"
)

type apiResourcesOptions struct {
	*factory
	output     string
	group      string
	groupGiven bool
	verbs      []string
	namespaced bool
	which      bool // --namespaced was given
	noHeaders  bool
}

func newAPIResources(f *factory) *cobra.Command {
	o := &apiResourcesOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "api-resources",
		Short: "List the kinds of objects that the server has",
		Long: `List the kinds of objects that the server has. cmctl itself reads and writes
configmaps alone.`,
		Example: `  cmctl api-resources
  cmctl api-resources -o wide
  cmctl api-resources --api-group=apps --verbs=list,watch -o name`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(o.output, "name", "wide"); err != nil {
				return err
			}
			o.groupGiven, o.which = cmd.Flags().Changed("api-group"), cmd.Flags().Changed("namespaced")
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "how to print: name or wide (default a table)")
	cmd.Flags().StringVar(&o.group, "api-group", "", "only those of this `group`; that of configmaps has the empty name")
	cmd.Flags().StringSliceVar(&o.verbs, "verbs", nil, "only those that have all these `verbs`")
	cmd.Flags().BoolVar(&o.namespaced, "namespaced", false, "only those that are in namespaces, or with =false those that aren't (default both)")
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "print no header line")
	return cmd
}

func (o *apiResourcesOptions) run(ctx context.Context) error {
	conn, err := o.connect("api-resources")
	if err != nil {
		return err
	}
	all, err := conn.Resources(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(r client.Resource) bool { return !o.wants(r) })
	if len(all) == 0 && o.output != "name" {
		o.note("%s has no such resources.", conn.Target())
		return nil
	}
	return o.print(all)
}

func (o *apiResourcesOptions) wants(r client.Resource) bool {
	if o.groupGiven && r.Group() != o.group || o.which && r.Namespaced != o.namespaced {
		return false
	}
	return !slices.ContainsFunc(o.verbs, func(v string) bool { return !slices.Contains(r.Verbs, v) })
}

func (o *apiResourcesOptions) print(all []client.Resource) error {
	if o.output == "name" {
		for _, r := range all {
			name := r.Name
			if r.Group() != "" {
				name += "." + r.Group()
			}
			if err := o.say("%s", name); err != nil {
				return err
			}
		}
		return nil
	}
	row := func(wide string, columns ...string) []string {
		if o.output == "wide" {
			columns = append(columns, wide)
		}
		return columns
	}
	laid := output.Table{
		Header:    row("VERBS", "NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"),
		NoHeaders: o.noHeaders, Colors: o.colors(o.Out),
	}
	for _, r := range all {
		laid.Rows = append(laid.Rows, row(strings.Join(r.Verbs, ","), r.Name, strings.Join(r.ShortNames, ","), r.APIVersion, strconv.FormatBool(r.Namespaced), r.Kind))
	}
	return laid.Print(o.Out)
}
