package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/fromfiles"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// streams are where a command reads and writes.
type streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer

	asPlugin bool // called by kubectl, whose rules say which server is meant
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, s streams, i *interrupts) int {
	f := newFactory(s, i)
	root := newRoot(f)
	if len(args) > 0 && completing(args[0]) {
		f.wireCompletions(root)
	} else {
		args = spellVerbosity(root, args)
	}
	root.SetArgs(args)
	cmd, err := root, knownCommand(root, args)
	if err == nil {
		cmd, err = root.ExecuteContextC(ctx)
		err = cmp.Or(err, f.helpFailed)
	}
	if err != nil && i.interrupted() {
		err = &interruptedError{err}
	}
	if err != nil {
		report(s.Err, err, cmd.CommandPath())
	}
	return exitCode(err)
}

// newRoot is the whole command tree.
func newRoot(f *factory) *cobra.Command {
	root := &cobra.Command{
		Use:         f.programName(),
		Annotations: f.displayName(),
		Version:     version(),
		Short:       "Read and write ConfigMaps without losing an update",
		Long: `cmctl reads and writes ConfigMaps of cmserver or of any Kubernetes API server.

Every write is made from a version that was read. Where somebody else wrote
first, cmctl reads the fresh copy, makes your change to it and tries again; what
can't be put together is shown to you, and nothing is overwritten.

Settings come from flags, then CMCTL_... variables (CMCTL_NAMESPACE for
--namespace), then the file ` + "`cmctl/config.yaml`" + ` in your configuration folder
(~/.config), then defaults.

Exit codes: 0 done, 1 failed, 2 usage, 3 conflict that a person must decide,
4 not found, 5 already exists, 6 refused by the server, 7 server unreachable,
overloaded or outcome unknown, 130 interrupted.`,
		Example: `  cmctl create flags --from-literal=mode=blue --from-literal=rollout=10
  cmctl get flags -o yaml
  cmctl edit flags -n team-a
  cmctl apply -f cm.yaml`,
		SuggestionsMinimumDistance: 2,

		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	if f.plugin() {
		root.Long += `

As kubectl's plugin it goes where kubectl goes: to the current context of the
kubeconfig, and its namespace, unless flags say otherwise. Neither variables nor
cmctl's own contexts have a say in that.`
	}
	root.SetIn(f.In)
	root.SetOut(f.Out)
	root.SetErr(f.Err)
	root.SetFlagErrorFunc(flagError)
	f.addFlags(root.PersistentFlags())
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "v" { // kubectl's long form
			name = "verbose"
		}
		return pflag.NormalizedName(name)
	})
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if needsNoSettings(cmd) {
			return nil
		}
		return f.load()
	}
	root.AddCommand(
		newGet(f), newWait(f), newBlame(f), newDescribe(f), newExport(f), newExplain(f), newCreate(f), newApply(f), newEdit(f), newReplace(f), newDiff(f), newDelete(f), newHistory(f), newUndo(f),
		newSet(f), newUnset(f), newLabel(f), newAnnotate(f), newUpdate(f), newPatch(f), newCopy(f), newSync(f), newExec(f),
		newAuth(f), newAPIResources(f), newConfig(f), newCompletion(f), newOptions(f), newVersion(f),
	)
	root.CompletionOptions.DisableDefaultCmd = true
	shapeHelp(root, f)
	refuseRepeats(root)
	return root
}

// needsNoSettings tells which commands work whatever is wrong with the settings.
func needsNoSettings(cmd *cobra.Command) bool {
	return completing(cmd.Name()) || slices.Contains([]string{"help", "options", "completion"}, cmd.Name())
}

// knownCommand refuses a command that there is not before its flags are looked
// at, whose fault they would seem to be.
func knownCommand(root *cobra.Command, args []string) error {
	if len(args) > 1 && args[0] == "help" {
		args = args[1:]
	}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], "__") || args[0] == "help" {
		return nil
	}
	if cmd, _, err := root.Find(args[:1]); err == nil && cmd != root {
		return nil
	}
	return unknownCommand(root, args)
}

func unknownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("unknown command %q", args[0])
	if near := root.SuggestionsFor(args[0]); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return &usageError{message}
}

// noArgs refuses operands with a usage error.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected argument %q", args[0])
	}
	return nil
}

// errNoName is a command without the name that it needs.
var errNoName = errors.New("no name given")

// parseNames takes the names out of operands like `flags`, `cm/flags` and
// `cm flags`. A first one that is another kind with names behind it is refused:
// those names are not meant for ConfigMaps.
func parseNames(args []string) ([]string, error) {
	if len(args) > 0 && isConfigMapWord(args[0]) {
		args = args[1:]
	} else if len(args) > 1 && isOtherKind(args[0]) {
		return nil, usagef("%q is another kind, and cmctl knows ConfigMaps only (one of that name is cm/%s)", args[0], args[0])
	}
	names := make([]string, 0, len(args))
	for _, arg := range args {
		kind, name, ok := strings.Cut(arg, "/")
		if !ok {
			kind, name = "cm", arg
		}
		if !isConfigMapWord(kind) {
			return nil, usagef("%q: cmctl knows configmaps only (say cm/NAME, or just NAME)", arg)
		}
		if name == "" {
			return nil, usagef("%q: %v", arg, errNoName)
		}
		names = append(names, name)
	}
	return names, nil
}

// oneName takes the one name that a verb's operands have to be.
func oneName(verb string, args []string) (string, error) {
	names, err := parseNames(args)
	if err != nil {
		return "", err
	}
	if len(names) != 1 {
		return "", usagef("%s takes one NAME", verb)
	}
	return names[0], nil
}

// checkKey refuses what can't be a key of data.
func checkKey(key string) error {
	if why := fromfiles.BadKey(key); why != "" {
		return usagef("%q can't be a key: %s", key, why)
	}
	return nil
}

// isConfigMapWord tells whether an operand says what kind of object is meant. No
// object's name has capitals, but the kind's own is ConfigMap.
func isConfigMapWord(s string) bool {
	return slices.Contains([]string{"cm", "configmap", "configmaps"}, strings.ToLower(s))
}
