package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

type applyOptions struct {
	*factory
	input  inputFlags
	force  bool
	keep   bool
	output string
}

func newApply(f *factory) *cobra.Command {
	o := &applyOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "apply -f FILE...",
		Short: "Bring ConfigMaps to what files say, without reverting what others changed",
		Long: `Bring ConfigMaps to what files say; those that don't exist are created.

What was last applied is recorded in the annotation that kubectl uses too. A
value that somebody changed since then is not overwritten: the command stops with
exit code 3 and shows both values and who wrote the other one. Decide with
--force (the file's side) or --keep (the live side). Keys that nobody applied
stay as they are.

A file made by 'cmctl get -o yaml' carries the version that it was made from:
your changes to it are made to the current object as edit would.`,
		Example: `  cmctl apply -f cm.yaml
  cmctl apply -f manifests/ -n team-a
  helm template . | cmctl apply -f -
  cmctl apply -f cm.yaml --force`,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := o.input.take(args)
			switch {
			case err != nil:
				return err
			case len(args) > 0:
				return usagef("unexpected argument %q; manifests are named with -f", args[0])
			case !o.input.given():
				return usagef("apply takes -f FILE")
			case o.force && o.keep:
				return usagef("--force and --keep contradict each other")
			}
			if err := checkOutput(o.output, "yaml", "json", "name"); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.input.add(cmd.Flags())
	cmd.Flags().BoolVar(&o.force, "force", false, "where the live object was changed since the last apply, take the file's value")
	cmd.Flags().BoolVar(&o.keep, "keep", false, "where the live object was changed since the last apply, keep the live value")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "print the objects: yaml, json or name")
	return cmd
}

func (o *applyOptions) run(ctx context.Context) error {
	conn, err := o.connect("apply")
	if err != nil {
		return err
	}
	manifests, errs := o.input.read(o.factory, conn)
	failed := o.inOrder(ctx, "apply", o.output, len(manifests), func(ctx context.Context, f *factory, i int) (outcome, error) {
		one := *o
		one.factory = f
		return one.apply(ctx, conn, manifests[i])
	})
	return oneOrMany(append(errs, failed...))
}

// apply brings one object to its manifest.
func (o *applyOptions) apply(ctx context.Context, conn *connection, m manifest.Manifest) (outcome, error) {
	a, err := o.newApplication(ctx, conn, m)
	if err != nil {
		return outcome{}, conn.explain(m.Namespace(), m.Name(), err)
	}
	object := conn.ConfigMaps(m.Namespace()).Object(m.Name())
	created := false
	res, err := retry.Upsert(ctx, object,
		func(context.Context) (types.Document, error) {
			created = true
			if a.live != nil {
				o.note("%s: %q was deleted meanwhile, and is created anew", m.Where(), m.Name())
			}
			return a.fresh()
		},
		func(_ context.Context, live types.Document) (types.Document, error) {
			created = false
			return a.onto(live)
		}, o.retryOptions(o.progress(object)))
	switch {
	case o.landedAndGone(err):
	case err != nil && !unknownOutcome(err) && errors.Is(err, errDisagree):
		return outcome{}, a.conflict(ctx)
	case err != nil:
		return outcome{}, conn.explain(m.Namespace(), m.Name(), err)
	}
	verb := "configured"
	switch {
	case created:
		verb = "created"
	case res.Outcome == retry.Unchanged:
		verb = "unchanged"
	}
	a.tell()
	return outcome{verb, res.Object}, o.sayDone(o.output, m.Name(), verb)
}

// errDisagree ends the loop when a person must decide.
var errDisagree = errors.New("the file and the live object disagree")

// application is one manifest on its way onto the live object, computed anew
// for each fresh copy.
type application struct {
	*applyOptions
	conn   *connection
	m      manifest.Manifest
	file   types.Document // the manifest without what only the server sets
	record string         // what the last-applied annotation will say
	from   types.Document // the version that the file was made from, if it says so

	live   types.Document // the copy that the last comparison was made with
	drifts []types.Drift
	kept   []types.Field
	gone   []types.Change // what the file no longer has and apply removed
	plain  bool           // live has no record of what was applied
}

func (o *applyOptions) newApplication(ctx context.Context, conn *connection, m manifest.Manifest) (*application, error) {
	a := &application{applyOptions: o, conn: conn, m: m, file: m.Clone()}
	if err := a.findOrigin(ctx); err != nil {
		return nil, err
	}
	dropped := a.file.DropServerFields()
	if a.from == nil && len(dropped) > 0 {
		o.note("%s: %s dropped: only the server sets them", m.Where(), strings.Join(dropped, ", "))
	}
	a.file.Set(lastApplied, nil)
	record, err := recordOf(a.file)
	if err != nil {
		return nil, err
	}
	a.record = record
	if size := annotationSize(a.file) + len(types.LastApplied) + len(record); a.from == nil && size > maxAnnotations {
		return nil, fmt.Errorf("%s: too big to apply: with the record of what was applied, which is kept in an annotation, the annotations would be %d bytes, and %d are allowed; nothing was written. 'cmctl create -f' and 'cmctl edit' need no record", m.Where(), size, maxAnnotations)
	}
	return a, nil
}

