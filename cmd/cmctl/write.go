package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
}

func (w *writeFlags) add(flags *pflag.FlagSet) {
	w.guard.add(flags)
	addDryRun(flags, &w.dryRun)
	flags.StringVarP(&w.output, "output", "o", "", "print the object: yaml, json or name")
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

// writer makes one verb's changes and tells what came of them.
type writer struct {
	*factory
	writeFlags
	conn    *connection
	several bool             // more than one object may be printed
	printed []types.Document // what -o shows at the end
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

// apply makes a change and tells of it. Its result is how the change ended,
// and what the object is then.
func (w *writer) apply(ctx context.Context, c change) (retry.Result[types.Document], error) {
	object := w.conn.ConfigMaps(w.conn.namespace).Object(c.name)
	if c.target == nil {
		c.target = object
	}
	a := &attempt{change: c, f: w.factory}
	res, err := w.send(ctx, c, a)
	switch {
	case w.landedAndGone(err):
		return res, w.tell(c.name, c.word(a.on, nil), nil)
	case err == nil && res.Outcome == retry.Unchanged:
		return res, w.tell(c.name, "unchanged", res.Object)
	case err == nil:
		err = w.verify(ctx, a, res)
	}
	if err != nil {
		return res, w.explain(a, err)
	}
	return res, w.tell(c.name, c.word(a.on, res.Object), res.Object)
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
	f    *factory
	seen []types.Change // what was checked last
	on   types.Document // the copy that the edit was made from
	next types.Document
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

// check refuses what no server takes, and looks at what the change makes of the
// values, unless it has looked at the same already: a warning is given once,
// however often the change is made.
func (a *attempt) check(ctx context.Context, before, after types.Document) error {
	if err := tooLarge(after); err != nil {
		return unwritten(err)
	}
	changes := types.Diff(before, after)
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
func (w *writer) verify(ctx context.Context, a *attempt, res retry.Result[types.Document]) error {
	switch {
	case a.next == nil || w.dryRun == dryRunClient:
		return nil
	case w.dryRun == dryRunNone:
		return stored(res.Object, a.on, types.Diff(a.on, a.next))
	}
	now, err := retry.Read(ctx, a.target, w.retryOptions(nil))
	switch was := a.on.ResourceVersion(); {
	case err != nil:
		w.note("warning: whether the dry run stored nothing could not be looked up: %v", err)
	case now.ResourceVersion() == was:
	case now.ResourceVersion() == res.Object.ResourceVersion():
		return fmt.Errorf("the server does not know dry runs: it STORED this change, as version %s; version %s was there before",
			now.ResourceVersion(), was)
	default:
		w.note("warning: somebody else wrote during the dry run, which was made from version %s; the version is %s now", was, now.ResourceVersion())
	}
	return nil
}

// explain adds to a failed change its object, and the way out where there is
// one that the server can't know.
func (w *writer) explain(a *attempt, err error) error {
	switch {
	case unknownOutcome(err):
	case apierrors.IsInvalid(err) && a.on != nil && a.on["immutable"] == true:
		err = &hintedError{err, fmt.Sprintf("its data can't change, for it is immutable: make another one with 'cmctl copy %s NEWNAME%s', or delete it and create it anew", a.name, w.conn.where)}
	case apierrors.IsConflict(err) && w.guard.resourceVersion != "":
		err = &hintedError{err, fmt.Sprintf("look at what it is now with 'cmctl get %s -o yaml%s', and decide", a.name, w.conn.where)}
	case apierrors.IsNotFound(err) && a.hint != "" && missingNamespace(err) == "":
		err = &hintedError{err, a.hint}
	}
	return w.conn.explain(w.conn.namespace, a.name, err)
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
	object := w.conn.ConfigMaps(w.conn.namespace).Object(doc.Name()).Object()
	return &dispute{
		err:    &conflictError{object: object, server: w.conn.Target().String()},
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

// tell prints the line of result, or keeps the object for -o.
func (w *writer) tell(name, what string, doc types.Document) error {
	if w.output != "" {
		if doc == nil { // it was deleted since
			return nil
		}
		w.printed = append(w.printed, doc)
		return nil
	}
	return w.say("configmap/%s %s", name, dryly(what, w.dryRun))
}

// finish prints what -o asks for, and passes on what went wrong.
func (w *writer) finish(errs ...error) error {
	if err := w.print(); err != nil {
		errs = append(errs, err)
	}
	return oneOrMany(errs)
}

func (w *writer) print() error {
	if w.output != "" && w.dryRun != dryRunNone {
		w.note("%s", dryly("nothing was stored", w.dryRun))
	}
	if len(w.printed) == 0 && (!w.several || w.output == "") {
		return nil
	}
	if err := printWritten(w.Out, w.output, w.several, w.printed...); err != nil {
		return fmt.Errorf("it is done, but the result can't be printed: %w", err)
	}
	return nil
}
