package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/condition"
	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

type waitOptions struct {
	*factory
	names      []string
	selector   string
	wanted     []string
	version    string
	timeout    time.Duration
	output     string
	conditions []condition.Condition
	printer    output.Printer // nil: a line each
}

func newWait(f *factory) *cobra.Command {
	o := &waitOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "wait {NAME... | -l SELECTOR} --for=CONDITION",
		Short: "Wait until ConfigMaps are as they should be",
		Long: `Wait until ConfigMaps are as they should be. Each --for must hold, all at the same
time, for each of the objects:

  create             the object is there
  delete             the one that was there at first is gone, even if another has
                     taken its name since
  change             it was written, made or deleted since the command began, or
                     since the version that --resource-version names, which may be one of the
                     object, of a list or of an event
  key=KEY            it has that key, in data or binaryData
  key=KEY=VALUE      the key has that value
  jsonpath=EXPR      the expression finds something
  jsonpath=EXPR=VAL  the expression finds that value, and nothing else

An object that isn't there is waited for. Objects are watched, not polled, also
over restarts of the server. With -l, those that match at first are waited for;
if none does, the first that comes to match.

The exit code is 1 if the time is over, and 7 if the server was out of reach
then.`,
		Example: `  cmctl wait flags --for=key=mode=green
  cmctl wait flags --for=create --timeout=2m
  cmctl wait flags limits --for=delete
  cmctl wait flags --for=change --resource-version=41 -o yaml
  cmctl wait -l tier=web --for=jsonpath='{.data.ready}'=yes`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.names, err = parseNames(args); err != nil {
				return err
			}
			if err := o.complete(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.wanted, "for", nil, "`condition` to wait for; may be repeated")
	addSelector(flags, &o.selector)
	flags.StringVar(&o.version, "resource-version", "", "with --for=change, the `version` since which a change counts: one of the object, of a list or of an event")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to wait; 0 looks once, below 0 never ends")
	flags.StringVarP(&o.output, "output", "o", "", "print the objects when it is done: "+strings.Join(output.Formats, ", "))
	return cmd
}

// complete checks the flags, so that a mistake is found before the server is
// asked.
func (o *waitOptions) complete() (err error) {
	switch {
	case len(o.wanted) == 0:
		return usagef("wait needs --for=CONDITION")
	case len(o.names) == 0 && o.selector == "":
		return usagef("wait takes the NAMEs to wait for, or -l SELECTOR")
	case len(o.names) > 0 && o.selector != "":
		return usagef("give either NAMEs or -l, not both")
	case o.version != "" && len(o.names) != 1:
		return usagef("--resource-version is the version of one object: give one NAME with it")
	case o.version == "0":
		return usagef("--resource-version=\"0\" is no version; take one from 'cmctl get NAME -o yaml'")
	case o.version != "" && !slices.Contains(o.wanted, "change"):
		return usagef("--resource-version goes with --for=change")
	}
	if _, err := parseSelector(o.selector); err != nil {
		return err
	}
	for _, text := range o.wanted {
		c, err := condition.Parse(text)
		if err != nil {
			return usagef("--for=%s: %v", text, err)
		}
		o.conditions = append(o.conditions, c)
	}
	if o.output != "" {
		if o.printer, err = output.New(o.output, output.Options{}); err != nil {
			return usagef("%v", err)
		}
	}
	slices.Sort(o.names)
	o.names = slices.Compact(o.names)
	return nil
}

func (o *waitOptions) run(ctx context.Context) error {
	conn, err := o.connect("wait")
	if err != nil {
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	w := &waiting{waitOptions: o, conn: conn, server: &connectivity{factory: o.factory}, objects: map[string]*condition.Object{}}
	err = w.run(ctx)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		return w.late()
	}
	return err
}

// waiting is one run of wait.
type waiting struct {
	*waitOptions
	conn    *connection
	server  *connectivity
	objects map[string]*condition.Object
	synced  bool
}

func (w *waiting) run(ctx context.Context) error {
	if len(w.names) == 0 {
		if err := w.choose(ctx); err != nil {
			return err
		}
		if len(w.names) == 0 {
			w.note("nothing matches %s, so nothing is left to wait for", w.selector)
			return nil
		}
	}
	for _, name := range w.names {
		if w.objects[name] == nil {
			w.objects[name] = &condition.Object{}
		}
	}
	maps := w.conn.ConfigMaps(w.conn.namespace)
	for e, err := range followNamed(ctx, maps, w.names, func(name string) client.WatchOptions {
		return w.watch(client.ListOptions{}, name)
	}) {
		if err == nil && e.Type == client.Synced && w.version != "" {
			err = w.sinceVersion(ctx, maps, w.names[0])
		}
		if err != nil {
			return w.explain(err)
		}
		if w.take(e) {
			return w.done()
		}
		if w.timeout == 0 && w.synced {
			return w.late()
		}
	}
	return nil
}

