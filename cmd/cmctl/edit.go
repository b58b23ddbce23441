package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

type editOptions struct {
	*factory
	name string
}

func newEdit(f *factory) *cobra.Command {
	o := &editOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "edit NAME",
		Short: "Edit a ConfigMap in your editor; what others change meanwhile stays",
		Long: `Edit a ConfigMap in the editor that $CMCTL_EDITOR, $KUBE_EDITOR, $VISUAL or
$EDITOR names, else vi.

What you changed is written on the version that you were shown. If somebody wrote
in between, the object is read again and your change, nothing else, is made to
the fresh copy. A key that both of you changed is left as it is: both values are
shown, and your text is kept in a file.`,
		Example: `  cmctl edit flags
  cmctl edit cm/flags -n team-a
  CMCTL_EDITOR='code --wait' cmctl edit flags`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := parseNames(args)
			if err != nil {
				return err
			}
			if len(names) != 1 {
				return usagef("edit takes one NAME")
			}
			o.name = names[0]
			return o.run(cmd.Context())
		},
	}
	return cmd
}

func (o *editOptions) run(ctx context.Context) error {
	if _, err := o.editorCommand(); err != nil {
		return err // before anything is read
	}
	conn, err := o.connect("edit")
	if err != nil {
		return err
	}
	object := conn.ConfigMaps(conn.namespace).Object(o.name)
	start, err := retry.Read(ctx, object, o.retryOptions(o.progress(object)))
	if err != nil {
		return conn.explain(conn.namespace, o.name, err)
	}
	base, shown, err := showForEdit(start)
	if err != nil {
		return conn.explain(conn.namespace, o.name, err)
	}
	d, err := newDraft(o.name, shown)
	if err != nil {
		return err
	}
	o.interrupts.keeps(d.path)
	return d.settle(o.edit(ctx, conn, d, base, start), conn.where)
}

// showForEdit is the text that the person gets, and the document which that
// text says: what changed is found by comparing with that one, so that whatever
// the text can't show counts as untouched.
func showForEdit(doc types.Document) (base types.Document, text []byte, err error) {
	// The record of the last apply is no text of a person's: a substitution
	// through the whole file would change it too, and apply would then take
	// the edit for something that was applied.
	clean, _ := withoutRecord(doc)
	clean.SetMeta("managedFields", nil)
	if text, err = asYAML(clean); err != nil {
		return nil, nil, err
	}
	if base, err = manifest.ParseYAML(text); err != nil {
		return nil, nil, fmt.Errorf("this object can't be shown as YAML without changing it: %w", err)
	}
	if changes := types.Diff(clean, base); len(changes) > 0 && changes[0].Field.Section != "" {
		return nil, nil, fmt.Errorf("this object can't be shown as YAML without changing %s", changes[0].Field)
	}
	return base, text, nil
}

// edit opens the editor and writes what the person made.
func (o *editOptions) edit(ctx context.Context, conn *connection, d *draft, base, start types.Document) error {
	opened := o.now()
	if err := o.openEditor(d.path); err != nil {
		return err
	}
	text, err := d.read()
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if bytes.Equal(text, d.shown) {
		o.note("Edit cancelled: nothing was changed.")
		if o.now().Sub(opened) < hasty {
			d.leave()
			o.note("The editor returned at once. If it opened a window of its own, it needs the flag that makes it wait (code --wait, subl -w, gvim -f).\nWhat you save there is in %s; write it with: cmctl apply -f %s%s", d.path, d.path, conn.where)
		}
		return nil
	}
	mine, err := parseEdited(d.path, text, base)
	if err != nil {
		return err
	}
	if _, recorded := start.Annotation(types.LastApplied); recorded {
		if _, given := mine.Annotation(types.LastApplied); given {
			return fmt.Errorf("%s: the annotation %s is kept by apply and can't be changed by edit; remove it from the text", d.path, types.LastApplied)
		}
	}
	if len(types.Diff(base, mine)) == 0 {
		o.note("Edit cancelled: nothing was changed but the layout, or what only the server sets.")
		return nil
	}
	return o.write(ctx, conn, base, mine, start)
}

// hasty is how soon an editor returns in which nobody can have edited.
const hasty = time.Second

