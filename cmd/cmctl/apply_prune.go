package main

import (
	"context"
	"fmt"
	"strings"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// pruneAll deletes the members that leave their set: first it shows which of them
// shall go, then they go one by one, each as it was shown.
func (o *applyOptions) pruneAll(ctx context.Context, conn *connection, leaving []types.Document) []error {
	going, errs := o.mayGo(conn, leaving)
	if len(going) == 0 {
		return errs
	}
	names := make([]string, len(going))
	for i, d := range going {
		names[i] = d.Namespace() + "/" + d.Name()
	}
	what := "to be deleted"
	if o.dryRun != dryRunNone {
		what = "would be deleted"
	}
	o.note("set %q: no longer given, %s: %s", o.setName, what, strings.Join(names, ", "))
	for i, d := range going {
		if err := untried(ctx, len(going)-i); err != nil {
			return append(errs, err)
		}
		if err := o.pruneOne(ctx, conn, d); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// mayGo are the members that nobody changed since they were applied, with an error for
// each of the others, unless the flags decide about them.
func (o *applyOptions) mayGo(conn *connection, leaving []types.Document) (going []types.Document, errs []error) {
	for _, d := range leaving {
		changed := changedSinceApply(d, conn.manager)
		switch {
		case len(changed) == 0 || o.force:
			going = append(going, d)
		case o.keep:
			o.note("%s/%s: %s, for somebody changed it since it was applied: %s", d.Namespace(), d.Name(), would("kept", o.dryRun != dryRunNone), strings.Join(changed, ", "))
		default:
			errs = append(errs, conn.conflict(d.Namespace(), d.Name(),
				fmt.Sprintf("it is no longer given, but somebody changed it since it was applied (%s); it was not deleted", strings.Join(changed, ", ")),
				"delete it all the same with --force, leave it with --keep, or give it again"))
		}
	}
	return going, errs
}

func (o *applyOptions) pruneOne(ctx context.Context, conn *connection, d types.Document) error {
	if o.dryRun != dryRunClient {
		object := conn.ConfigMaps(d.Namespace()).Object(d.Name())
		_, err := retry.Delete(ctx, object, object.Version(d), o.retryOptions(o.progress(object)))
		if err == nil && o.dryRun == dryRunServer {
			err = o.checkUnstored(ctx, object, d, nil)
		}
		if err != nil {
			return conn.explain(d.Namespace(), d.Name(), err)
		}
	}
	word := "pruned from namespace %q"
	if held := finalizers(d); len(held) > 0 {
		o.note("%s/%s goes when its finalizers are removed: %s", d.Namespace(), d.Name(), strings.Join(held, ", "))
		word = "marked for deletion in namespace %q"
	}
	return o.tellResult(o.output, o.dryRun, "configmap/"+d.Name(), outcome{verb: fmt.Sprintf(word, d.Namespace())})
}

// changedSinceApply names what others made of an object since it was applied: the
// fields that are not as they were applied, and those that nobody applied.
func changedSinceApply(live types.Document, manager string) []string {
	base := recordIn(live, manager)
	if base == nil {
		return []string{"nothing tells what was applied"}
	}
	out := types.Apply(base, types.NewDocument(live.Namespace(), live.Name()), live, types.ApplyOptions{})
	var changed []types.Field
	for _, d := range out.Drifts {
		changed = append(changed, d.Field)
	}
	return fieldNames(append(changed, out.Kept...))
}
