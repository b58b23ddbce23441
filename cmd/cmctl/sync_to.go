package main

import (
	"context"
	"errors"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/mirror"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
)

// runTo writes the ConfigMap into the folder, once or each time it changes.
func (o *syncOptions) runTo(ctx context.Context) error {
	conn, err := o.connect("sync")
	if err != nil {
		return err
	}
	folder, err := o.open(o.to)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := o.sameSource(conn, folder); err != nil {
		return err
	}
	if o.watch {
		return o.follow(ctx, conn, folder)
	}
	doc, err := o.readOne(ctx, conn.ConfigMaps(conn.namespace).Object(o.name))
	if err != nil {
		return conn.explain(conn.namespace, o.name, err)
	}
	return o.write(ctx, conn, folder, doc)
}

// sameSource refuses a folder that is in step with another ConfigMap.
func (o *syncOptions) sameSource(conn *connection, folder *mirror.Folder) error {
	record, err := folder.Record()
	if err != nil || record == nil || o.force {
		return err
	}
	now := o.recordFrom(conn, types.NewDocument(conn.namespace, o.name))
	if conn.Target().Is(record.Server) {
		now.Server = record.Server
	}
	if !record.SameObject(now) {
		return &conflictError{
			object: "the folder " + folder.Path(), server: conn.Target().String(),
			what: "it is synced with configmaps \"" + record.Name + "\" in namespace \"" + record.Namespace + "\" on " + record.Server + "; nothing was written",
			next: "give another folder, or take this one with --force",
		}
	}
	return nil
}

// write brings the folder to the document, and tells programs of a change.
func (o *syncOptions) write(ctx context.Context, conn *connection, folder *mirror.Folder, doc types.Document) error {
	before, err := folder.Record()
	if err != nil {
		return err
	}
	next := o.recordFrom(conn, doc)
	write := folder.Write
	if o.force {
		write = folder.Overwrite
	}
	changed, err := write(next)
	if err != nil {
		return o.refused(conn, err)
	}
	if !changed {
		if err := o.say("configmap/%s unchanged", o.name); err != nil {
			return err
		}
		return o.tellProgram(ctx, conn, folder, doc)
	}
	keys := mirror.ChangedKeys(next.Data, nil)
	if before != nil {
		keys = mirror.ChangedKeys(before.Data, next.Data)
	}
	if err := o.say("configmap/%s synced", o.name); err != nil {
		return err
	}
	o.note("version %s is in %s now; changed: %s", doc.ResourceVersion(), folder.Path(), strings.Join(keys, ", "))
	return o.tellProgram(ctx, conn, folder, doc)
}

// tellProgram tells a program of all changes of the files that it doesn't know of:
// those of an earlier sync too, which was killed or couldn't tell it.
func (o *syncOptions) tellProgram(ctx context.Context, conn *connection, folder *mirror.Folder, doc types.Document) error {
	if !o.hook.given() {
		return nil
	}
	record, err := folder.Record()
	if err != nil || record.Untold == nil {
		return err
	}
	if err := o.hook.run(ctx, o.factory, changeOf(conn, doc, folder.Path(), record.Untold)); err != nil {
		return err
	}
	return folder.Told()
}

// refused tells what to do where the folder's own content is in the way.
func (o *syncOptions) refused(conn *connection, err error) error {
	var edited *mirror.EditedError
	if !errors.As(err, &edited) {
		return err
	}
	return &conflictError{
		object: "the folder " + edited.Path, server: conn.Target().String(), what: edited.What(),
		next: "write it to the ConfigMap with 'cmctl sync " + o.name + " --from " + edited.Path + conn.where + "', or overwrite it with --force",
	}
}

// follow writes each version, until the command is ended.
func (o *syncOptions) follow(ctx context.Context, conn *connection, folder *mirror.Folder) error {
	object := conn.ConfigMaps(conn.namespace).Object(o.name).Object()
	there := false
	for event, err := range o.followOne(ctx, conn, o.name) {
		switch {
		case err != nil:
			return conn.explain(conn.namespace, o.name, err)
		case event.Type == client.Synced && !there:
			o.note("%s is not there yet; waiting for it", object)
		case event.Type == client.Deleted:
			o.note("%s was deleted; the files stay as they are, and follow it again when it is recreated", object)
		case event.Object != nil:
			there = true
			if err := o.write(ctx, conn, folder, event.Object); err != nil {
				if !errors.As(err, new(*hookError)) {
					return err
				}
				o.note("warning: %v", err)
			}
		}
	}
	return nil
}
