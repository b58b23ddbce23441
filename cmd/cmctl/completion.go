package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	// completionBudget is how long a person waits for a completion, and
	// answerBudget how long the server's answers may take of it: what came until
	// then is offered.
	completionBudget = time.Second
	answerBudget     = 900 * time.Millisecond
	// completionLimit is how many names are offered.
	completionLimit = 2000
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:   "completion {" + strings.Join(shells, "|") + "}",
		Short: "Print the script that lets a shell complete commands, names and keys",
		Long: `Print the script that lets a shell complete commands, flags, and what is on the
server: names of ConfigMaps, their keys, namespaces, and contexts.

For the kubectl plugin, give cmctl the name kubectl_complete-cm as well, beside
kubectl-cm on the PATH; kubectl asks that one.`,
		Example: `  source <(cmctl completion bash)                 # in ~/.bashrc
  cmctl completion zsh > "${fpath[1]}/_cmctl"
  cmctl completion fish > ~/.config/fish/completions/cmctl.fish
  cmctl completion powershell | Out-String | Invoke-Expression`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return usagef("completion takes the name of a shell: %s", strings.Join(shells, ", "))
			}
			return nil
		},
		ValidArgsFunction: completeFirst(shells),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(f.Out, true)
			case "zsh":
				return root.GenZshCompletion(f.Out)
			case "fish":
				return root.GenFishCompletion(f.Out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(f.Out)
			}
		},
	}
}

// completing tells whether a command is the one by which shells ask.
func completing(command string) bool {
	return command == cobra.ShellCompRequestCmd || command == cobra.ShellCompNoDescRequestCmd
}

// wireCompletions lets every command complete what its usage line calls for:
// NAME, NAME..., KEY, KEY... and KEY=VALUE..., and flags by their names. A command
// that brings a completion of its own keeps it.
func (f *factory) wireCompletions(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		f.wireCompletions(sub)
	}
	if cmd.ValidArgsFunction == nil && takesOperands(cmd) {
		cmd.ValidArgsFunction = f.completeOperands(cmd.Use)
	}
	flags := map[string]cobra.CompletionFunc{
		"namespace": f.completeNamespaces, "to-namespace": f.completeNamespaces,
		"context": f.completeContexts, "to-context": f.completeContexts,
		"key":     f.completeKeys,
		"for":     cobra.FixedCompletions([]string{"create", "delete", "change", "key=", "jsonpath="}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace),
		"dry-run": cobra.FixedCompletions([]string{dryRunNone, dryRunClient, dryRunServer}, cobra.ShellCompDirectiveNoFileComp),
	}
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		complete := flags[flag.Name]
		if flag.Name == "output" {
			complete = cobra.FixedCompletions(outputWords(flag.Usage), cobra.ShellCompDirectiveNoFileComp)
		}
		if complete != nil {
			// It fails only for a flag that isn't there, or has one already.
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, complete)
		}
	})
}