// parseEdited reads the person's text and refuses what can't be meant.
func parseEdited(path string, text []byte, base types.Document) (types.Document, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("edit cancelled: the saved file is empty; nothing was written (to delete the object: cmctl delete)")
	}
	docs := manifest.Split(text)
	if len(docs) > 1 {
		return nil, &manifest.Fault{File: path, Line: docs[1].Line, Message: "a second document begins here; edit writes one object"}
	}
	found, faults := manifest.Parse(path, text, base)
	switch {
	case len(faults) > 0:
		return nil, oneOrMany(faults)
	case len(found) == 0:
		return nil, errors.New("edit cancelled: the saved file holds nothing but comments; nothing was written (to delete the object: cmctl delete)")
	}
	mine := found[0].Document
	for _, p := range mine.Problems(false) {
		if !manifest.Untouched(base, mine, p.Path) {
			return nil, &manifest.Fault{File: path, Line: (&manifest.Source{Text: text, Begin: 1}).LineOf(p.Path), Message: p.Message}
		}
	}
	for _, id := range []struct{ field, was, now string }{
		{"metadata.name", base.Name(), mine.Name()},
		{"metadata.namespace", base.Namespace(), mine.Namespace()},
		{"metadata.uid", base.UID(), mine.UID()},
	} {
		if id.was != id.now {
			return nil, fmt.Errorf("%s: %s can't be changed by edit (from %q to %q); make another object with 'cmctl create -f'", path, id.field, id.was, id.now)
		}
	}
	return mine, nil
}

// write puts the person's change on the version that was shown, or makes it
// again on a fresh copy.
func (o *editOptions) write(ctx context.Context, conn *connection, base, mine, start types.Document) error {
	object := conn.ConfigMaps(conn.namespace).Object(o.name)
	live, known := start, start
	var applied []types.Change
	edit := func(_ context.Context, fresh types.Document) (types.Document, error) {
		live, applied = fresh, nil
		bare, restore := withoutRecord(fresh)
		m := types.Merge(base, mine, bare)
		if fresh.ResourceVersion() != known.ResourceVersion() {
			o.reapplied(known, m, bare)
			known = fresh
		}
		switch {
		case len(m.Conflicts) > 0:
			return nil, &types.ConflictError{Conflicts: m.Conflicts}
		case len(m.Applied) == 0:
			return nil, retry.ErrUnchanged
		}
		applied = m.Applied
		restore(m.Document)
		return m.Document, nil
	}
	res, err := retry.UpdateFrom(ctx, object, start, edit, o.retryOptions(o.progress(object)))
	var both *types.ConflictError
	switch {
	case o.landedAndGone(err):
	case err != nil && !unknownOutcome(err) && errors.As(err, &both):
		return o.editConflict(ctx, conn, start, live, both.Conflicts)
	case apierrors.IsNotFound(err) && !unknownOutcome(err):
		return &deletedError{object: object.Object(), server: conn.Target().String(), err: err}
	case err != nil:
		return conn.explain(conn.namespace, o.name, err)
	case res.Outcome == retry.Unchanged:
		o.note("Nothing to write: the object has all of your changes already.")
		return nil
	default:
		if err := stored(res.Object, live, applied); err != nil {
			return conn.explain(conn.namespace, o.name, err)
		}
	}
	return o.say("configmap/%s edited", o.name)
}

// stored checks that the server kept what it was sent: one that doesn't know a
// field drops it and reports a success.
func stored(got, sentOn types.Document, changes []types.Change) error {
	if len(changes) == 0 || got.ResourceVersion() != sentOn.ResourceVersion() {
		return nil
	}
	names := make([]string, len(changes))
	for i, c := range changes {
		names[i] = c.Field.String()
	}
	return fmt.Errorf("the server accepted the write and stored nothing of it (%s): it doesn't keep these fields", strings.Join(names, ", "))
}

// deletedError says that the object went away while a person edited it.
type deletedError struct {
	object string
	server string
	err    error
}

func (e *deletedError) Error() string {
	return fmt.Sprintf("%s on %s was deleted while you edited it; nothing was written", e.object, e.server)
}

func (e *deletedError) Unwrap() error { return e.err }

func (o *editOptions) editConflict(ctx context.Context, conn *connection, start, live types.Document, conflicts []types.Conflict) error {
	c := &conflictError{
		object: conn.ConfigMaps(conn.namespace).Object(o.name).Object(),
		server: conn.Target().String(),
		what:   "you and somebody else changed the same thing; nothing was written",
		next:   fmt.Sprintf("run 'cmctl edit %s%s' again to decide on the fresh object", o.name, conn.where),
	}
	find := newOrigins(conn, live)
	for _, f := range conflicts {
		c.add(f.Field,
			sideValue{"when you opened it (version " + start.ResourceVersion() + ")", f.Base, ""},
			sideValue{"yours", f.Mine, ""},
			sideValue{"now (version " + live.ResourceVersion() + ")", f.Live, find.of(ctx, f.Field)})
	}
	return c
}
