package main

import (
	"context"
	"fmt"
	"strings"

	"example.com/cmctl/pkg/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// An object that was deleted stays for as long as it has finalizers. It can be read
// and written until then, but nothing can save it: with the last of them it goes, and
// all that was written with it. The write that takes out the last one is its end.

// beingDeleted tells whether an object only waits for its finalizers to go.
func beingDeleted(d types.Document) bool {
	at, _ := d.Value("metadata", "deletionTimestamp")
	return at != nil
}

// deletionOf says since when an object is being deleted, and what it waits for.
func deletionOf(d types.Document) string {
	at, _ := d.Value("metadata", "deletionTimestamp")
	text := fmt.Sprintf("since %v", at)
	if held := finalizers(d); len(held) > 0 {
		text += ", waits for finalizers " + strings.Join(held, ", ")
	}
	return text
}

// endsDeletion tells whether an object that is being deleted is gone once it is stored
// with these finalizers.
func endsDeletion(live types.Document, left []string) bool {
	return beingDeleted(live) && len(left) == 0
}

// tellDeletion says what a write, or one that was not needed, comes to if its object
// is on its way out. now is the object after it, nil if that is not known.
func (f *factory) tellDeletion(now types.Document, dryRun string) {
	if now == nil || !beingDeleted(now) {
		return
	}
	object := fmt.Sprintf("configmaps %q in namespace %q", now.Name(), now.Namespace())
	switch {
	case len(finalizers(now)) > 0:
		f.note("warning: %s is being deleted (%s): what is written to it goes with it", object, deletionOf(now))
	case dryRun == dryRunNone:
		f.note("%s is gone now: it was being deleted (%s), and this write took out the last finalizer", object, deletionOf(now))
	default:
		f.note("%s would be gone: it is being deleted (%s), and this write takes out the last finalizer", object, deletionOf(now))
	}
}

// wouldEnd refuses a write that is to leave an object with some content, and would be
// the end of it.
func (c *connection) wouldEnd(live types.Document, what string) error {
	where := c.whereIn(live.Namespace())
	return c.conflict(live.Namespace(), live.Name(),
		fmt.Sprintf("it is being deleted (%s), and %s has none of them: the write would be its end; nothing was written", deletionOf(live), what),
		fmt.Sprintf("wait until it is gone with 'cmctl wait %s --for=delete%s', and try again. To end the deletion yourself, take the finalizers out: cmctl patch %s --type=merge -p '{\"metadata\":{\"finalizers\":null}}'%s",
			live.Name(), where, live.Name(), where))
}

// nameTaken adds to the refusal to create an object that the one which has its name is
// about to go.
func (c *connection) nameTaken(ctx context.Context, namespace, name string, err error) error {
	if !apierrors.IsAlreadyExists(err) || unknownOutcome(err) {
		return err
	}
	// If this fails, only the hint is another one.
	there, failed := c.ConfigMaps(namespace).Get(ctx, name)
	if failed != nil || !beingDeleted(there) {
		return err
	}
	return &hintedError{err, fmt.Sprintf("it is being deleted (%s); its name is free once it is gone: wait for that with 'cmctl wait %s --for=delete%s', and try again",
		deletionOf(there), name, c.whereIn(namespace))}
}
