package main

import (
	"context"
	"slices"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/difference"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
)

type undoOptions struct {
	*factory
	writeFlags
	name       string
	change     string // the version whose change is taken back; empty: the newest
	to         string // the version to go back to; empty: take back one change
	onConflict string
}

func newUndo(f *factory) *cobra.Command {
	o := &undoOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "undo NAME",
		Short: "Take back the newest change of a ConfigMap, go back to a version, or bring it back",
		Long: `Take back the newest change of a ConfigMap, whoever made it; one that was deleted is
brought back. What is taken back is named: version, tool, user, time and fields.

  --change VERSION  takes back the change that made that version, and no other
  --to VERSION      goes back to that version: all changes since are taken back

The change is made in reverse to the object as it is now, field by field and in texts
line by line, and written on the version that was read. What others have built on it
since is a conflict: nothing is written, and both sides are shown (exit code 3). So is,
with --to, what others wrote than who made the oldest change that is taken back.
--on-conflict=ours takes it back all the same, =theirs leaves it as it is, and =fail
stops if anything at all was written meanwhile.

An undo is a change like any other: undo it, and what it took back is there again. An
object that was deleted comes back as a new one, with another uid; --uid and
--resource-version are conditions on the deleted one then: its uid, and the version of
its deletion. What made an object is not undone: delete it.`,
		Example: `  cmctl undo flags
  cmctl undo flags --dry-run=client -o diff   # see what it would do
  cmctl undo flags --to 4711
  cmctl undo flags --change 4711
  cmctl delete flags && cmctl undo flags      # it is back`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.name, err = oneName("undo", args); err != nil {
				return err
			}
			if err := o.complete(cmd); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.change, "change", "", "take back the change that made this `VERSION` alone")
	flags.StringVar(&o.to, "to", "", "go back to this `VERSION`: take back all changes since")
	flags.StringVar(&o.onConflict, "on-conflict", conflictMerge, "where others built on what is taken back: merge (by lines, or stop), ours (take it back), theirs (leave it); fail: stop if anything was written meanwhile")
	addHelmForce(flags, &o.helm)
	o.add(flags)
	flags.Lookup("output").Usage = "print what was written: yaml, json, name or diff"
	f.versionFlags(cmd, "change", "to")
	// It fails only for a flag that isn't there.
	_ = cmd.RegisterFlagCompletionFunc("on-conflict", cobra.FixedCompletions(conflictModes, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// asDiff is the form of -o that only undo has.
const asDiff = "diff"

func (o *undoOptions) complete(cmd *cobra.Command) error {
	for name, value := range map[string]string{"change": o.change, "to": o.to} {
		if cmd.Flags().Changed(name) && value == "" {
			return usagef("--%s takes a version; 'cmctl history NAME' lists them", name)
		}
	}
	switch {
	case o.change != "" && o.to != "":
		return usagef("give either --change or --to, not both")
	case !slices.Contains(conflictModes, o.onConflict):
		return usagef("--on-conflict takes one of %s, not %q", strings.Join(conflictModes, ", "), o.onConflict)
	}
	if err := checkOutput(o.output, "yaml", "json", "name", asDiff); err != nil {
		return err
	}
	common := o.writeFlags
	common.output = "" // which has one form more here
	return common.validate(cmd.Flags())
}

func (o *undoOptions) run(ctx context.Context) error {
	w, err := o.writer("undo", o.writeFlags)
	if err != nil {
		return err
	}
	u := &undo{writer: w, past: w.conn.past(o.name), change: o.change, to: o.to, onConflict: o.onConflict}
	c, err := u.plan(ctx)
	if err != nil {
		return w.conn.explain(w.conn.namespace, o.name, err)
	}
	return w.ending(ctx, "undo", func() (outcome, error) {
		done, err := w.apply(ctx, c)
		if err == nil && o.output == asDiff {
			err = u.printDiff()
		}
		return done, err
	})
}

// undo is one undo under way.
type undo struct {
	*writer
	past                   *past
	change, to, onConflict string // as the flags say

	on   types.Document // the copy on which it was made last, nil if there was none
	next types.Document // what it made of that
}

// plan finds out from the history what is to be done.
func (u *undo) plan(ctx context.Context) (change, error) {
	list, err := u.past.list(ctx)
	switch {
	case err != nil:
		return change{}, err
	case list.Items[0].Deleted:
		return u.restoration(ctx, list.Items)
	}
	return u.reversal(ctx, list.Items)
}

func (u *undo) printDiff() error {
	if u.next == nil {
		return nil
	}
	on, from := u.on, "nothing"
	if on == nil {
		on = types.NewDocument(u.conn.namespace, u.past.name)
	} else {
		from = "version " + on.ResourceVersion()
	}
	text := difference.Show(contents(types.Diff(on, u.next)), difference.Options{Context: 3, Palette: u.colors(u.Out), From: from, To: "undone"})
	return u.say("%s", strings.TrimSuffix(text, "\n"))
}
