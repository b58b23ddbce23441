package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
)

type applyOptions struct {
	*factory
	applyFlags
	sourceFlags
	writeFlags
	allOrNothing bool
}

func newApply(f *factory) *cobra.Command {
	o := &applyOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "apply {-f FILE... | NAME --from-...}",
		Short: "Bring ConfigMaps to what files say, without reverting what others changed",
		Long: `Bring ConfigMaps to what files say; those that don't exist are created.

What was last applied is recorded in the annotation that kubectl uses too. A
value that somebody changed since then is not overwritten: the command stops with
exit code 3 and shows both values and who wrote the other one. Decide with
--force (the file's side) or --keep (the live side). Keys that nobody applied
stay as they are and are named; --exact removes them.

With a NAME the object is put together from --from-literal, --from-file and
--from-env-file, and applied as a file with that content would be.

A file made by 'cmctl get -o yaml' carries the version that it was made from:
your changes to it are made to the current object as edit would.

With --set NAME the objects become members of that set; --prune then deletes the
members that are no longer given.`,
		Example: `  cmctl apply -f cm.yaml
  cmctl apply -f manifests/ -n team-a
  helm template . | cmctl apply -f -
  cmctl apply -f cm.yaml --force
  cmctl apply flags --from-literal=mode=blue
  cmctl apply web --from-file=nginx.conf --exact
  cmctl apply -f cm.yaml --dry-run=client -o yaml
  cmctl apply -f cm.yaml --server-side
  cmctl apply -f manifests/ --set shop --prune`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.take("apply", args); err != nil {
				return err
			}
			if err := o.validate(cmd); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	o.sourceFlags.add(flags)
	o.applyFlags.add(flags)
	o.writeFlags.add(flags)
	flags.BoolVar(&o.allOrNothing, "all-or-nothing", false, "write nothing if any of the manifests can't be applied")
	cmd.AddCommand(newViewLastApplied(f))
	return cmd
}

func (o *applyOptions) validate(cmd *cobra.Command) error {
	if o.prune && !o.input.given() {
		return usagef("--prune deletes what the manifests of -f no longer give")
	}
	if err := o.applyFlags.validate(); err != nil {
		return err
	}
	return o.writeFlags.validate(cmd.Flags())
}

func (o *applyOptions) run(ctx context.Context) error {
	conn, err := o.connectDry("apply", o.dryRun == dryRunServer)
	if err != nil {
		return err
	}
	manifests, errs := o.manifests(ctx, o.factory, conn)
	if err := o.checkGuard(manifests, len(errs)); err != nil {
		return err
	}
	set, err := o.open(ctx, conn, manifests)
	if err != nil {
		return oneOrMany(append(errs, err))
	}
	if o.allOrNothing {
		if errs = append(errs, o.survey(ctx, conn, set, manifests)...); len(errs) > 0 {
			return oneOrMany(append(errs, errors.New("nothing was written, as --all-or-nothing asks")))
		}
	}
	seen := foresee(ctx, conn, manifests)
	failed := o.inOrder(ctx, "apply", results{form: o.output, dryRun: o.dryRun}, len(manifests), func(ctx context.Context, f *factory, i int) (outcome, error) {
		return o.apply(ctx, f, conn, set, seen, manifests[i])
	})
	errs = append(errs, failed...)
	if o.prune {
		errs = o.pruneAfter(ctx, conn, set, manifests, errs)
	}
	return oneOrMany(errs)
}

// checkGuard refuses a condition that the manifests contradict, or that can't
// hold for all of them.
func (o *applyOptions) checkGuard(manifests []manifest.Manifest, faults int) error {
	if len(manifests)+faults > 1 {
		if err := o.guard.onlyForOne(); err != nil {
			return err
		}
	}
	for _, m := range manifests {
		if err := o.guard.clash(m.Where(), m.Document); err != nil {
			return err
		}
	}
	return nil
}

// open is the set that the flags name, nil if they name none.
func (o *applyOptions) open(ctx context.Context, conn *connection, manifests []manifest.Manifest) (*set, error) {
	if o.setName == "" {
		return nil, nil
	}
	return openSet(ctx, conn, o.setName, manifests)
}

// survey finds what would keep an object from being applied, as far as reading
// can tell.
func (o *applyOptions) survey(ctx context.Context, conn *connection, set *set, manifests []manifest.Manifest) (errs []error) {
	quiet := *o.factory
	quiet.Err = io.Discard // what there is to note is noted when it is applied
	for _, m := range manifests {
		a, err := o.application(ctx, &quiet, conn, set, m)
		if err == nil {
			_, _, err = a.preview(ctx)
		}
		if err != nil {
			errs = append(errs, conn.explain(m.Namespace(), m.Name(), err))
		}
	}
	return errs
}

// apply brings one object to its manifest. What there is to tell of it goes to f.
func (o *applyOptions) apply(ctx context.Context, f *factory, conn *connection, set *set, seen foresight, m manifest.Manifest) (outcome, error) {
	a, err := o.application(ctx, f, conn, set, m)
	if err != nil {
		return outcome{}, conn.explain(m.Namespace(), m.Name(), err)
	}
	a.seen = seen
	run := a.write
	switch o.dryRun {
	case dryRunClient:
		run = a.preview
	case dryRunServer:
		run = a.rehearse
	}
	p, doc, err := run(ctx)
	if err != nil {
		return outcome{}, conn.explain(m.Namespace(), m.Name(), err)
	}
	a.tell(ctx, p)
	done := outcome{p.verb(), doc}
	return done, f.tellResult(o.output, o.dryRun, "configmap/"+m.Name(), done)
}

func (o *applyOptions) application(ctx context.Context, f *factory, conn *connection, set *set, m manifest.Manifest) (*application, error) {
	a, err := newApplication(ctx, f, conn, set, m, o.applyFlags)
	if err == nil {
		a.want, a.dry = o.guard.want(), o.dryRun != dryRunNone
	}
	return a, err
}

// pruneAfter deletes what is no longer given, if all that is given was applied:
// what could not be read might be among the members.
func (o *applyOptions) pruneAfter(ctx context.Context, conn *connection, set *set, manifests []manifest.Manifest, errs []error) []error {
	switch {
	case len(errs) > 0:
		return append(errs, errors.New("nothing was pruned, for not all that is given was applied"))
	case len(manifests) == 0:
		return append(errs, fmt.Errorf("nothing was pruned: no manifest is given, and the whole set %q would go; delete it with: cmctl delete -l %s=%s%s", o.setName, types.SetLabel, o.setName, conn.where))
	}
	return append(o.pruneAll(ctx, conn, set.leaving(manifests)), set.unseen...)
}
