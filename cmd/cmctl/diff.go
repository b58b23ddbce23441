package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/difference"
	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
)

type diffOptions struct {
	*factory
	sourceFlags
	applyFlags
	versions versionRange
	unified  int
	exitZero bool
}

func newDiff(f *factory) *cobra.Command {
	o := &diffOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "diff {-f FILE... | NAME --from-... | NAME --from VERSION}",
		Short: "Show what apply would change, or what changed between two versions",
		Long: `Show what 'cmctl apply' with the same flags would change, as differences between
the lines of values. The server is only read from: nothing is written, not even
in a dry run.

Where apply would stop because somebody changed the same thing, that is shown too,
with the file's side; what no apply can change, as an immutable object's data, is a
failure. Keys that only the server has, and that apply would keep,
are named on stderr.

With --from VERSION it shows instead what changed since an older version of one
ConfigMap, up to now or to the version of --to. 'cmctl history' lists those that
the server keeps.

Exit codes: 0 nothing would change, 1 something would, 2 and above as everywhere
for every failure.`,
		Example: `  cmctl diff -f cm.yaml
  cmctl diff -f manifests/ -R --exact
  cmctl diff -f manifests/ --set shop --prune
  cmctl diff flags --from-literal=mode=blue
  cmctl get -o yaml -n staging | cmctl diff -n production -f -
  cmctl diff -f cm.yaml --exit-zero
  cmctl diff flags --from 4711
  cmctl diff flags --from 4711 --to 4720`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.versions.given = cmd.Flags().Changed("from") || cmd.Flags().Changed("to")
			if err := o.validate(args); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	o.sourceFlags.add(flags)
	o.applyFlags.add(flags)
	o.versions.add(flags)
	f.versionFlags(cmd, "from", "to")
	flags.IntVarP(&o.unified, "unified", "U", 3, "how many equal `lines` to show around a difference")
	flags.BoolVar(&o.exitZero, "exit-zero", false, "end with 0 where there are differences; failures keep their codes")
	return cmd
}

func (o *diffOptions) validate(args []string) error {
	if o.versions.given {
		return o.validateVersions(args)
	}
	if err := o.take("diff", args); err != nil {
		return err
	}
	switch {
	case o.unified < 0:
		return usagef("--unified takes a number of lines, not %d", o.unified)
	case o.prune && !o.input.given():
		return usagef("--prune looks at what the manifests of -f no longer give")
	}
	return o.applyFlags.validate()
}

func (o *diffOptions) run(ctx context.Context) error {
	compare := o.compare
	if o.versions.given {
		compare = o.compareVersions
	}
	errs, differs := compare(ctx)
	switch {
	case len(errs) > 0:
		return &diffFailedError{oneOrMany(errs)}
	case differs && !o.exitZero:
		return errDiffers
	}
	return nil
}

// The words of diff's summary.
const (
	sameVerb    = "the same"
	differsVerb = "different"
)

// compare shows the differences of all objects, and tells whether there are any.
func (o *diffOptions) compare(ctx context.Context) (errs []error, differs bool) {
	conn, err := o.connect("apply") // whose records it looks for
	if err != nil {
		return []error{err}, false
	}
	manifests, errs := o.manifests(ctx, o.factory, conn)
	var set *set
	if o.setName != "" {
		if set, err = openSet(ctx, conn, o.setName, manifests); err != nil {
			return append(errs, err), false
		}
	}
	verbs := make([]string, len(manifests))
	failed := o.inOrder(ctx, "diff", results{}, len(manifests), func(ctx context.Context, f *factory, i int) (outcome, error) {
		var err error
		verbs[i], err = o.object(ctx, f, conn, set, manifests[i])
		return outcome{verb: verbs[i]}, err
	})
	errs, differs = append(errs, failed...), slices.Contains(verbs, differsVerb)
	if !o.prune || len(errs) > 0 {
		return errs, differs
	}
	errs = append(errs, set.unseen...)
	for _, d := range set.leaving(manifests) {
		differs = true
		if err := o.pruned(conn, d); err != nil {
			return append(errs, err), differs
		}
	}
	return errs, differs
}

