package main

import (
	"context"
	"fmt"
	"strings"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// pruneAll deletes the members that leave their set: first it shows all of them,
// then they go one by one, each as it was shown.
func (o *applyOptions) pruneAll(ctx context.Context, conn *connection, leaving []types.Document) []error {
	if len(leaving) == 0 {
		return nil
	}
	names := make([]string, len(leaving))
	for i, d := range leaving {
		names[i] = d.Namespace() + "/" + d.Name()
	}
	o.note("set %q: no longer given, and %s: %s", o.setName, would("deleted", o.dryRun != dryRunNone), strings.Join(names, ", "))
	var errs []error
	for i, d := range leaving {
		if err := untried(ctx, len(leaving)-i); err != nil {
			return append(errs, err)
		}
		if err := o.pruneOne(ctx, conn, d); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func (o *applyOptions) pruneOne(ctx context.Context, conn *connection, d types.Document) error {
	if changed := changedSinceApply(d, conn.manager); len(changed) > 0 && !o.force {
		if o.keep {
			o.note("%s/%s: %s, for somebody changed it since it was applied: %s", d.Namespace(), d.Name(), would("kept", o.dryRun != dryRunNone), strings.Join(changed, ", "))
			return nil
		}
		return conn.conflict(d.Namespace(), d.Name(),
			fmt.Sprintf("it is no longer given, but somebody changed it since it was applied (%s); it was not deleted", strings.Join(changed, ", ")),
			"delete it all the same with --force, leave it with --keep, or give it again")
	}
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
	return o.tellResult(o.output, o.dryRun, "configmap/"+d.Name(), outcome{verb: fmt.Sprintf("pruned from namespace %q", d.Namespace())})
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