// findOrigin reads the version that a file made by 'get -o yaml' was made from.
func (a *application) findOrigin(ctx context.Context) error {
	uid, version := a.m.UID(), a.m.ResourceVersion()
	if uid == "" || version == "" {
		return nil
	}
	maps := a.conn.ConfigMaps(a.m.Namespace())
	live, err := retry.Read(ctx, maps.Object(a.m.Name()), a.retryOptions(a.progress(maps.Object(a.m.Name()))))
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case live.UID() != uid:
		return nil
	case live.ResourceVersion() == version:
		a.from = live
		return nil
	}
	a.from, err = maps.At(ctx, a.m.Name(), version)
	if errors.Is(err, client.ErrNoHistory) || apierrors.IsNotFound(err) || apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
		return &conflictError{
			object: maps.Object(a.m.Name()).Object(), server: a.conn.Target().String(),
			what: fmt.Sprintf("%s was made from version %s, the object is at version %s now, and the server doesn't keep the older one to compare with (%v); nothing was written",
				a.m.Where(), version, live.ResourceVersion(), err),
			next: "read it anew with 'cmctl get -o yaml', or remove resourceVersion and uid from the file to apply it by the record of the last apply",
		}
	}
	return err
}

// fresh is the object to create where there is none.
func (a *application) fresh() (types.Document, error) {
	doc := a.file.WithoutNulls()
	doc.Set(lastApplied, a.record)
	return doc, nil
}

// onto makes the next version of the live object.
func (a *application) onto(live types.Document) (types.Document, error) {
	a.live = live
	next, changed := a.merge(live)
	if len(a.drifts) > 0 && !a.force && !a.keep {
		return nil, errDisagree
	}
	if a.fromVersion(live) {
		// As after an edit the record stays what it was, so that the next
		// apply of the file that is on record finds the difference.
		if !changed {
			return nil, retry.ErrUnchanged
		}
		return next, nil
	}
	if recorded, _ := live.Annotation(types.LastApplied); !changed && recorded == a.record {
		return nil, retry.ErrUnchanged
	}
	next.Set(lastApplied, a.record)
	return next, nil
}

// fromVersion is true if the file says which version of this object it was made
// from.
func (a *application) fromVersion(live types.Document) bool {
	return a.from != nil && a.from.UID() == live.UID()
}

// merge compares by the file's own origin if it has one, else by the record of
// the last apply.
func (a *application) merge(live types.Document) (types.Document, bool) {
	if a.fromVersion(live) {
		return a.mergeFrom(live)
	}
	side := types.NeitherSide
	switch {
	case a.force:
		side = types.FileSide
	case a.keep:
		side = types.LiveSide
	}
	base := recordIn(live)
	a.plain = base == nil
	out := types.Apply(base, a.file, live, side)
	a.drifts, a.kept, a.gone = out.Drifts, out.Kept, removals(out.Changes)
	return out.Document, len(out.Changes) > 0
}

func (a *application) mergeFrom(live types.Document) (types.Document, bool) {
	from, _ := withoutRecord(a.from)
	bare, restore := withoutRecord(live)
	m := types.Merge(from, a.file.WithoutNulls(), bare)
	a.drifts = nil
	for _, c := range m.Conflicts {
		a.drifts = append(a.drifts, types.Drift{Field: c.Field, Base: c.Base, File: c.Mine, Live: c.Live})
		if a.force {
			m.Document.Set(c.Field, c.Mine)
			m.Applied = append(m.Applied, types.Change{Field: c.Field, From: c.Live, To: c.Mine})
		}
	}
	a.gone = removals(m.Applied)
	if live.ResourceVersion() != a.from.ResourceVersion() {
		a.note("%s was made from version %s; the object is at version %s", a.m.Where(), a.from.ResourceVersion(), live.ResourceVersion())
		a.reapplied(a.from, m, bare)
	}
	restore(m.Document)
	return m.Document, len(m.Applied) > 0
}

// removals are the changes that leave nothing of a field.
func removals(changes []types.Change) []types.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c types.Change) bool { return c.To != nil })
}

// tell notes what the person should know about a write that went through.
func (a *application) tell() {
	if a.plain && len(a.kept) > 0 && a.live != nil {
		names := make([]string, len(a.kept))
		for i, f := range a.kept {
			names[i] = f.String()
		}
		a.note("%s: kept, for nobody applied them and the file lacks them: %s", a.m.Where(), strings.Join(names, ", "))
	}
	for _, c := range a.gone {
		a.note("%s: removed, for the file no longer has it: %s (was %s)", a.m.Where(), c.Field, quote(c.From))
	}
	for _, d := range a.drifts {
		took := "overwritten by the file"
		if a.keep {
			took = "kept as it is live"
		}
		a.note("%s: %s: %s, file %s, live %s", a.m.Where(), d.Field, took, quote(d.File), quote(d.Live))
	}
}

// conflict shows the disagreements.
func (a *application) conflict(ctx context.Context) error {
	base, what := "last applied", "the file would revert what somebody changed since the last apply; nothing was written"
	switch {
	case a.fromVersion(a.live):
		base, what = "version "+a.from.ResourceVersion(), "the file and somebody else changed the same thing since version "+a.from.ResourceVersion()+"; nothing was written"
	case a.plain:
		base, what = "", "nobody has applied this object yet, and the file differs from it; nothing was written"
		if _, broken := a.live.Annotation(types.LastApplied); broken {
			what = "the record of what was last applied can't be read, and the file differs from the object; nothing was written"
		}
	}
	c := &conflictError{
		object: a.conn.ConfigMaps(a.m.Namespace()).Object(a.m.Name()).Object(), server: a.conn.Target().String(), what: a.m.Where() + ": " + what,
		next: "take the file's side with --force, keep the live one with --keep, or bring the file up to date",
	}
	find := newOrigins(a.conn, a.live)
	for _, d := range a.drifts {
		var sides []sideValue
		if base != "" {
			sides = append(sides, sideValue{base, d.Base, ""})
		}
		sides = append(sides, sideValue{"file", d.File, ""}, sideValue{"live", d.Live, find.of(ctx, d.Field)})
		c.add(d.Field, sides...)
	}
	return c
}
