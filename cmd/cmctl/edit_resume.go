package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/draft"
	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/cmd/cmctl/internal/markers"
	"example.com/cmctl/cmd/cmctl/internal/view"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// goOn goes on from a draft that an edit before kept.
func (o *editOptions) goOn(ctx context.Context, conn *connection) error {
	d, err := draft.Open(o.resume)
	if errors.Is(err, draft.ErrAlone) {
		d.Shown, err = o.recovered(ctx, conn, d)
	}
	if err != nil {
		return err
	}
	if err := o.sameTarget(conn, d); err != nil {
		return err
	}
	conn.namespace = d.Shown.Namespace
	s := &session{editOptions: o, conn: conn, object: conn.ConfigMaps(conn.namespace).Object(d.Shown.Name), view: viewOf(d.Shown), draft: d, work: true}
	o.interrupts.keeps(d.Path())
	if _, err := s.show(d.Shown.Document); err != nil {
		return conn.explain(conn.namespace, d.Shown.Name, err)
	}
	text, err := d.Read()
	if err != nil {
		return err
	}
	s.given = s.body(text)
	if left := markers.Left(string(s.given), d.Shown.Markers); d.Shown.Markers > 0 && len(left) > 0 {
		s.reason = s.unresolved(left, 0)
	}
	if err := s.openWithReason(); err != nil {
		return err
	}
	return s.settle(s.run(ctx))
}

// sameTarget refuses a draft of another server, namespace or object than the
// command line names.
func (o *editOptions) sameTarget(conn *connection, d *draft.Draft) error {
	from := d.Shown
	switch {
	case !conn.Target().Is(from.Server):
		return usagef("%s was made from an object on %s, and this command goes to %s; name that server with --server, or with --kubeconfig and --context", d.Path(), from.Server, conn.Target())
	case conn.explicit && from.Namespace != conn.namespace:
		return usagef("%s was made from an object in namespace %q, but -n says %q", d.Path(), from.Namespace, conn.namespace)
	case len(o.names) == 1 && o.names[0] != from.Name:
		return usagef("%s was made from %q, not from %q; --save-as makes another object of it", d.Path(), from.Name, o.names[0])
	}
	return nil
}

// recovered finds out what a text was made from that has lost the file beside it:
// the version that it names, if the object is still at it or the server keeps it.
func (o *editOptions) recovered(ctx context.Context, conn *connection, d *draft.Draft) (draft.Shown, error) {
	text, err := d.Read()
	if err != nil {
		return draft.Shown{}, err
	}
	_, body := view.SplitNote(text)
	if line := firstMarker(string(body)); line > 0 {
		return draft.Shown{}, &manifest.Fault{File: d.Path(), Line: line, Message: "a conflict marker; what this text was made from is not kept beside it, so remove the markers first"}
	}
	doc, err := manifest.ParseYAML(body)
	if err != nil || doc.UID() == "" || doc.ResourceVersion() == "" {
		return draft.Shown{}, fmt.Errorf("%s: %w, and it doesn't say itself, by metadata.uid and metadata.resourceVersion", d.Path(), draft.ErrAlone)
	}
	from := draft.Shown{Server: conn.Target().String(), Namespace: doc.Namespace(), Name: doc.Name(), Format: "yaml"}
	if filepath.Ext(d.Path()) == ".json" {
		from.Format = "json"
	}
	maps := conn.ConfigMaps(from.Namespace)
	live, err := o.readOne(ctx, maps.Object(from.Name))
	switch {
	case err != nil:
		return from, conn.explain(from.Namespace, from.Name, err)
	case live.UID() != doc.UID():
		return from, &retry.ReplacedError{Object: maps.Object(from.Name).Object(),
			Was: retry.Version{UID: doc.UID()}, Now: retry.Version{UID: live.UID()}}
	case live.ResourceVersion() == doc.ResourceVersion():
		from.Document = live
		return from, nil
	}
	from.Document, err = maps.At(ctx, from.Name, doc.ResourceVersion())
	if client.LacksHistory(err) || apierrors.IsNotFound(err) || apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
		return from, conn.conflict(from.Namespace, from.Name,
			fmt.Sprintf("%s was made from version %s, the object is at version %s now, and the older one is kept neither beside the text nor by the server (%v); nothing was written",
				d.Path(), doc.ResourceVersion(), live.ResourceVersion(), err),
			"make your change again with 'cmctl edit "+from.Name+conn.where+"'")
	}
	return from, err
}

// firstMarker is the first line of a text that begins a conflict, 0 if none does.
func firstMarker(text string) int {
	for n, line := range strings.Split(text, "\n") {
		if mark, ok := strings.CutSuffix(strings.TrimSpace(line), " "+mineLabel); ok && len(mark) >= markers.Size() && strings.Trim(mark, "<") == "" {
			return n + 1
		}
	}
	return 0
}
