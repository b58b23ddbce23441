package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// writeFlags are what every verb takes that changes objects which are there.
type writeFlags struct {
	guard  guardFlags
	dryRun string
	output string
	helm   bool // write the data of Helm's release records too: --force
}

func (w *writeFlags) add(flags *pflag.FlagSet) {
	w.guard.add(flags)
	addDryRun(flags, &w.dryRun)
	addOutput(flags, &w.output)
}

func (w *writeFlags) validate(flags *pflag.FlagSet) error {
	if err := validateDryRun(w.dryRun); err != nil {
		return err
	}
	if err := w.guard.validate(flags); err != nil {
		return err
	}
	return checkOutput(w.output, "yaml", "json", "name")
}

// addOutput adds -o of the verbs that print what they wrote.
func addOutput(flags *pflag.FlagSet, output *string) {
	flags.StringVarP(output, "output", "o", "", "print what was written: yaml, json or name")
}

// writer makes one verb's changes and tells what came of them.
type writer struct {
	*factory
	writeFlags
	conn *connection
}

// writer connects for a verb.
func (f *factory) writer(verb string, flags writeFlags) (*writer, error) {
	conn, err := f.connect(verb)
	if err != nil {
		return nil, err
	}
	return f.writerOn(conn, flags), nil
}

// writerOn is a writer on a connection that is there.
func (f *factory) writerOn(conn *connection, flags writeFlags) *writer {
	if flags.dryRun == dryRunServer {
		conn.storeNothing()
	}
	return &writer{factory: f, writeFlags: flags, conn: conn}
}

// change is what a verb does to one object.
type change struct {
	name string
	// checks look at the values that the change writes; nil if it writes none.
	checks *contentChecks
	edit   retry.Edit[types.Document]
	// word tells what was done, for the line of result: labeled. now is nil if
	// the object is gone again.
	word func(was, now types.Document) string
	// computed: the result depends on what is read, so it must not be made twice.
	computed bool
	// uid is the object that was chosen, if one was.
	uid string
	// target makes the write in a way of its own; nil is the object itself.
	target retry.Target[types.Document]
	// hint is what to do if there is none; empty is the usual one.
	hint string
	// make is the object to create if there is none; nil refuses that.
	make func(context.Context) (types.Document, error)
}

// options are the caps and conditions of a change.
func (w *writer) options(c change, target retry.Target[types.Document]) retry.Options {
	o := w.persistent(w.progress(target))
	o.Computed = c.computed
	o.Want = w.guard.want()
	if o.Want.UID == "" {
		o.Want.UID = c.uid
	}
	return o
}

// one makes the change of a verb that is about one object.
func (w *writer) one(ctx context.Context, verb string, c change) error {
	return w.ending(ctx, verb, func() (outcome, error) { return w.apply(ctx, c) })
}

// ending prints what -o asks for of a verb's one object.
func (w *writer) ending(ctx context.Context, verb string, do func() (outcome, error)) error {
	return oneOrMany(w.inOrder(ctx, verb, results{form: w.output}, 1, func(context.Context, *factory, int) (outcome, error) { return do() }))
}

// unchanged is the word for a change that the object had already.
const unchanged = "unchanged"

// apply makes a change and tells of it.
func (w *writer) apply(ctx context.Context, c change) (outcome, error) {
	object := w.conn.ConfigMaps(w.conn.namespace).Object(c.name)
	if c.target == nil {
		c.target = object
	}
	a := &attempt{change: c, f: w.factory, force: w.helm}
	res, err := w.send(ctx, c, a)
	switch {
	case w.landedAndGone(err):
		return w.told(c.name, c.word(a.on, nil), nil)
	case err == nil && res.Outcome == retry.Unchanged:
		return w.told(c.name, unchanged, res.Object)
	case err == nil:
		err = w.verify(ctx, a, res.Object)
	}
	if err != nil {
		return outcome{}, w.explain(a, err)
	}
	return w.told(c.name, c.word(a.on, res.Object), res.Object)
}

// send lets the change happen, or makes its result here for a dry run.
func (w *writer) send(ctx context.Context, c change, a *attempt) (retry.Result[types.Document], error) {
	o := w.options(c, c.target)
	creator, _ := c.target.(retry.Creator[types.Document])
	switch {
	case w.dryRun == dryRunClient:
		return a.here(ctx, o)
	case c.make != nil && creator != nil:
		return retry.Upsert(ctx, creator, a.create, a.edit, o)
	}
	return retry.Update(ctx, c.target, a.edit, o)
}

// attempt is a change with what its latest edit saw and made.
type attempt struct {
	change
	f     *factory
	force bool           // as the flag of that name says
	seen  []types.Change // what was checked last
	on    types.Document // the copy that the edit was made from
	next  types.Document
}

func (a *attempt) edit(ctx context.Context, fresh types.Document) (types.Document, error) {
	a.on, a.next = fresh, nil
	next, err := a.change.edit(ctx, fresh)
	if err != nil {
		return nil, err
	}
	a.next = next
	return next, a.check(ctx, fresh, next)
}