// outputWords are those of `how to print: yaml, jsonpath=... or name (default
// text)`, up to what a person has to fill in.
func outputWords(usage string) []string {
	_, list, _ := strings.Cut(usage, ": ")
	list, _, _ = strings.Cut(list, " (")
	list = strings.NewReplacer(" or ", ",", "=...", "=", "=FILE", "=").Replace(list)
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// completeOperands is the completion that a usage line calls for.
func (f *factory) completeOperands(use string) cobra.CompletionFunc {
	words := strings.FieldsFunc(use, func(r rune) bool { return strings.ContainsRune(" []{}|", r) })
	several, keys, suffix := false, false, ""
	one, dashed := slices.Contains(words, "NAME"), slices.Contains(words, "--")
	for _, w := range words {
		switch w {
		case "NAME...":
			several = true
		case "KEY", "KEY...":
			keys = true
		case "KEY=VALUE...":
			keys, suffix = true, "="
		}
	}
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && isConfigMapWord(args[0]) {
			args = args[1:]
		}
		switch {
		case dashed && (len(args) > 0 && !several || cmd.ArgsLenAtDash() < len(args)):
			return nil, cobra.ShellCompDirectiveDefault // a program and its files
		case several, one && len(args) == 0:
			return f.completeNames(cmd, args, begun)
		case one && keys:
			found, directive := f.completeKeys(cmd, args, begun)
			for i := range found {
				found[i] += suffix
			}
			if suffix != "" {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
			return found, directive
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// ask gets words from the server, those that go on with what was begun and that
// are not there already. Whatever goes wrong, there are no words then.
func (f *factory) ask(begun string, there []string, get func(context.Context, *connection) ([]string, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	f.Err = io.Discard
	ctx, cancel := context.WithTimeout(context.Background(), answerBudget)
	defer cancel()
	answer := make(chan []string, 1) // one send, also when nobody waits any longer
	go func() {
		var words []string
		conn, err := f.connectToComplete()
		if err == nil {
			words, _ = get(ctx, conn) // those that came
		}
		answer <- words
	}()
	var words []string
	select {
	case words = <-answer:
	case <-time.After(completionBudget): // a credential plugin does not look at ctx
	}
	words = slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, begun) || slices.Contains(there, w) })
	return words, cobra.ShellCompDirectiveNoFileComp
}

func (f *factory) connectToComplete() (*connection, error) {
	if err := f.load(); err != nil {
		return nil, err
	}
	return f.connect("complete")
}

// completeNames offers the ConfigMaps of the namespace.
func (f *factory) completeNames(_ *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	kind, rest, slash := strings.Cut(begun, "/")
	if slash && !isConfigMapWord(kind) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	prefix := ""
	if slash {
		prefix, begun = kind+"/", rest
	}
	there, err := parseNames(args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, directive := f.ask(begun, there, func(ctx context.Context, c *connection) ([]string, error) {
		return c.ConfigMaps(c.namespace).Names(ctx, completionLimit)
	})
	for i := range names {
		names[i] = prefix + names[i]
	}
	return names, directive
}

// completeKeys offers the keys of the ConfigMap that is named.
func (f *factory) completeKeys(_ *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, err := parseNames(args)
	if err != nil || len(names) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.ask(begun, names[1:], func(ctx context.Context, c *connection) ([]string, error) {
		doc, err := c.ConfigMaps(c.namespace).Get(ctx, names[0])
		if err != nil {
			return nil, err
		}
		return doc.DataKeys(), nil
	})
}

// versionFlags lets flags of a command complete the versions of the ConfigMap that is
// named.
func (f *factory) versionFlags(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		// It fails only for a flag that isn't there.
		_ = cmd.RegisterFlagCompletionFunc(name, f.completeVersions)
	}
}

// completeVersions offers the versions that are kept of the ConfigMap that is named,
// newest first.
func (f *factory) completeVersions(_ *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, err := parseNames(args)
	if err != nil || len(names) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	versions, directive := f.ask(begun, nil, func(ctx context.Context, c *connection) ([]string, error) {
		list, err := c.past(names[0]).list(ctx)
		if err != nil {
			return nil, err
		}
		var versions []string
		for _, e := range list.Items {
			if !e.Deleted {
				versions = append(versions, cobra.CompletionWithDesc(e.ResourceVersion, e.Verb+" by "+whoAndWhen(e)))
			}
		}
		return versions, nil
	})
	return versions, directive | cobra.ShellCompDirectiveKeepOrder
}

// completeNamespaces offers the server's namespaces.
func (f *factory) completeNamespaces(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return f.ask(begun, nil, func(ctx context.Context, c *connection) ([]string, error) {
		return c.Namespaces(ctx, completionLimit)
	})
}

// completeContexts offers what --context can name.
func (f *factory) completeContexts(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	f.Err = io.Discard
	if err := f.load(); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := f.contexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []cobra.Completion
	for _, c := range all {
		words = append(words, cobra.CompletionWithDesc(c.Name, c.Server))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeOwnContexts offers cmctl's own contexts, for the first operand.
func (f *factory) completeOwnContexts(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	f.Err = io.Discard
	if err := f.load(); err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []cobra.Completion
	for _, c := range f.file.Contexts {
		words = append(words, cobra.CompletionWithDesc(c.Name, serverOf(c)))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
