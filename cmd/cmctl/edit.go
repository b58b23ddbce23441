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
	input      inputFlags
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
		Use:   "edit {NAME... | -f FILE... | -l SELECTOR}",
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
  cmctl edit -f cm.yaml                 # the live object that the file names
  cmctl edit flags --dry-run=server -o yaml  # shows what would be stored
  cmctl edit flags --save-as flags-new  # what you make of it becomes a new object
  cmctl edit --resume /tmp/cmctl-edit-flags-123/flags.yaml
  CMCTL_EDITOR='code --wait' cmctl edit flags`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if args, err = o.input.take(args); err != nil {
				return err
			}
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
	o.input.add(flags)
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

var errOneObject = usagef("--save-as, --resource-version and --uid are for one object")

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
	case o.selector != "" && o.input.given():
		return usagef("give either -f or -l, not both")
	case slices.Contains(o.input.files, "-"):
		return usagef("standard input is the editor's; give -f a file")
	case !several && len(o.names) == 0 && !o.input.given():
		return usagef("edit takes a NAME, several, -f FILE or -l SELECTOR")
	case several && (o.saveAs != "" || o.guard.given()):
		return errOneObject
	}
	return nil
}

func (o *editOptions) validateResume(flags *pflag.FlagSet) error {
	for _, name := range []string{"selector", "filename", "key", "output"} {
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
	refs, errs := o.chosen(ctx, conn)
	for i, r := range refs {
		err := untried(ctx, len(refs)-i)
		if err == nil {
			err = o.edit(ctx, conn.in(r.namespace), r.name, position{i + 1, len(refs)})
		}
		if err != nil {
			errs = append(errs, err)
		}
		if left := len(refs) - i - 1; errors.As(err, new(*editorError)) && left > 0 {
			errs = append(errs, fmt.Errorf("%d more were not opened", left))
		}
		if ctx.Err() != nil || errors.As(err, new(*editorError)) {
			break
		}
	}
	if err := o.showMade(len(refs)); err != nil {
		errs = append(errs, err)
	}
	return oneOrMany(errs)
}

// chosen are the objects to edit: those that are named, or those that the selector
// finds.
func (o *editOptions) chosen(ctx context.Context, conn *connection) (refs []objectRef, errs []error) {
	switch {
	case o.input.given():
		refs, errs = o.input.references(ctx, o.factory, conn)
		if len(refs) > 1 && (o.saveAs != "" || o.guard.given()) {
			return nil, append(errs, errOneObject)
		}
		return refs, errs
	case o.selector == "":
		return references(conn.namespace, o.names), nil
	}
	items, err := o.matching(ctx, conn, selectors{selector: o.selector})
	if err != nil {
		return nil, []error{err}
	}
	for _, item := range items {
		refs = append(refs, objectRef{item.Namespace(), item.Name()})
	}
	return refs, nil
}
