package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

type deleteOptions struct {
	*factory
	writeFlags
	names []string
	input inputFlags
	selectors
	all            bool
	ignoreNotFound bool
	wait           bool
	timeout        time.Duration
}

func newDelete(f *factory) *cobra.Command {
	o := &deleteOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "delete {NAME... | -f FILE... | -l SELECTOR | --field-selector SELECTOR | --all}",
		Short: "Delete ConfigMaps",
		Long: `Delete ConfigMaps by name, those that manifests name, or those that selectors
choose; -l and --field-selector together choose what both do.

The object is read first, and only the one that was read is deleted: another of
the same name, made meanwhile, stays. So does one that was chosen by its labels
and no longer has them.

An object with finalizers is only marked, and goes when these are removed; --wait
waits for that.`,
		Example: `  cmctl delete flags
  cmctl delete flags limits -n team-a
  cmctl delete -f cm.yaml --ignore-not-found
  cmctl delete -l tier=test --dry-run=server
  cmctl delete --field-selector=metadata.name!=keep -n scratch
  cmctl delete --all -n scratch
  cmctl delete flags --resource-version=4711`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if args, err = o.input.take(args); err != nil {
				return err
			}
			if o.names, err = parseNames(args); err != nil {
				return err
			}
			if err := o.validate(cmd); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	o.input.add(flags)
	o.writeFlags.add(flags)
	o.selectors.add(flags)
	addAll(flags, &o.all)
	flags.BoolVar(&o.ignoreNotFound, "ignore-not-found", false, "what isn't there counts as deleted")
	flags.BoolVar(&o.wait, "wait", false, "return when the objects are gone, finalizers included")
	flags.DurationVar(&o.timeout, "timeout", 0, "with --wait: how long to wait for each object (default without end)")
	return cmd
}

func (o *deleteOptions) validate(cmd *cobra.Command) error {
	byLabels, byFields := cmd.Flags().Changed("selector"), cmd.Flags().Changed("field-selector")
	ways := 0
	for _, given := range []bool{len(o.names) > 0, o.input.given(), byLabels || byFields, o.all} {
		if given {
			ways++
		}
	}
	switch {
	case ways == 0:
		return usagef("delete takes the NAMEs to delete, -f FILE, -l SELECTOR, --field-selector SELECTOR or --all")
	case ways > 1:
		return usagef("give one of NAMEs, -f, selectors and --all, for they choose in different ways")
	case byLabels && strings.TrimSpace(o.selector) == "":
		return usagef("-l needs a selector; --all deletes all in the namespace")
	case byFields && strings.TrimSpace(o.fieldSelector) == "":
		return usagef("--field-selector needs a selector; --all deletes all in the namespace")
	case o.timeout < 0 || o.timeout > 0 && !o.wait:
		return usagef("--timeout bounds --wait, and is above 0")
	}
	if len(o.names) != 1 && !o.input.given() {
		if err := o.guard.onlyForOne(); err != nil {
			return err
		}
	}
	if err := o.selectors.check(); err != nil {
		return err
	}
	return o.writeFlags.validate(cmd.Flags())
}

func (o *deleteOptions) run(ctx context.Context) error {
	conn, err := o.connectDry("delete", o.dryRun == dryRunServer)
	if err != nil {
		return err
	}
	doomed, errs := o.doomed(ctx, conn)
	if len(doomed) == 0 && len(errs) > 0 {
		return oneOrMany(errs) // an empty List would say that nothing is there
	}
	failed := o.inOrder(ctx, "delete", results{form: o.output, list: o.all || o.selectors.given(), dryRun: o.dryRun}, len(doomed), func(ctx context.Context, f *factory, i int) (outcome, error) {
		one := *o
		one.factory = f
		return one.delete(ctx, conn, doomed[i])
	})
	return oneOrMany(append(errs, failed...))
}

// doomed is an object that is to go, if it is what want says. listed ones were
// chosen by what they held.
type doomed struct {
	namespace, name string
	want            retry.Version
	listed          bool
}

// doomed are the objects that the command line chooses.
func (o *deleteOptions) doomed(ctx context.Context, conn *connection) (chosen []doomed, errs []error) {
	switch {
	case len(o.names) > 0:
		for i, name := range o.names {
			if !slices.Contains(o.names[:i], name) {
				chosen = append(chosen, doomed{namespace: conn.namespace, name: name, want: o.guard.want()})
			}
		}
		return chosen, nil
	case o.input.given():
		return o.inManifests(ctx, conn)
	}
	found, err := o.matching(ctx, conn, o.selectors)
	if err != nil {
		return nil, []error{err}
	}
	for _, d := range found {
		want := retry.Version{UID: d.UID(), ResourceVersion: d.ResourceVersion()}
		chosen = append(chosen, doomed{namespace: d.Namespace(), name: d.Name(), want: want, listed: true})
	}
	return chosen, nil
}

