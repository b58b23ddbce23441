package main

import (
	"context"
	"errors"
	"fmt"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
)

type replaceOptions struct {
	*factory
	writeFlags
	input inputFlags
	force bool
}

func newReplace(f *factory) *cobra.Command {
	o := &replaceOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "replace -f FILE...",
		Short: "Make ConfigMaps what files say, and nothing else",
		Long: `Make ConfigMaps what files say: what a file lacks is gone from the object. One
that doesn't exist is not created.

A file made by 'cmctl get -o yaml' carries the version that it was made from, and
replaces that version alone: if the object has moved on, nothing is written and
the exit code is 3. --resource-version and --uid say the same for a file without.
A file with neither replaces whatever is there, and it is said that nothing
guarded what others wrote meanwhile.

--force deletes and recreates the object, as an immutable one needs it. The
server is asked first whether it would take the new one; the old one is kept in a
file, and is put back if the creation fails after all. It is also how the data of
Helm's release records is replaced, which is refused otherwise.`,
		Example: `  cmctl get flags -o yaml > flags.yaml; vi flags.yaml; cmctl replace -f flags.yaml
  cmctl replace -f cm.yaml --resource-version=4711
  cmctl replace -f manifests/ -R --dry-run=server
  cmctl replace -f frozen.yaml --force`,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := o.input.take(args)
			switch {
			case err != nil:
				return err
			case len(args) > 0:
				return usagef("unexpected argument %q; manifests are named with -f", args[0])
			case !o.input.given():
				return usagef("replace takes -f FILE")
			}
			if err := o.validate(cmd.Flags()); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.input.add(cmd.Flags())
	o.add(cmd.Flags())
	cmd.Flags().BoolVar(&o.force, "force", false, "delete the object and create it again")
	return cmd
}

func (o *replaceOptions) run(ctx context.Context) error {
	conn, err := o.connectDry("replace", o.dryRun == dryRunServer)
	if err != nil {
		return err
	}
	manifests, errs := o.input.read(ctx, o.factory, conn)
	manifests, faults := withoutValues(manifests)
	errs = append(errs, faults...)
	if len(manifests) > 1 {
		if err := o.guard.onlyForOne(); err != nil {
			return err
		}
	}
	for _, m := range manifests {
		if err := o.guard.clash(m.Where(), m.Document); err != nil {
			return err
		}
	}
	failed := o.inOrder(ctx, "replace", results{form: o.output, dryRun: o.dryRun}, len(manifests), func(ctx context.Context, f *factory, i int) (outcome, error) {
		one := *o
		one.factory = f
		return one.replace(ctx, conn, manifests[i])
	})
	return oneOrMany(append(errs, failed...))
}

// want is the version that a manifest may replace, by the flags or by itself.
func (o *replaceOptions) want(m manifest.Manifest) retry.Version {
	want := o.guard.want()
	if want.UID == "" {
		want.UID = m.UID()
	}
	if want.ResourceVersion == "" {
		want.ResourceVersion = m.ResourceVersion()
	}
	return want
}

func (o *replaceOptions) replace(ctx context.Context, conn *connection, m manifest.Manifest) (outcome, error) {
	object := conn.ConfigMaps(m.Namespace()).Object(m.Name())
	options := o.retryOptions(o.progress(object))
	options.Want = o.want(m)
	file := m.Clone()
	file.DropServerFields()
	if o.force {
		return o.recreate(ctx, conn, m, file, options)
	}
	verb := "replaced"
	res, err := o.put(ctx, conn, m, file, options)
	switch {
	case o.landedAndGone(err):
	case err != nil:
		return outcome{}, conn.explain(m.Namespace(), m.Name(), staleFile(conn, m, err))
	case res.Outcome == retry.Unchanged:
		verb = "unchanged"
	case options.Want.ResourceVersion == "":
		o.tellUnguarded(m)
	}
	done := outcome{verb, res.Object}
	return done, o.tellResult(o.output, o.dryRun, "configmap/"+m.Name(), done)
}

// tellUnguarded notes that the file says nothing of the version that it was made
// from.
func (o *replaceOptions) tellUnguarded(m manifest.Manifest) {
	replaced, gone := "replaced", "is gone"
	if o.dryRun != dryRunNone {
		replaced, gone = "would be replaced", "would be gone"
	}
	o.note("%s: %s without a guard: the file has no resourceVersion, so whatever others wrote since you made it %s", m.Where(), replaced, gone)
}

// put writes the manifest over the live object, on the version that is wanted or
// else on the one that is there.
func (o *replaceOptions) put(ctx context.Context, conn *connection, m manifest.Manifest, file types.Document, options retry.Options) (retry.Result[types.Document], error) {
	object := conn.ConfigMaps(m.Namespace()).Object(m.Name())
	var before types.Document
	edit := func(_ context.Context, live types.Document) (types.Document, error) {
		before = live
		next := over(live, file)
		if endsDeletion(live, finalizers(next)) && !beingDeleted(m.Document) {
			return nil, conn.wouldEnd(live, m.Where())
		}
		changes := types.Diff(live, next)
		if len(changes) == 0 {
			return nil, retry.ErrUnchanged
		}
		if err := leavesHelms(live, changes); err != nil {
			return nil, err
		}
		return next, types.Frozen(live, changes)
	}
	if o.dryRun != dryRunClient {
		res, err := retry.Update(ctx, object, edit, options)
		if err == nil && o.dryRun == dryRunServer {
			err = o.checkUnstored(ctx, object, before, res.Object)
		}
		return res, err
	}
	live, err := retry.Read(ctx, object, options)
	if err != nil {
		return retry.Result[types.Document]{}, err
	}
	next, err := edit(ctx, live)
	if errors.Is(err, retry.ErrUnchanged) {
		return retry.Result[types.Document]{Object: live, Outcome: retry.Unchanged}, nil
	}
	return retry.Result[types.Document]{Object: next, Outcome: retry.Written}, err
}

// over is the file as the next version of the live object. The record of the last
// apply is none of the contents: it stays unless the file has one.
func over(live, file types.Document) types.Document {
	next := file.Clone()
	next.SetMeta("uid", live.UID())
	next.SetMeta("resourceVersion", live.ResourceVersion())
	deleted, _ := live.Value("metadata", "deletionTimestamp") // as the server does
	next.SetMeta("deletionTimestamp", deleted)
	if _, own := file.Annotation(types.LastApplied); !own {
		_, restore := withoutRecord(live)
		restore(next)
	}
	return next
}

// staleFile says of a conflict what it means for the file.
func staleFile(conn *connection, m manifest.Manifest, err error) error {
	if version := m.ResourceVersion(); version != "" && exitCode(err) == exitConflict && !unknownOutcome(err) {
		err = fmt.Errorf("%s was made from version %s; nothing was written: %w", m.Where(), version, err)
		return &hintedError{err, fmt.Sprintf("'cmctl apply -f %s%s' merges what the file changed with what others wrote", m.File, conn.where)}
	}
	return err
}
