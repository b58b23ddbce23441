package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"example.com/cmctl/cmd/cmctl/internal/fromfiles"
	"example.com/cmctl/cmd/cmctl/internal/intake"
	"example.com/cmctl/cmd/cmctl/internal/mirror"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// push is the folder's content on its way to the ConfigMap.
type push struct {
	*syncOptions
	conn   *connection
	record *mirror.Record // what the folder was last synced with, nil if never
	files  map[string][]byte
	passed []string         // keys whose files are passed over: they stay as they are
	told   []types.Change   // what the latest write changes
	forced []types.Conflict // of that, what somebody else had changed
	live   types.Document   // the copy that the last comparison was made with
}

// runFrom writes what was changed in the folder to the ConfigMap.
func (o *syncOptions) runFrom(ctx context.Context) error {
	conn, err := o.connect("sync")
	if err != nil {
		return err
	}
	if _, err := os.Stat(o.from); err != nil { // to open it would make it
		return intake.FileError(o.from, err)
	}
	folder, err := o.open(o.from)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := o.sameSource(conn, folder); err != nil {
		return err
	}
	p := &push{syncOptions: o, conn: conn}
	if err := p.read(folder); err != nil {
		return err
	}
	return p.run(ctx, folder)
}

func (p *push) read(folder *mirror.Folder) error {
	files, skipped, err := folder.Files()
	if err != nil {
		return err
	}
	if p.record, err = folder.Record(); err != nil {
		return err
	}
	for name := range files {
		if why := fromfiles.BadKey(name); why != "" {
			return fmt.Errorf("%s/%s can't be a key: %s; nothing was written", folder.Path(), name, why)
		}
	}
	for _, s := range skipped {
		p.note("%s/%s is passed over, and its key stays as it is: %s", folder.Path(), s.Name, s.Why)
		p.passed = append(p.passed, s.Name)
		if p.record != nil && p.record.Data[s.Name] != nil {
			files[s.Name] = p.record.Data[s.Name]
		}
	}
	if len(files) == 0 {
		return fmt.Errorf("the folder %s holds no file to sync; nothing was written (to remove all keys: cmctl unset)", folder.Path())
	}
	p.files = files
	return nil
}

func (p *push) run(ctx context.Context, folder *mirror.Folder) error {
	object := p.conn.ConfigMaps(p.conn.namespace).Object(p.name)
	options := p.retryOptions(p.progress(object))
	options.Want = p.guard.want()
	created := false
	res, err := retry.Upsert(ctx, object,
		func(context.Context) (types.Document, error) {
			created = true
			return p.fresh()
		},
		func(_ context.Context, live types.Document) (types.Document, error) {
			created = false
			return p.onto(live)
		}, options)
	if err != nil && !p.landedAndGone(err) {
		return p.conn.explain(p.conn.namespace, p.name, err)
	}
	word := "synced"
	switch {
	case created:
		word = "created"
	case res.Outcome == retry.Unchanged:
		word = "unchanged"
	}
	p.tell()
	p.tellDeletion(res.Object, dryRunNone)
	if err := p.say("configmap/%s %s", p.name, word); err != nil {
		return err
	}
	if res.Object == nil {
		return nil
	}
	return p.settle(folder, res.Object)
}

// settle records what the folder and the ConfigMap now agree on, and brings a
// mirror to what the ConfigMap has. A plain folder keeps its files: what others
// changed counts as theirs the next time too.
func (p *push) settle(folder *mirror.Folder, stored types.Document) error {
	record := p.recordFrom(p.conn, stored)
	record.Data = p.files
	if err := folder.Keep(record); err != nil {
		return fmt.Errorf("the ConfigMap is written, but the folder's record is not: %w", err)
	}
	mirrors, err := folder.Mirrors()
	if err != nil || !mirrors {
		return err
	}
	if _, err := folder.Write(p.recordFrom(p.conn, stored)); errors.As(err, new(*mirror.EditedError)) {
		p.note("%v; that is for the next sync", err)
	} else if err != nil {
		return fmt.Errorf("the ConfigMap is written, but the folder is not brought to what it has now: %w", err)
	}
	return nil
}

