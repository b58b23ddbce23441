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
	guard        guardFlags
	name         string
	files        []string
	from         fromFlags
	output       string
	dryRun       string
	allOrNothing bool
}

func newApply(f *factory) *cobra.Command {
	o := &applyOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "apply {-f FILE | NAME --from-...}",
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
			if err := o.take(args); err != nil {
				return err
			}
			if err := o.validate(cmd); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "`FILE` or folder with manifests, - for stdin; may be repeated")
	o.from.add(flags)
	o.applyFlags.add(flags)
	o.guard.add(flags)
	flags.BoolVar(&o.allOrNothing, "all-or-nothing", false, "write nothing if any of the manifests can't be applied")
	flags.StringVar(&o.dryRun, "dry-run", dryRunNone, "client: show what would be done, and only read; server: let the server check it, and store nothing")
	flags.StringVarP(&o.output, "output", "o", "", "print the objects: yaml, json or name")
	return cmd
}

// take gives the operands their meaning.
func (o *applyOptions) take(args []string) error {
	if len(o.files) > 0 {
		if len(args) > 0 {
			return usagef("unexpected argument %q; manifests are named with -f", args[0])
		}
		return nil
	}
	names, err := parseNames(args)
	switch {
	case err != nil:
		return err
	case len(names) != 1:
		return usagef("apply takes -f FILE, or one NAME with --from-literal, --from-file or --from-env-file")
	case !o.from.given():
		return usagef("apply %s: say what it holds with --from-literal, --from-file or --from-env-file; manifests are named with -f", names[0])
	}
	o.name = names[0]
	return nil
}

func (o *applyOptions) validate(cmd *cobra.Command) error {
	switch {
	case len(o.files) > 0 && o.from.given():
		return usagef("-f takes whole manifests; --from-... don't go with it")
	case o.prune && len(o.files) == 0:
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
	manifests, errs := o.manifests(conn)
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
	done, failed := o.applyAll(ctx, conn, set, manifests)
	errs = append(errs, failed...)
	if o.prune {
		errs = o.pruneAfter(ctx, conn, set, manifests, errs)
	}
	if err := o.print(done, len(manifests) > 1); err != nil {
		return err
	}
	return oneOrMany(errs)
}

// manifests are what is to be applied, each with its namespace.
func (o *applyOptions) manifests(conn *connection) ([]manifest.Manifest, []error) {
	if o.name != "" {
		m := manifest.Manifest{Document: types.NewDocument(conn.namespace, o.name), File: "the command line"}
		if err := o.from.fill(m.Document, o.note); err != nil {
			return nil, []error{err}
		}
		return []manifest.Manifest{m}, nil
	}
	manifests, errs := manifest.Read(o.files, o.In)
	manifests, misplaced := conn.placeAll(manifests)
	return manifests, append(errs, misplaced...)
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

// applyAll brings each object to its manifest, and returns those that were.
func (o *applyOptions) applyAll(ctx context.Context, conn *connection, set *set, manifests []manifest.Manifest) (done []types.Document, errs []error) {
	for i, m := range manifests {
		if err := untried(ctx, len(manifests)-i); err != nil {
			return done, append(errs, err)
		}
		doc, err := o.apply(ctx, o.factory, conn, set, m)
		if err != nil {
			errs = append(errs, err)
		} else if doc != nil {
			done = append(done, doc)
		}
	}
	return done, errs
}

// apply brings one object to its manifest. Its line of result and its notes go to
// f, which may collect them. The object is nil if it was deleted since.
func (o *applyOptions) apply(ctx context.Context, f *factory, conn *connection, set *set, m manifest.Manifest) (types.Document, error) {
	a, err := o.application(ctx, f, conn, set, m)
	if err != nil {
		return nil, conn.explain(m.Namespace(), m.Name(), err)
	}
	run := a.write
	switch o.dryRun {
	case dryRunClient:
		run = a.preview
	case dryRunServer:
		run = a.rehearse
	}
	p, doc, err := run(ctx)
	if err != nil {
		return nil, conn.explain(m.Namespace(), m.Name(), err)
	}
	a.tell(p)
	return doc, o.tellResult(f, m.Name(), p.verb())
}

func (o *applyOptions) application(ctx context.Context, f *factory, conn *connection, set *set, m manifest.Manifest) (*application, error) {
	a, err := newApplication(ctx, f, conn, set, m, o.applyFlags)
	if err == nil {
		a.want = o.guard.want()
	}
	return a, err
}

// tellResult prints the line of one object, unless objects are printed in its
// place.
func (o *applyOptions) tellResult(f *factory, name, verb string) error {
	dry := o.dryRun != dryRunNone
	if dry {
		verb += " (dry run)"
	}
	switch o.output {
	case "":
		return f.say("configmap/%s %s", name, verb)
	case "name":
		return f.say("configmap/%s", name)
	}
	if dry {
		f.note("configmap/%s %s", name, verb)
	}
	return nil
}

// print writes the objects as -o asks: one as it is, several as a List.
func (o *applyOptions) print(done []types.Document, several bool) error {
	if o.output == "" || o.output == "name" || len(done) == 0 {
		return nil
	}
	if !several {
		return printWritten(o.Out, o.output, done[0])
	}
	for i, d := range done {
		done[i] = d.Clone()
		done[i].SetMeta("managedFields", nil)
	}
	return printDocument(o.Out, o.output, asList(done))
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
