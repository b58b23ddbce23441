package main

import (
	"context"
	"errors"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// send writes the person's change, or finds out what a write would store.
func (s *session) send(ctx context.Context, w *rewrite, options retry.Options) (retry.Result[types.Document], error) {
	if s.dryRun == dryRunClient {
		return w.here(ctx, options)
	}
	res, err := retry.UpdateFrom(ctx, s.object, s.start, w.onto, options)
	if err == nil && s.dryRun == dryRunServer {
		err = s.checkUnstored(ctx, s.object, w.live, res.Object)
	}
	return res, err
}

// here makes the change to the object as it is now. It reads only.
func (w *rewrite) here(ctx context.Context, options retry.Options) (retry.Result[types.Document], error) {
	fresh, err := retry.Read(ctx, w.object, options)
	if err != nil {
		return retry.Result[types.Document]{}, err
	}
	if fresh.UID() != w.start.UID() {
		return retry.Result[types.Document]{}, &retry.ReplacedError{Object: w.object.Object(), Was: w.object.Version(w.start), Now: w.object.Version(fresh)}
	}
	next, err := w.onto(ctx, fresh)
	if errors.Is(err, retry.ErrUnchanged) {
		return retry.Result[types.Document]{Object: fresh, Outcome: retry.Unchanged}, nil
	}
	return retry.Result[types.Document]{Object: next, Outcome: retry.Written}, err
}

// sendNew creates the object, or finds out whether it could be created.
func (s *session) sendNew(ctx context.Context, object *client.Object, doc types.Document) (types.Document, error) {
	options := s.retryOptions(s.progress(object))
	if s.dryRun == dryRunClient {
		return doc, mayCreate(ctx, object, doc.Name(), options)
	}
	same := func(found types.Document) bool { return contains(found, doc) }
	res, err := retry.Create(ctx, object, doc, same, options)
	if err == nil && s.dryRun == dryRunServer {
		err = s.checkUnstored(ctx, object, nil, res.Object)
	}
	return res.Object, err
}

// told tells what was done with an object. After a dry run the text is still to be
// written: it stays, and it is said how.
func (s *session) told(name, verb string, doc types.Document) error {
	if s.dryRun == dryRunNone {
		s.tellDeletion(doc, s.dryRun)
		return s.say("configmap/%s %s", name, verb)
	}
	s.leave = true
	s.made = append(s.made, doc)
	if err := s.tellResult(s.output, s.dryRun, "configmap/"+name, outcome{verb, doc}); err != nil {
		return err
	}
	s.note("Your text is kept in %s\nwrite it with: %s", s.draft.Path(), s.resumeCommand(nil))
	return nil
}

// showMade prints what dry runs made of n objects, where -o asks for it.
func (o *editOptions) showMade(n int) error {
	if o.dryRun == dryRunNone {
		return nil
	}
	b := batch{factory: o.factory, results: results{form: o.output}}
	return b.printObjects(n, o.made)
}
