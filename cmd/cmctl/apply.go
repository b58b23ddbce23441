package main

import (
	"context"
	"errors"
	"fmt"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

type applyOptions struct {
	*factory
	applyFlags
	sourceFlags
	guard        guardFlags
	output       string
	dryRun       string
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
	o.guard.add(flags)
	flags.BoolVar(&o.allOrNothing, "all-or-nothing", false, "write nothing if any of the manifests can't be applied")
	addDryRun(flags, &o.dryRun)
	flags.StringVarP(&o.output, "output", "o", "", "print the objects: yaml, json or name")
	return cmd
}

func (o *applyOptions) validate(cmd *cobra.Command) error {
	if o.prune && !o.input.given() {
		return usagef("--prune deletes what the manifests of -f no longer give")
	}
	for _, err := range []error{o.applyFlags.validate(), o.guard.validate(cmd.Flags()), validateDryRun(o.dryRun)} {
		if err != nil {
			return err
		}
	}
	return checkOutput(o.output, "yaml", "json", "name")
}

func (o *applyOptions) run(ctx context.Context) error {
	conn, err := o.connectDry("apply", o.dryRun == dryRunServer)
	if err != nil {
		return err
	}
	manifests, errs := o.manifests(o.factory, conn)
	if err := o.checkGuard(manifests, len(errs)); err != nil {
		return err
	}
	if len(errs) > 0 && o.allOrNothing {
		return oneOrMany(append(errs, errors.New("nothing was written, as --all-or-nothing asks")))
	}
	set, err := o.open(ctx, conn, manifests)
	if err != nil {
		return oneOrMany(append(errs, err))
	}
	failed := o.inOrder(ctx, "apply", o.output, len(manifests), func(ctx context.Context, f *factory, i int) (outcome, error) {
		return o.apply(ctx, f, conn, set, manifests[i])
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
	if !o.guard.given() {
		return nil
	}
	if len(manifests)+faults > 1 {
		return usagef("--resource-version and --uid are of one object, and several are given")
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
	return openSet(ctx, o.factory, conn, o.setName, manifests)
}

// apply brings one object to its manifest. What there is to tell of it goes to f.
func (o *applyOptions) apply(ctx context.Context, f *factory, conn *connection, set *set, m manifest.Manifest) (outcome, error) {
	a, err := newApplication(ctx, f, conn, m, o.applyFlags)
	if err != nil {
		return outcome{}, conn.explain(m.Namespace(), m.Name(), err)
	}
	a.set, a.want = set, o.guard.want()
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
	a.tell(p)
	return outcome{p.verb(), doc}, f.tellResult(o.output, o.dryRun, "configmap/"+m.Name(), p.verb())
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
	return o.pruneAll(ctx, conn, set.leaving(manifests))
}

// errDisagree ends the loop when a person must decide.
var errDisagree = errors.New("the file and the live object disagree")

// write stores what the application makes of the object, computed anew for each
// fresh copy, and returns the last plan and the object as it is now.
func (a *application) write(ctx context.Context) (plan, types.Document, error) {
	var p plan
	var target retry.Creator[types.Document] = a.object()
	if a.serverSide {
		target = serverTarget{a.object(), a, &p}
	}
	res, err := retry.Upsert(ctx, target,
		func(context.Context) (types.Document, error) {
			if p.live != nil {
				a.note("%s: %q was deleted meanwhile, and is created anew", a.m.Where(), a.m.Name())
			}
			var err error
			p, err = a.fresh()
			return p.written(), err
		},
		func(_ context.Context, live types.Document) (types.Document, error) {
			var err error
			p, err = a.onto(live)
			switch {
			case err != nil:
				return nil, err
			case p.open:
				return nil, errDisagree
			case p.idle:
				return nil, retry.ErrUnchanged
			}
			return p.written(), nil
		}, a.options())
	var refused *contestedError
	switch {
	case a.landedAndGone(err):
		return p, nil, nil
	case err != nil && !unknownOutcome(err) && errors.Is(err, errDisagree):
		return p, nil, a.conflict(ctx, p)
	case err != nil && !unknownOutcome(err) && errors.As(err, &refused):
		return p, nil, a.contested(p, refused)
	}
	return p, res.Object, err
}

// preview shows what a write would store. It reads only.
func (a *application) preview(ctx context.Context) (plan, types.Document, error) {
	p, err := a.plan(ctx)
	if err == nil && p.open {
		err = a.conflict(ctx, p)
	}
	return p, p.next, err
}

// rehearse lets the server check a write that it doesn't store, and looks
// whether it didn't: there are servers that pass over what they don't know.
func (a *application) rehearse(ctx context.Context) (plan, types.Document, error) {
	p, doc, err := a.write(ctx)
	if err != nil {
		return p, doc, err
	}
	version := func(d types.Document) string {
		if d == nil {
			return "none"
		}
		return d.ResourceVersion()
	}
	now, err := a.read(ctx)
	if apierrors.IsNotFound(err) {
		now, err = nil, nil
	}
	if err == nil && version(now) != version(p.live) {
		err = fmt.Errorf("THE DRY RUN MAY HAVE BEEN STORED: %s on %s was at version %s and is at version %s now: either this server does not know dry runs, or somebody wrote at the same moment; look at it with 'cmctl get %s -o yaml%s'",
			a.object().Object(), a.conn.Target(), version(p.live), version(now), a.m.Name(), a.conn.where)
	}
	return p, doc, err
}
