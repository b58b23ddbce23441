package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type editOptions struct {
	*factory
	names      []string
	selector   string
	key        string
	output     string
	onConflict string
	saveAs     string
	resume     string
	dryRun     string
	force      bool
	checks     contentChecks
	guard      guardFlags

	made []types.Document // what dry runs made of the objects
}

func newEdit(f *factory) *cobra.Command {
	o := &editOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "edit NAME...",
		Short: "Edit ConfigMaps in your editor; what others change meanwhile stays",
		Long: `Edit ConfigMaps in the editor that $CMCTL_EDITOR, $KUBE_EDITOR, $VISUAL or
$EDITOR names, else vi; several are edited one after the other.

What you changed is written on the version that you were shown. If somebody wrote
in between, the object is read again and your change, nothing else, is made to
the fresh copy. Where both of you changed the same, the editor opens again with
that part marked, as git marks it, and nothing is written until no marker is
left. Without a terminal that ends with exit code 3; --on-conflict decides then.

What can't be written, for it is no YAML or the server refuses it, opens the
editor again too. An untouched or emptied text cancels. Your text is removed only
when the server has taken it; go on from one that was kept with --resume. So it is after
a dry run, which shows what your change would make of the object.`,
		Example: `  cmctl edit flags
  cmctl edit cm/flags -n team-a
  cmctl edit flags --key app.toml       # the value alone, as a file
  cmctl edit -l tier=web
  cmctl edit flags --dry-run=server -o yaml  # shows what would be stored
  cmctl edit flags --save-as flags-new  # what you make of it becomes a new object
  cmctl edit --resume /tmp/cmctl-edit-flags-123/flags.yaml
  CMCTL_EDITOR='code --wait' cmctl edit flags`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.names, err = parseNames(args); err != nil {
				return err
			}
			if err := o.validate(cmd.Flags()); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.addFlags(cmd.Flags())
	// It fails only for a flag that isn't there.
	_ = cmd.RegisterFlagCompletionFunc("on-conflict", cobra.FixedCompletions(conflictModes, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *editOptions) addFlags(flags *pflag.FlagSet) {
	addSelector(flags, &o.selector)
	flags.StringVar(&o.key, "key", "", "edit the value of this `KEY` alone, as a plain file; one that is not there is made")
	flags.StringVarP(&o.output, "output", "o", "", "how to edit, and what to show of a dry run: yaml or json (default yaml)")
	flags.StringVar(&o.onConflict, "on-conflict", conflictMerge, "where others changed the same: merge (ask, or stop without a terminal), ours, theirs; fail: stop if they changed anything")
	flags.StringVar(&o.saveAs, "save-as", "", "create a new object of this `NAME` from what you make of it, and leave this one as it is")
	flags.StringVar(&o.resume, "resume", "", "go on from a text that an edit before kept in this `FILE`")
	addDryRun(flags, &o.dryRun)
	addHelmForce(flags, &o.force)
	o.checks.addFlag(flags)
	o.guard.add(flags)
}

// What --on-conflict takes.
const (
	conflictMerge  = "merge"
	conflictFail   = "fail"
	conflictOurs   = "ours"
	conflictTheirs = "theirs"
)

var conflictModes = []string{conflictMerge, conflictFail, conflictOurs, conflictTheirs}

func (o *editOptions) validate(flags *pflag.FlagSet) error {
	if err := checkOutput(o.output, "yaml", "json"); err != nil {
		return err
	}
	if err := validateDryRun(o.dryRun); err != nil {
		return err
	}
	if err := o.guard.validate(flags); err != nil {
		return err
	}
	if err := o.checks.prepare(o.factory); err != nil {
		return err
	}
	if _, err := parseSelector(o.selector); err != nil {
		return err
	}
	if flags.Changed("key") {
		if err := checkKey(o.key); err != nil {
			return usagef("--key: %v", err)
		}
	}
	if flags.Changed("save-as") {
		if problems := types.ValidateName(o.saveAs); len(problems) > 0 {
			return usagef("--save-as: %q can't be a name: %s", o.saveAs, strings.Join(problems, "; "))
		}
	}
	several := len(o.names) > 1 || o.selector != ""
	switch {
	case !slices.Contains(conflictModes, o.onConflict):
		return usagef("--on-conflict takes one of %s, not %q", strings.Join(conflictModes, ", "), o.onConflict)
	case o.key != "" && o.output != "" && o.dryRun == dryRunNone:
		return usagef("--key edits a value as it is; -o doesn't go with it")
	case flags.Changed("resume"):
		return o.validateResume(flags)
	case o.selector != "" && len(o.names) > 0:
		return usagef("give either a NAME or -l, not both")
	case !several && len(o.names) == 0:
		return usagef("edit takes a NAME, several, or -l SELECTOR")
	case several && (o.saveAs != "" || o.guard.given()):
		return usagef("--save-as, --resource-version and --uid are for one object")
	}
	return nil
}

func (o *editOptions) validateResume(flags *pflag.FlagSet) error {
	for _, name := range []string{"selector", "key", "output"} {
		if shown := name == "output" && o.dryRun != dryRunNone; flags.Changed(name) && !shown {
			return usagef("--resume goes on with what the kept text is; --%s doesn't go with it", name)
		}
	}
	if o.resume == "" || len(o.names) > 1 {
		return usagef("--resume takes one FILE that an edit kept")
	}
	return nil
}

func (o *editOptions) run(ctx context.Context) error {
	if _, err := o.editorCommand(); err != nil {
		return err // before anything is read
	}
	conn, err := o.connectDry("edit", o.dryRun == dryRunServer)
	if err != nil {
		return err
	}
	if o.resume != "" {
		if err := o.goOn(ctx, conn); err != nil {
			return err
		}
		return o.showMade(1)
	}
	names, err := o.chosen(ctx, conn)
	if err != nil {
		return err
	}
	var errs []error
	for i, name := range names {
		err := untried(ctx, len(names)-i)
		if err == nil {
			err = o.edit(ctx, conn, name, position{i + 1, len(names)})
		}
		if err != nil {
			errs = append(errs, err)
		}
		if left := len(names) - i - 1; errors.As(err, new(*editorError)) && left > 0 {
			errs = append(errs, fmt.Errorf("%d more were not opened", left))
		}
		if ctx.Err() != nil || errors.As(err, new(*editorError)) {
			break
		}
	}
	if err := o.showMade(len(names)); err != nil {
		errs = append(errs, err)
	}
	return oneOrMany(errs)
}

// chosen are the names to edit: those given, or those that the selector finds.
func (o *editOptions) chosen(ctx context.Context, conn *connection) ([]string, error) {
	if o.selector == "" {
		return o.names, nil
	}
	items, err := o.matching(ctx, conn, selectors{selector: o.selector})
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = item.Name()
	}
	return names, err
}
