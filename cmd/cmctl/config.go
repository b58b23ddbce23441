package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"example.com/cmctl/cmd/internal/settings"
	"example.com/cmctl/pkg/client"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

func newConfig(f *factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and change the settings file, with the contexts in it",
		Long: `Show and change cmctl's settings file.

It holds plain settings, which the flags and CMCTL_... variables of the same
names override, and contexts: servers by name, each with a namespace and
credentials of its own. It is not a kubeconfig, and kubeconfigs are never
changed.

Changes keep the comments in the file. Two that are made at the same time are
both kept. Only you may read the file afterwards.`,
		Example: `  cmctl config set-context lab --server=http://127.0.0.1:8080 --namespace=team-a
  cmctl config use-context lab
  cmctl config get-contexts
  cmctl config set max-attempts 20
  cmctl config view`,
		SuggestionsMinimumDistance: 2,
		Args:                       unknownSubcommand,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		// A file that can't be read is what some of these commands are there to
		// repair.
		PersistentPreRunE: func(*cobra.Command, []string) error { return f.bind() },
	}
	cmd.AddCommand(newConfigView(f), newConfigSet(f), newConfigUnset(f), newGetContexts(f), newCurrentContext(f),
		newUseContext(f), newSetContext(f), newRenameContext(f), newDeleteContext(f))
	return cmd
}

// unknownSubcommand refuses what is no command below cmd.
func unknownSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef("%s (see '%s --help')", message, cmd.CommandPath())
}

// editSettings changes the settings file.
func (f *factory) editSettings(edit func(*settings.Document) error) error {
	if f.path == "" {
		return usagef("there is no folder for a settings file; name one with --config")
	}
	if err := settings.Edit(f.path, edit); err != nil {
		if errors.As(err, new(*usageError)) {
			return err
		}
		return fmt.Errorf("settings file %s: %w", f.path, err)
	}
	return nil
}

type configViewOptions struct {
	*factory
	raw    bool
	output string
}

func newConfigView(f *factory) *cobra.Command {
	o := &configViewOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "view",
		Short: "Show the settings file, without tokens",
		Example: `  cmctl config view
  cmctl config view --raw -o json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := checkOutput(o.output, "yaml", "json"); err != nil {
				return err
			}
			return o.run()
		},
	}
	cmd.Flags().BoolVar(&o.raw, "raw", false, "show tokens too")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "how to print: yaml or json (default yaml)")
	return cmd
}

func (o *configViewOptions) run() error {
	text, err := os.ReadFile(o.path)
	if errors.Is(err, os.ErrNotExist) || o.path == "" {
		o.note("There is no settings file at %s.", o.path)
		text, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("settings file: %w", err)
	}
	doc, err := settings.Parse(text, filepath.Dir(o.path))
	if err == nil && !o.raw {
		err = doc.Mask("(masked; see --raw)")
	}
	if err == nil {
		text, err = doc.Text()
	}
	if err != nil {
		return usagef("settings file %s: %v", o.path, err)
	}
	if o.output == "json" {
		content := map[string]any{}
		if err := yaml.Unmarshal(text, &content); err != nil {
			return err
		}
		return printValue(o.Out, o.output, content)
	}
	_, err = o.Out.Write(text)
	return err
}

func newConfigSet(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:   "set SETTING VALUE",
		Short: "Write a setting into the settings file",
		Long: `Write a setting into the settings file. The settings are:

  ` + strings.Join(settingNames, "\n  ") + `

Each has the meaning of the flag of its name. A file is named as the command line
names it, and stored with its full path.`,
		Example: `  cmctl config set namespace team-a
  cmctl config set max-attempts 20
  cmctl config set editor "code --wait"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("config set takes a SETTING and its VALUE")
			}
			return nil
		},
		ValidArgsFunction: completeFirst(settingNames),
		RunE:              func(_ *cobra.Command, args []string) error { return f.configSet(args[0], args[1]) },
	}
}

func (f *factory) configSet(name, text string) error {
	value, err := settingValue(name, text)
	if err != nil {
		return err
	}
	err = f.editSettings(func(d *settings.Document) error {
		file, err := d.File()
		if err != nil {
			return err
		}
		if slices.Contains([]string{"server", "kubeconfig", "in-cluster"}, name) && file.Current != "" {
			return usagef("%s names the server already, by the context %q; take it out first with 'cmctl config unset %s', or change that context with 'cmctl config set-context'",
				settings.CurrentContext, file.Current, settings.CurrentContext)
		}
		return d.Set(name, value)
	})
	if err != nil {
		return err
	}
	return f.say("setting %q set", name)
}

// settingValue is a setting's text as the file holds it.
func settingValue(name, text string) (any, error) {
	switch {
	case name == settings.CurrentContext || name == "context":
		return nil, usagef("the context is chosen with 'cmctl config use-context %s'", text)
	case !slices.Contains(settingNames, name):
		return nil, usagef("unknown setting %q; known are %s", name, strings.Join(settingNames, ", "))
	case text == "":
		return nil, usagef("the VALUE is empty; 'cmctl config unset %s' takes the setting out", name)
	}
	if err := checkSetting(name, text); err != nil {
		return nil, err
	}
	switch {
	case name == "max-attempts":
		n, err := strconv.Atoi(text)
		return n, err
	case name == "in-cluster", name == "insecure-skip-tls-verify":
		yes, err := strconv.ParseBool(text)
		return yes, err
	case name == "server":
		if _, err := client.ResolveTarget(client.TargetOptions{Server: text}); err != nil {
			return nil, usagef("%v", err)
		}
	case settings.IsPath(name):
		return filepath.Abs(text)
	}
	return text, nil
}

func newConfigUnset(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:   "unset SETTING",
		Short: "Take a setting out of the settings file",
		Example: `  cmctl config unset namespace
  cmctl config unset current-context`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("config unset takes one SETTING")
			}
			if args[0] == "contexts" {
				return usagef("contexts are taken out by name: 'cmctl config delete-context NAME'")
			}
			return nil
		},
		ValidArgsFunction: completeFirst(append(slices.Clone(settingNames), settings.CurrentContext)),
		RunE: func(_ *cobra.Command, args []string) error {
			was := false
			err := f.editSettings(func(d *settings.Document) error { was = d.Unset(args[0]); return nil })
			switch {
			case err != nil:
				return err
			case !was:
				f.note("The setting %q was not in %s.", args[0], f.path)
				return nil
			}
			return f.say("setting %q unset", args[0])
		},
	}
}

// completeFirst offers these words for the first operand.
func completeFirst(words []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}
