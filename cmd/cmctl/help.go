package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpGroups are the headings under which root's help lists the commands.
var helpGroups = []struct {
	id, title string
	commands  []string
}{
	{"read", "Read:", []string{"get", "describe", "diff", "export", "blame", "history", "wait"}},
	{"write", "Write:", []string{"create", "edit", "apply", "replace", "patch", "label", "annotate", "delete", "copy", "undo"}},
	{"script", "For scripts and programs:", []string{"set", "unset", "update", "exec", "sync"}},
	{"server", "About the server:", []string{"version", "auth", "api-resources", "explain"}},
	{"settings", "Settings and help:", []string{"config", "completion", "options", "help"}},
}

// shapeHelp sorts the commands into groups, and leaves out of each command's
// help the flags that all of them have.
func shapeHelp(root *cobra.Command, f *factory) {
	root.InitDefaultHelpCmd()
	for _, g := range helpGroups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, cmd := range root.Commands() {
			if slices.Contains(g.commands, cmd.Name()) {
				cmd.GroupID = g.id
			}
		}
	}
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), f.inItsWords(usage(cmd)))
		return err
	})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		text := strings.TrimSpace(cmd.Long)
		if text == "" {
			text = cmd.Short
		}
		_, f.helpFailed = io.WriteString(cmd.OutOrStdout(), f.inItsWords(text+"\n\n"+usage(cmd)))
	})
}

// inItsWords has the examples speak of the program by the name it was called by.
func (f *factory) inItsWords(text string) string {
	if !f.plugin() {
		return text
	}
	return strings.NewReplacer("  cmctl ", "  kubectl cm ", "'cmctl ", "'kubectl cm ", `"cmctl `, `"kubectl cm `, "(cmctl ", "(kubectl cm ").Replace(text)
}

// usage is how to call a command.
func usage(cmd *cobra.Command) string {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if takesOperands(cmd) {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n", cmd.CommandPath())
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	for _, g := range cmd.Groups() {
		writeCommands(&b, g.Title, cmd, g.ID)
	}
	writeCommands(&b, "Commands:", cmd, "")
	if flags := cmd.LocalNonPersistentFlags(); flags.HasAvailableFlags() {
		fmt.Fprintf(&b, "\nFlags:\n%s", flags.FlagUsages())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n'%s COMMAND --help' tells more about a command.", cmd.CommandPath())
	}
	fmt.Fprintf(&b, "\n'%s options' lists the flags that every command takes.\n", cmd.Root().CommandPath())
	return b.String()
}

// takesOperands is false of the commands that only hold others.
func takesOperands(cmd *cobra.Command) bool {
	return cmd.Runnable() && (!cmd.HasSubCommands() || strings.Contains(cmd.Use, " "))
}

// writeCommands lists the commands of a group, if there are any.
func writeCommands(b *strings.Builder, title string, cmd *cobra.Command, group string) {
	width := 0
	for _, sub := range cmd.Commands() {
		width = max(width, len(sub.Name()))
	}
	for _, sub := range cmd.Commands() {
		if sub.GroupID != group || !sub.IsAvailableCommand() && sub.Name() != "help" {
			continue
		}
		if title != "" {
			fmt.Fprintf(b, "\n%s\n", title)
			title = ""
		}
		fmt.Fprintf(b, "  %-*s   %s\n", width, sub.Name(), sub.Short)
	}
}

func newOptions(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:     "options",
		Short:   "List the flags that every command takes",
		Long:    "List the flags that every command takes.\n\nMost of them may also stand in CMCTL_... variables and in the settings file: see 'cmctl config set --help'.",
		Example: "  cmctl options",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(f.Out, "Every command takes these flags:\n\n%s", f.flags.FlagUsages())
			return err
		},
	}
}

// spellVerbosity turns -v 6, -v6 and --v 6, as kubectl's users write them, into
// -v=6. A number after -v is its level, and not a name.
func spellVerbosity(root *cobra.Command, args []string) []string {
	spelled := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(spelled, args[i:]...)
		}
		level, glued := strings.CutPrefix(arg, "-v")
		glued = glued && isLevel(level)
		apart := (arg == "-v" || arg == "--v" || arg == "--verbose") && i+1 < len(args) && isLevel(args[i+1])
		if (glued || apart) && !(i > 0 && takesNext(root, args, args[i-1])) {
			if apart {
				i++
				level = args[i]
			}
			arg = "-v=" + level
		}
		spelled = append(spelled, arg)
	}
	return spelled
}

func isLevel(s string) bool {
	return s != "" && len(s) <= 2 && strings.Trim(s, "0123456789") == ""
}

// takesNext tells whether an argument is a flag whose value is the next one.
func takesNext(root *cobra.Command, args []string, arg string) bool {
	if len(arg) < 2 || arg[0] != '-' || strings.Contains(arg, "=") {
		return false
	}
	cmd, _, err := root.Find(args)
	if err != nil {
		return false
	}
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), root.PersistentFlags()} {
		flag := flags.Lookup(strings.TrimPrefix(arg, "--"))
		if !strings.HasPrefix(arg, "--") {
			flag = flags.ShorthandLookup(arg[len(arg)-1:])
		}
		if flag != nil {
			return flag.NoOptDefVal == ""
		}
	}
	return false
}