func (o *deleteOptions) inManifests(ctx context.Context, conn *connection) (chosen []doomed, errs []error) {
	manifests, errs := o.input.read(ctx, o.factory, conn)
	if len(manifests) > 1 {
		if err := o.guard.onlyForOne(); err != nil {
			return nil, append(errs, err)
		}
	}
	for _, m := range manifests {
		if err := o.guard.clash(m.Where(), m.Document); err != nil {
			errs = append(errs, err)
			continue
		}
		chosen = append(chosen, doomed{namespace: m.Namespace(), name: m.Name(), want: o.guard.want()})
	}
	return chosen, errs
}

func (o *deleteOptions) delete(ctx context.Context, conn *connection, d doomed) (outcome, error) {
	deleted, err := o.send(ctx, conn, d)
	switch {
	case apierrors.IsNotFound(err) && !unknownOutcome(err) && (o.ignoreNotFound || d.listed):
		return outcome{verb: "not there"}, nil
	case err != nil:
		return outcome{}, conn.explain(d.namespace, d.name, err)
	case deleted == nil:
		o.note("configmap %q in namespace %q is kept: it was changed, and -l doesn't choose it any more", d.name, d.namespace)
		return outcome{verb: "kept"}, nil
	}
	what := "deleted from"
	if held := finalizers(deleted); len(held) > 0 && o.dryRun == dryRunNone {
		if !o.wait {
			o.note("configmap %q in namespace %q is marked, and goes when its finalizers are removed: %s", d.name, d.namespace, strings.Join(held, ", "))
			what = "marked for deletion in"
		} else if err := o.untilGone(ctx, conn, d, deleted.UID()); err != nil {
			return outcome{}, conn.explain(d.namespace, d.name, err)
		}
	}
	result := outcome{verb: "deleted", object: deleted}
	switch o.output {
	case "":
		return result, o.say("%s", dryly(fmt.Sprintf("configmap %q %s namespace %q", d.name, what, d.namespace), o.dryRun))
	case "name":
		return result, o.say("configmap/%s", d.name)
	}
	return result, nil
}

// send deletes the object and returns it as it was; nil without an error is one
// that the selectors don't choose any more.
func (o *deleteOptions) send(ctx context.Context, conn *connection, d doomed) (types.Document, error) {
	object := conn.ConfigMaps(d.namespace).Object(d.name)
	options := o.retryOptions(o.progress(object))
	for attempt := 1; ; attempt++ {
		if o.dryRun == dryRunClient {
			options.Want = d.want
			return retry.Read(ctx, object, options)
		}
		res, err := retry.Delete(ctx, object, d.want, options)
		if err == nil && o.dryRun == dryRunServer {
			err = o.checkUnstored(ctx, object, res.Object, nil)
		}
		if err == nil {
			return res.Object, nil
		}
		if !d.listed || !apierrors.IsConflict(err) || unknownOutcome(err) || attempt >= options.MaxAttempts {
			return nil, err
		}
		// Changed since it was listed: is it still chosen?
		fresh, err := retry.Read(ctx, object, options)
		if err != nil {
			return nil, err
		}
		chosen, err := o.selectors.choose(fresh)
		if err != nil || !chosen || fresh.UID() != d.want.UID {
			return nil, err
		}
		d.want.ResourceVersion = fresh.ResourceVersion()
	}
}

func finalizers(d types.Document) (names []string) {
	raw, _ := d.Value("metadata", "finalizers")
	list, _ := raw.([]any)
	for _, f := range list {
		names = append(names, fmt.Sprint(f))
	}
	return names
}

// waitPace is how often an object that is to go is looked at.
const waitPace = 500 * time.Millisecond

// untilGone waits until the object is not there, or another in its place.
func (o *deleteOptions) untilGone(ctx context.Context, conn *connection, d doomed, uid string) error {
	waiting := ctx
	if o.timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	object := conn.ConfigMaps(d.namespace).Object(d.name)
	for {
		now, err := retry.Read(waiting, object, o.retryOptions(nil))
		switch {
		case apierrors.IsNotFound(err), err == nil && now.UID() != uid:
			return nil
		case err == nil:
		case ctx.Err() == nil && waiting.Err() != nil:
		default:
			return err
		}
		select {
		case <-time.After(waitPace):
		case <-waiting.Done():
			if ctx.Err() == nil {
				return fmt.Errorf("marked for deletion, and still there after %s: %w", o.timeout, &overError{context.DeadlineExceeded})
			}
			return endOf(ctx)
		}
	}
}
