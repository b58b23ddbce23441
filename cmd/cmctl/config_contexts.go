package main

import (
	"fmt"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/cmd/internal/settings"
	"example.com/cmctl/pkg/client"
	"github.com/spf13/cobra"
)

// oneContext takes a command's one operand.
func oneContext(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return usagef("%s takes one NAME", cmd.Name())
	}
	return nil
}

type getContextsOptions struct {
	*factory
	output string
}

func newGetContexts(f *factory) *cobra.Command {
	o := &getContextsOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "get-contexts",
		Short: "List cmctl's own contexts and those of the kubeconfig",
		Long: `List cmctl's own contexts and those of the kubeconfig.

The current one, marked with *, is where a command goes that names no server. If
CMCTL_SERVER names one, that overrides it, and it is said.
Those of the kubeconfig are used only where --context names them.`,
		Example: `  cmctl config get-contexts
  cmctl config get-contexts -o name`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := checkOutput(o.output, "name", "yaml", "json"); err != nil {
				return err
			}
			return o.run()
		},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "how to print: name, yaml or json (default a table)")
	return cmd
}

// contextInfo is what a person may see of a context.
type contextInfo struct {
	Name      string `json:"name"`
	Server    string `json:"server"`
	Namespace string `json:"namespace,omitempty"`
	From      string `json:"from"`
	Current   bool   `json:"current"`
}

func (o *getContextsOptions) run() error {
	if err := o.load(); err != nil {
		return err
	}
	all, err := o.contexts()
	if err != nil {
		return err
	}
	meant, err := o.target()
	switch {
	case err != nil:
		o.note("warning: %v", err)
	case o.overridden(meant):
		meant.context, meant.own = o.file.Current, true
	case meant.context == "":
		o.note("No context is current: commands go to %s.", meant)
	}
	for i, c := range all {
		all[i].Current = err == nil && c.Name == meant.context && (c.From == o.path) == meant.own
	}
	return o.print(all)
}

// overridden tells whether the settings file has a current context, and a server
// that is named without one comes before it. It says so.
func (f *factory) overridden(meant *destination) bool {
	if f.plugin() || f.file.Current == "" || meant.context != "" {
		return false
	}
	for _, name := range []string{"server", "in-cluster"} {
		switch f.source(name) {
		case onCommandLine:
			f.note("note: --%s is given, and overrides the current context %q: commands go to %s", name, f.file.Current, meant)
			return true
		case inVariable:
			f.note("note: %s is set, and overrides the current context %q: commands go to %s", variable(name), f.file.Current, meant)
			return true
		}
	}
	return false
}

// contexts are all that --context can name.
func (f *factory) contexts() ([]contextInfo, error) {
	var all []contextInfo
	kubeconfig := ""
	if !f.plugin() {
		kubeconfig = f.settings.GetString("kubeconfig")
		for _, c := range f.file.Contexts {
			all = append(all, contextInfo{Name: c.Name, Server: serverOf(c), Namespace: c.Namespace, From: f.path})
		}
	}
	ofKube, err := client.KubeContexts(kubeconfig)
	if err != nil {
		return nil, &targetError{err}
	}
	for _, c := range ofKube {
		all = append(all, contextInfo{Name: c.Name, Server: c.Server, Namespace: c.Namespace, From: c.File})
	}
	return all, nil
}

// serverOf says where a context leads.
func serverOf(c settings.Context) string {
	switch {
	case c.InCluster:
		return "(in-cluster)"
	case c.KubeContext != "":
		return fmt.Sprintf("(context %q of %s)", c.KubeContext, c.Kubeconfig)
	case c.Kubeconfig != "":
		return fmt.Sprintf("(current context of %s)", c.Kubeconfig)
	}
	return string(c.Server)
}

func (o *getContextsOptions) print(all []contextInfo) error {
	switch o.output {
	case "name":
		for _, c := range all {
			if err := o.say("%s", c.Name); err != nil {
				return err
			}
		}
		return nil
	case "json", "yaml":
		return printValue(o.Out, o.output, all)
	}
	laid := output.Table{Header: []string{"CURRENT", "NAME", "SERVER", "NAMESPACE", "FROM"}, Colors: o.colors(o.Out)}
	for _, c := range all {
		mark := ""
		if c.Current {
			mark = "*"
		}
		laid.Rows = append(laid.Rows, []string{mark, c.Name, c.Server, c.Namespace, c.From})
	}
	return laid.Print(o.Out)
}