// check refuses what no server takes, what is Helm's, and what is immutable, and looks at what the change
// makes of the values, unless it has looked at the same already: a warning is given
// once, however often the change is made.
func (a *attempt) check(ctx context.Context, before, after types.Document) error {
	if err := tooLarge(after); err != nil {
		return unwritten(err)
	}
	changes := types.Diff(before, after)
	if err := leavesHelms(before, changes); err != nil && !a.force {
		return err
	}
	if err := types.Frozen(before, changes); err != nil {
		return err
	}
	same := func(x, y types.Change) bool { return x.Field == y.Field && types.SameValue(x.To, y.To) }
	if a.checks == nil || slices.EqualFunc(a.seen, changes, same) {
		return nil
	}
	a.seen = changes
	return a.f.checkContent(ctx, a.checks, a.target.Object(), before, after)
}

// create is make with its values checked.
func (a *attempt) create(ctx context.Context) (types.Document, error) {
	made, err := a.make(ctx)
	if err != nil {
		return nil, err
	}
	a.on, a.next = nil, made
	return made, a.check(ctx, nil, made)
}

// here is a dry run without the server: what would be sent is the result.
func (a *attempt) here(ctx context.Context, o retry.Options) (retry.Result[types.Document], error) {
	var result retry.Result[types.Document]
	fresh, err := retry.Read(ctx, a.target, o)
	switch {
	case err == nil:
		result.Object, err = a.edit(ctx, fresh)
		if errors.Is(err, retry.ErrUnchanged) {
			result.Object, result.Outcome = fresh, retry.Unchanged
			return result, nil
		}
	case apierrors.IsNotFound(err) && a.make != nil:
		result.Object, err = a.create(ctx)
	}
	result.Outcome = retry.Written
	return result, err
}

// verify looks for servers that didn't do what they were asked for: that drop
// what they don't know and report a success, or that store a dry run.
func (w *writer) verify(ctx context.Context, a *attempt, got types.Document) error {
	switch {
	case w.dryRun == dryRunServer:
		return w.checkUnstored(ctx, a.target, a.on, got)
	case w.dryRun == dryRunNone && a.on != nil:
		return stored(got, a.on, types.Diff(a.on, a.next))
	}
	return nil
}

// stored checks that the server kept what it was sent: one that doesn't know a
// field drops it and reports a success. One that is gone by this write has no version
// after it.
func stored(got, sentOn types.Document, changes []types.Change) error {
	if len(changes) == 0 || got.ResourceVersion() != sentOn.ResourceVersion() || endsDeletion(got, finalizers(got)) {
		return nil
	}
	fields := make([]types.Field, len(changes))
	for i, c := range changes {
		fields[i] = c.Field
	}
	return fmt.Errorf("the server accepted the write and stored nothing of it (%s): it doesn't keep these fields", strings.Join(fieldNames(fields), ", "))
}

// explain adds to a failed change its object, and the way out where there is
// one that the server can't know.
func (w *writer) explain(a *attempt, err error) error {
	switch {
	case unknownOutcome(err):
	case apierrors.IsConflict(err) && w.guard.resourceVersion != "":
		err = w.askToDecide(a.name, err)
	case apierrors.IsNotFound(err) && a.hint != "" && missingNamespace(err) == "":
		err = &hintedError{err, a.hint}
	}
	return w.conn.explain(w.conn.namespace, a.name, err)
}

// askToDecide adds to a condition that does not hold what to do about it.
func (w *writer) askToDecide(name string, err error) error {
	return &hintedError{err, fmt.Sprintf("look at what it is now with 'cmctl get %s -o yaml%s', and decide", name, w.conn.where)}
}

// dispute gathers what of an object stands in the way of a change, for a person
// or a script to decide.
type dispute struct {
	err    *conflictError
	doc    types.Document
	fields map[types.Field]any
	find   *origins
}

func (w *writer) dispute(doc types.Document) *dispute {
	return &dispute{
		err:    w.conn.conflict(w.conn.namespace, doc.Name(), "", ""),
		doc:    doc,
		fields: doc.Fields(),
		find:   newOrigins(w.conn, doc),
	}
}

// add shows a field as it was wanted, and as it is and who made it so.
func (d *dispute) add(ctx context.Context, f types.Field, wanted ...sideValue) {
	now := sideValue{label: "now", value: d.fields[f]}
	if v := d.doc.ResourceVersion(); v != "" {
		now.label = "now (version " + v + ")"
	}
	if now.value != nil {
		now.origin = d.find.of(ctx, f)
	}
	d.err.add(f, append(wanted, now)...)
}

// end is the error, if anything was added.
func (d *dispute) end(what, next string) error {
	if len(d.err.fields) == 0 {
		return nil
	}
	d.err.what, d.err.next = what, next
	return d.err
}

// told tells what came of an object, nil if it was deleted since.
func (w *writer) told(name, what string, doc types.Document) (outcome, error) {
	done := outcome{what, doc}
	return done, w.tellResult(w.output, w.dryRun, "configmap/"+name, done)
}