// with is a document whose data are these files.
func with(doc types.Document, files map[string][]byte) types.Document {
	next := doc.Clone()
	delete(next, "data")
	delete(next, "binaryData")
	for key, value := range files {
		next.Set(types.Field{Section: "data", Key: key}, types.ValueOf(value))
	}
	return next
}

// fresh is the object to create where there is none.
func (p *push) fresh() (types.Document, error) {
	if p.record != nil && !p.force {
		return nil, p.conflict(nil, "it was deleted since the folder was last synced with it", "recreate it from the folder with --force")
	}
	return with(types.NewDocument(p.conn.namespace, p.name), p.files), nil
}

// onto makes the next version of the live object.
func (p *push) onto(live types.Document) (types.Document, error) {
	p.live, p.told, p.forced = live, nil, nil
	if p.record == nil || p.record.UID != live.UID() {
		return p.overwrite(live)
	}
	bare := types.NewDocument(live.Namespace(), live.Name())
	m := types.Merge(with(bare, p.record.Data), with(bare, p.files), live)
	if live.ResourceVersion() != p.record.ResourceVersion {
		p.note("the folder was last synced with version %s; the object is at version %s", p.record.ResourceVersion, live.ResourceVersion())
	}
	if len(m.Conflicts) > 0 && !p.force {
		return nil, p.conflict(m.Conflicts, "the folder and somebody else changed the same thing", "bring the folder up to date, or take its side with --force")
	}
	p.forced = m.Conflicts
	m = m.Take(types.Mine)
	if len(m.Applied) == 0 {
		return nil, retry.ErrUnchanged
	}
	p.told = m.Applied
	return m.Document, p.leavesHelms(live, m.Applied)
}

// tell names what was written, and with its values what somebody else had
// changed and --force overwrote.
func (p *push) tell() {
	for _, c := range p.told {
		switch {
		case c.To == nil:
			p.note("  removed: %s (was %s)", c.Field, quote(c.From))
		case c.Merged:
			p.note("  merged with what others changed: %s", c.Field)
		default:
			p.note("  written: %s", c.Field)
		}
	}
	for _, c := range p.forced {
		p.note("  overwritten: %s: folder %s, live %s", c.Field, quote(c.Mine), quote(c.Live))
	}
}

// overwrite is for a folder that was never synced with this object: nothing
// tells which side changed what.
func (p *push) overwrite(live types.Document) (types.Document, error) {
	next := with(live, p.files)
	fields := live.Fields()
	for _, key := range p.passed {
		f := types.Field{Section: "data", Key: key}
		next.Set(f, fields[f])
	}
	changes := types.Diff(live, next)
	if len(changes) == 0 {
		return nil, retry.ErrUnchanged
	}
	if err := p.leavesHelms(live, changes); err != nil {
		return nil, err
	}
	conflicts := make([]types.Conflict, len(changes))
	for i, c := range changes {
		conflicts[i] = types.Conflict{Field: c.Field, Mine: c.To, Live: c.From}
	}
	if p.force {
		p.told, p.forced = changes, conflicts
		return next, nil
	}
	what := "the folder was never synced with it, and differs from it"
	if p.record != nil {
		what = "it was deleted and recreated since the folder was last synced with it, and the folder differs from it"
	}
	return nil, p.conflict(conflicts, what, fmt.Sprintf("get it with 'cmctl sync %s --to DIR%s' into another folder first, or take this folder's side with --force", p.name, p.conn.where))
}

func (p *push) leavesHelms(live types.Document, changes []types.Change) error {
	if p.force {
		return nil
	}
	return leavesHelms(live, changes)
}

func (p *push) conflict(fields []types.Conflict, what, next string) error {
	c := p.conn.conflict(p.conn.namespace, p.name, what+"; nothing was written", next)
	for _, f := range fields {
		sides := []sideValue{{"folder", f.Mine, ""}, {"live", f.Live, ""}}
		if p.record != nil && p.record.UID == p.live.UID() {
			sides = append([]sideValue{{"last sync", f.Base, ""}}, sides...)
		}
		c.add(f.Field, sides...)
	}
	return c
}