func newCurrentContext(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:     "current-context",
		Short:   "Show the name of the current context",
		Example: `  cmctl config current-context`,
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := f.load(); err != nil {
				return err
			}
			d, err := f.target()
			if err != nil {
				return err
			}
			if f.overridden(d) {
				return f.say("%s", f.file.Current)
			}
			if d.context == "" {
				return fmt.Errorf("no context is current: commands go to %s; 'cmctl config use-context' chooses one", d)
			}
			return f.say("%s", d.context)
		},
	}
}

func newUseContext(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:   "use-context NAME",
		Short: "Choose the context that commands go to",
		Long: `Choose the context that commands go to if they name no server.

It is one of cmctl's own. One of a kubeconfig becomes that with set-context:
so no cluster is written to just because kubectl was last used on it.`,
		Example: `  cmctl config use-context lab
  cmctl config set-context prod --kubeconfig=$HOME/.kube/config --context=prod-eu
  cmctl config use-context prod`,
		Args:              oneContext,
		ValidArgsFunction: f.completeOwnContexts,
		RunE:              func(_ *cobra.Command, args []string) error { return f.useContext(args[0]) },
	}
}

func (f *factory) useContext(name string) error {
	err := f.editSettings(func(d *settings.Document) error {
		file, err := d.File()
		if err != nil {
			return err
		}
		if _, ok := file.Context(name); !ok {
			return f.notOwn(name)
		}
		for _, other := range []string{"server", "kubeconfig", "in-cluster"} {
			if _, ok := file.Plain[other]; ok {
				return usagef("the settings file names a server already, with %s; take it out first with 'cmctl config unset %s'", other, other)
			}
		}
		return d.Set(settings.CurrentContext, name)
	})
	if err != nil {
		return err
	}
	for _, first := range []string{"server", "kubeconfig", "in-cluster", "context"} {
		if f.source(first) == inVariable {
			f.note("note: %s is set, and comes before the current context", variable(first))
		}
	}
	return f.say("commands now go to context %q", name)
}

// notOwn says that a context is not one of cmctl's, and what to do.
func (f *factory) notOwn(name string) error {
	ofKube, err := client.KubeContexts(f.settings.GetString("kubeconfig"))
	if err == nil {
		for _, c := range ofKube {
			if c.Name == name {
				return usagef("%q is a context of a kubeconfig; to make one of cmctl's from it: cmctl config set-context NEW-NAME%s%s",
					name, flagText("kubeconfig", c.File), flagText("context", name))
			}
		}
	}
	return usagef("there is no context %q; 'cmctl config get-contexts' lists those there are, 'cmctl config set-context %s' makes it", name, name)
}

func newRenameContext(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:     "rename-context NAME NEW-NAME",
		Short:   "Give one of cmctl's contexts another name",
		Example: `  cmctl config rename-context lab lab-1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("rename-context takes a NAME and the NEW-NAME")
			}
			return nil
		},
		ValidArgsFunction: f.completeOwnContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			err := f.editSettings(func(d *settings.Document) error {
				there, err := d.RenameContext(args[0], args[1])
				if !there {
					return f.notOwn(args[0])
				}
				return err
			})
			if err != nil {
				return err
			}
			return f.say("context %q is now %q", args[0], args[1])
		},
	}
}

func newDeleteContext(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:   "delete-context NAME",
		Short: "Take one of cmctl's contexts out of the settings file",
		Long: `Take one of cmctl's contexts out of the settings file.

If it is the current one, commands that name no server fail until another one is
chosen: they don't go elsewhere by themselves.`,
		Example:           `  cmctl config delete-context lab`,
		Args:              oneContext,
		ValidArgsFunction: f.completeOwnContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			current := false
			err := f.editSettings(func(d *settings.Document) error {
				file, err := d.File()
				if err != nil {
					return err
				}
				if current = file.Current == args[0]; !d.DeleteContext(args[0]) {
					return f.notOwn(args[0])
				}
				return nil
			})
			if err != nil {
				return err
			}
			if current {
				f.note("note: it was the current context; choose another one with 'cmctl config use-context', or none with 'cmctl config unset %s'", settings.CurrentContext)
			}
			return f.say("context %q deleted", args[0])
		},
	}
}