// watch are the options of one watch. A server that is away is waited for too.
func (w *waiting) watch(o client.ListOptions, name string) client.WatchOptions {
	return client.WatchOptions{ListOptions: o, Name: name, Patient: w.timeout != 0, Observe: w.server.observer()}
}

// choose finds the names that match the selector: those that do at first, else
// the first that comes to. None are left if it is enough that there are none.
func (w *waiting) choose(ctx context.Context) error {
	maps, synced := w.conn.ConfigMaps(w.conn.namespace), false
	for e, err := range maps.Watch(ctx, w.watch(client.ListOptions{LabelSelector: w.selector}, "")) {
		if err != nil {
			return w.explain(err)
		}
		switch e.Type {
		case client.Added:
			w.names = append(w.names, e.Object.Name())
			w.objects[e.Object.Name()] = &condition.Object{Since: e.Object.ResourceVersion(), UID: e.Object.UID()}
		case client.Synced:
			synced = true
		}
		if synced && (len(w.names) > 0 || w.timeout == 0 || condition.HoldForNothing(w.conditions)) {
			break
		}
	}
	if len(w.names) == 0 && !condition.HoldForNothing(w.conditions) {
		return fmt.Errorf("nothing matches %s in namespace %q", w.selector, w.conn.namespace)
	}
	return nil
}

// sinceVersion finds out at which version the object was when the server was at the
// one that --resource-version names: that may be the version of a list, of an event or
// of another object, as well as its own.
func (w *waiting) sinceVersion(ctx context.Context, maps *client.ConfigMaps, name string) error {
	object := w.objects[name]
	if object.There() && object.Last().ResourceVersion() == w.version {
		object.Since = w.version
		return nil
	}
	then, err := maps.VersionAt(ctx, name, w.version)
	switch {
	case errors.Is(err, client.ErrNotReached):
		return &hintedError{fmt.Errorf("--resource-version=%s: %w", w.version, err), "take a version that this server gave, as 'cmctl get NAME -o yaml' shows it"}
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		w.note("the server no longer keeps what was there at version %s: that the object is not at this version counts as a change", w.version)
		object.Since = w.version
		return nil
	case err == nil && then.ResourceVersion == "" && object.There():
		object.Since = w.version // which it never had: it was made since
		return nil
	}
	object.Since = then.ResourceVersion // empty: it was not there, nor is it now
	return err
}

// take notes an event, and tells whether all conditions hold now.
func (w *waiting) take(e client.Event) bool {
	if e.Type == client.Synced {
		w.synced = true
		for _, object := range w.objects {
			object.Sync()
		}
	} else {
		w.objects[e.Object.Name()].Take(e, w.synced)
	}
	if !w.synced {
		return false // what is there at first is not complete
	}
	for _, object := range w.objects {
		if len(object.Unmet(w.conditions)) > 0 {
			return false
		}
	}
	return true
}

// done prints what was waited for.
func (w *waiting) done() error {
	var found []types.Document
	for _, name := range w.names {
		doc := w.objects[name].Last()
		if w.objects[name].There() {
			w.tellDeletion(doc, dryRunNone)
		}
		switch {
		case w.printer == nil:
			if err := w.say("configmap/%s condition met", name); err != nil {
				return err
			}
		case doc != nil:
			doc = doc.Clone()
			doc.SetMeta("managedFields", nil)
			found = append(found, doc)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return w.printer.Print(w.Out, output.Objects{Items: found, List: len(w.names) > 1})
}

// explain adds to an error what was waited for.
func (w *waiting) explain(err error) error {
	if len(w.names) == 1 {
		return w.conn.explain(w.conn.namespace, w.names[0], err)
	}
	return w.conn.explainList(w.conn.namespace, err)
}

// late says what was waited for in vain, one error for each object.
func (w *waiting) late() error {
	if err := w.server.lost(); err != nil {
		return w.explain(fmt.Errorf("the time to wait, %s, is over: %w", w.timeout, err))
	}
	if !w.synced && len(w.names) > 0 {
		silent := errors.New("the server has not shown yet what there is")
		return w.explain(&client.GaveUpError{Attempts: 1, Elapsed: w.timeout, Err: silent})
	}
	if !w.synced {
		return fmt.Errorf("nothing matched %s in namespace %q within %s", w.selector, w.conn.namespace, w.timeout)
	}
	var errs []error
	for _, name := range w.names {
		unmet := w.objects[name].Unmet(w.conditions)
		if len(unmet) == 0 {
			continue
		}
		how := fmt.Sprintf("timed out after %s", w.timeout)
		if w.timeout == 0 {
			how = "not now"
		}
		errs = append(errs, w.conn.explain(w.conn.namespace, name, fmt.Errorf("%s: %s", how, strings.Join(unmet, "; "))))
	}
	return oneOrMany(errs)
}
