package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// recreate deletes the object and creates what the manifest says in its place.
// Whatever can be known to fail is known before the deletion.
func (o *replaceOptions) recreate(ctx context.Context, conn *connection, m manifest.Manifest, file types.Document, options retry.Options) (outcome, error) {
	object := conn.ConfigMaps(m.Namespace()).Object(m.Name())
	old, err := retry.Read(ctx, object, options)
	if err == nil {
		err = o.provable(ctx, old, file)
	}
	if err != nil {
		return outcome{}, conn.explain(m.Namespace(), m.Name(), staleFile(conn, m, err))
	}
	done := outcome{"replaced", file}
	if o.dryRun == dryRunNone {
		if done.object, err = o.swap(ctx, conn, old, file); err != nil {
			return outcome{}, conn.explain(m.Namespace(), m.Name(), err)
		}
		if options.Want.ResourceVersion == "" {
			o.tellUnguarded(m)
		}
	}
	return done, o.tellResult(o.output, o.dryRun, "configmap/"+m.Name(), done)
}

// provable asks the server whether it would create the new object. That the old
// one is still there is the last thing that it looks at, so this answer is a yes.
func (o *replaceOptions) provable(ctx context.Context, old, file types.Document) error {
	if held := finalizers(old); len(held) > 0 {
		return fmt.Errorf("its finalizers would hold back the deletion (%s); nothing was written. Replace it without --force, or remove them first", strings.Join(held, ", "))
	}
	if o.dryRun == dryRunClient {
		return nil
	}
	rehearsal, err := o.connectDry("replace", true)
	if err != nil {
		return err
	}
	object := rehearsal.ConfigMaps(old.Namespace()).Object(old.Name())
	never := func(types.Document) bool { return false }
	_, err = retry.Create(ctx, object, file, never, o.retryOptions(o.progress(object)))
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("the server would refuse the new object, so the old one stays: %w", err)
}

// swap deletes the old object and creates the new one. Between the two it heeds
// no interruption: there would be neither.
func (o *replaceOptions) swap(ctx context.Context, conn *connection, old, file types.Document) (types.Document, error) {
	kept, err := keepOld(old)
	if err != nil {
		return nil, err
	}
	object := conn.ConfigMaps(old.Namespace()).Object(old.Name())
	options := o.retryOptions(o.progress(object))
	version := retry.Version{UID: old.UID(), ResourceVersion: old.ResourceVersion()}
	if _, err := retry.Delete(ctx, object, version, options); err != nil {
		if !unknownOutcome(err) {
			os.Remove(kept)
			return nil, err
		}
		return nil, fmt.Errorf("%w; the old object is in %s", err, kept)
	}
	ctx = context.WithoutCancel(ctx)
	same := func(found types.Document) bool { return contains(found, file) }
	res, err := retry.Create(ctx, object, file, same, options)
	switch {
	case err == nil:
		o.note("the old %s is kept in %s", object.Object(), kept)
		return res.Object, nil
	case errors.As(err, new(*retry.DeletedError)):
		return nil, fmt.Errorf("%w; the old object is in %s", err, kept)
	case unknownOutcome(err):
		return nil, fmt.Errorf("the old object was deleted, and whether the new one was created is not known; the old one is in %s: %w", kept, err)
	case apierrors.IsAlreadyExists(err):
		return nil, fmt.Errorf("the old object was deleted, and somebody else created another before the new one could be; theirs stays, the old one is in %s: %w", kept, err)
	}
	return nil, o.putBack(ctx, conn, old, kept, err)
}

// putBack creates the old object again after the new one was refused, and tells
// what is there now.
func (o *replaceOptions) putBack(ctx context.Context, conn *connection, old types.Document, kept string, refusal error) error {
	again := old.Clone()
	again.DropServerFields()
	object := conn.ConfigMaps(old.Namespace()).Object(old.Name())
	same := func(found types.Document) bool { return contains(found, again) }
	if _, err := retry.Create(ctx, object, again, same, o.retryOptions(o.progress(object))); err != nil {
		return fmt.Errorf("the old object was deleted, the new one could not be created (%w), and the old one could not be put back (%w); it is in %s: cmctl create -f %s%s",
			refusal, err, kept, kept, conn.where)
	}
	return fmt.Errorf("the new object could not be created, and the old one was put back, with a new uid; it is in %s too: %w", kept, refusal)
}

// keepOld writes the object to a file that its owner alone can read, without what
// only a server sets.
func keepOld(old types.Document) (path string, err error) {
	old = old.Clone()
	old.DropServerFields()
	text, err := asYAML(old)
	var file *os.File
	if err == nil {
		// A name may be as long as a file's may be.
		file, err = os.CreateTemp("", "cmctl-replaced-"+old.Name()[:min(len(old.Name()), 60)]+"-*.yaml")
	}
	if err == nil {
		_, err = file.Write(text)
		err = errors.Join(err, file.Sync(), file.Close())
	}
	if err != nil {
		return "", fmt.Errorf("the old object can't be kept in a file, so nothing was deleted: %w", err)
	}
	return file.Name(), nil
}