// object shows what apply would make of one object, and returns the word for it.
func (o *diffOptions) object(ctx context.Context, f *factory, conn *connection, set *set, m manifest.Manifest) (string, error) {
	a, err := newApplication(ctx, f, conn, set, m, o.applyFlags)
	if err != nil {
		return "", conn.explain(m.Namespace(), m.Name(), err)
	}
	p, stop := a.plan(ctx)
	if stop = conn.explain(m.Namespace(), m.Name(), stop); p.next == nil {
		return "", stop
	}
	if len(p.kept) > 0 {
		f.note("%s: kept on the server, not in the file: %s%s", m.Where(), strings.Join(fieldNames(p.kept), ", "), a.exactHint())
	}
	live, version := p.live, "live version "
	if live == nil {
		live, version = types.NewDocument(m.Namespace(), m.Name()), "which is not there"
	} else {
		version += live.ResourceVersion()
	}
	text := difference.Show(contents(types.Diff(live, p.next)), o.show(""))
	if err := a.leavesHelms(p); err != nil {
		f.note("%s: apply would stop with exit code %d: %v", m.Where(), exitFailed, err)
	}
	if p.open {
		if stop == nil {
			f.note("%s: apply would stop with exit code %d: %v", m.Where(), exitConflict, a.conflict(ctx, p))
		}
		text += difference.Show(disputed(p.overruled()), o.show("conflict"))
	}
	if text == "" && p.live != nil {
		return sameVerb, stop
	}
	err = o.head(f, fmt.Sprintf("diff %s, %s, with %s", a.object().Object(), version, m.Where()), text)
	return differsVerb, cmp.Or(stop, err)
}

// pruned shows a member that leaves its set.
func (o *diffOptions) pruned(conn *connection, d types.Document) error {
	object := conn.ConfigMaps(d.Namespace()).Object(d.Name())
	if changed := changedSinceApply(d, conn.manager); len(changed) > 0 && !o.force {
		would := "stop with exit code 3"
		if o.keep {
			would = "keep it"
		}
		o.note("%s is no longer given, but somebody changed it since it was applied (%s): apply would %s", object.Object(), strings.Join(changed, ", "), would)
	}
	text := difference.Show(contents(types.Diff(d, types.NewDocument(d.Namespace(), d.Name()))), o.show(""))
	return o.head(o.factory, fmt.Sprintf("diff %s, live version %s, which would be pruned", object.Object(), d.ResourceVersion()), text)
}

func (o *diffOptions) show(mark string) difference.Options {
	return difference.Options{Context: o.unified, Palette: o.colors(o.Out), Mark: mark}
}

// head prints differences under a line that names the object.
func (o *diffOptions) head(f *factory, line, text string) error {
	return f.say("%s\n%s", line, strings.TrimSuffix(text, "\n"))
}

// contents are the changes without apply's own bookkeeping.
func contents(changes []types.Change) []types.Change {
	return slices.DeleteFunc(changes, func(c types.Change) bool { return c.Field.Bookkeeping() })
}

// disputed are the changes that a decision for the file would make.
func disputed(drifts []types.Drift) []types.Change {
	changes := make([]types.Change, len(drifts))
	for i, d := range drifts {
		changes[i] = types.Change{Field: d.Field, From: d.Live, To: d.File}
	}
	return changes
}

// errDiffers ends a diff that found differences: nothing failed.
var errDiffers = errors.New("there are differences")

// diffFailedError is a diff that failed, whose exit code is none that means
// something else there.
type diffFailedError struct{ err error }

func (e *diffFailedError) Error() string { return e.err.Error() }
func (e *diffFailedError) Unwrap() error { return e.err }
