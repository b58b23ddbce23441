package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// marks are the two kinds of key and value that metadata holds.
type marks struct {
	verb    string
	noun    string // one of them
	section string
	set     string // the word for what was done
	removed string // the word where keys were only removed
	// faults are what keeps a value from being one.
	faults func(value string) []string
}

var labelMarks = marks{
	verb: "label", noun: "label", section: "metadata.labels",
	set: "labeled", removed: "unlabeled", faults: validation.IsValidLabelValue,
}

// markOptions are those of label and annotate.
type markOptions struct {
	*factory
	writeFlags
	marks
	names     []string
	input     inputFlags
	values    map[types.Field]any // nil: the key is removed
	overwrite bool
	selectors
	all  bool
	list bool
}

func newLabel(f *factory) *cobra.Command {
	o := &markOptions{factory: f, marks: labelMarks}
	cmd := &cobra.Command{
		Use:   "label {NAME... | -f FILE... | -l SELECTOR | --field-selector SELECTOR | --all} KEY=VALUE... KEY-...",
		Short: "Set and remove labels of ConfigMaps",
		Long: `Set and remove labels of ConfigMaps. KEY- removes one. A label that has another
value already is left as it is, and that is an error, unless --overwrite is given.`,
		Example: `  cmctl label flags tier=web
  cmctl label flags limits tier=web --overwrite
  cmctl label -l tier=web reviewed=yes
  cmctl label -f manifests/ release=12
  cmctl label flags tier-
  cmctl label flags --list`,
		RunE: o.runE,
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *markOptions) addFlags(flags *pflag.FlagSet) {
	o.input.add(flags)
	flags.BoolVar(&o.overwrite, "overwrite", false, "let a value that is there be replaced by another")
	o.selectors.add(flags)
	addAll(flags, &o.all)
	flags.BoolVar(&o.list, "list", false, "show what there is, and change nothing")
	o.writeFlags.add(flags)
}

func (o *markOptions) runE(cmd *cobra.Command, args []string) error {
	names, pairs := splitOperands(args, func(arg string) bool {
		return strings.Contains(arg, "=") || len(arg) > 1 && strings.HasSuffix(arg, "-")
	})
	names, err := o.input.take(names)
	if err != nil {
		return err
	}
	if o.names, err = parseNames(names); err != nil {
		return err
	}
	if err := o.parse(pairs); err != nil {
		return err
	}
	if err := o.validate(cmd.Flags()); err != nil {
		return err
	}
	return o.run(cmd.Context())
}

// parse takes the operands KEY=VALUE and KEY-.
func (o *markOptions) parse(pairs []string) error {
	o.values = map[types.Field]any{}
	for _, pair := range pairs {
		key, value, set := strings.Cut(pair, "=")
		if !set {
			if key = strings.TrimSuffix(pair, "-"); key == pair {
				return usagef("%q: %s takes KEY=VALUE, or KEY- to remove it", pair, o.verb)
			}
		}
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return usagef("%q can't be the key of %s %s: %s", key, article(o.noun), o.noun, strings.Join(problems, "; "))
		}
		f := types.Field{Section: o.section, Key: key}
		if _, twice := o.values[f]; twice {
			return usagef("key %q is given twice", key)
		}
		if !set {
			o.values[f] = nil
			continue
		}
		if problems := o.faults(value); len(problems) > 0 {
			remedy := ""
			if morePairs(value) {
				remedy = "; if these are further pairs, give each as an operand of its own"
			}
			return usagef("%q can't be the value of %s %s: %s%s", value, article(o.noun), o.noun, strings.Join(problems, "; "), remedy)
		}
		if morePairs(value) {
			o.note("warning: the value of %s is %q, as one; if these are further pairs, give each as an operand of its own", key, value)
		}
		o.values[f] = value
	}
	return nil
}

// morePairs tells whether a value looks like VALUE,KEY=VALUE.
func morePairs(value string) bool {
	_, rest, comma := strings.Cut(value, ",")
	key, _, equals := strings.Cut(rest, "=")
	return comma && equals && len(validation.IsQualifiedName(key)) == 0
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an"
	}
	return "a"
}

func (o *markOptions) validate(flags *pflag.FlagSet) error {
	ways := 0
	for _, given := range []bool{len(o.names) > 0, o.input.given(), o.selectors.given(), o.all} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return usagef("%s takes NAMEs, or -f, or -l and --field-selector, or --all", o.verb)
	}
	if err := o.selectors.check(); err != nil {
		return err
	}
	switch {
	case o.list && len(o.values) > 0:
		return usagef("--list changes nothing; leave it out to set or remove")
	case !o.list && len(o.values) == 0:
		return usagef("nothing to do: give KEY=VALUE, KEY- or --list")
	case len(o.names) != 1 && !o.input.given():
		if err := o.guard.onlyForOne(); err != nil {
			return err
		}
	}
	return o.writeFlags.validate(flags)
}

// marked is an object to change. A chosen one has a uid.
type marked struct {
	objectRef
	uid string
}

func (o *markOptions) run(ctx context.Context) error {
	w, err := o.writer(o.verb, o.writeFlags)
	if err != nil {
		return err
	}
	if o.list {
		return o.show(ctx, w)
	}
	objects, errs := o.chosen(ctx, w)
	if len(objects) == 0 && len(errs) > 0 {
		return oneOrMany(errs) // an empty List would say that nothing is there
	}
	printed := results{form: o.output, list: o.all || o.selectors.given(), dryRun: o.dryRun}
	failed := o.inOrder(ctx, o.verb, printed, len(objects), func(ctx context.Context, f *factory, i int) (outcome, error) {
		one := *w
		one.factory, one.conn = f, w.conn.in(objects[i].namespace)
		return o.mark(ctx, &one, objects[i])
	})
	return oneOrMany(append(errs, failed...))
}

// chosen are the objects that the command line means.
func (o *markOptions) chosen(ctx context.Context, w *writer) (objects []marked, errs []error) {
	if len(o.names) > 0 || o.input.given() {
		refs, errs := o.refs(ctx, w)
		for _, r := range refs {
			objects = append(objects, marked{objectRef: r})
		}
		return objects, errs
	}
	found, err := o.matching(ctx, w.conn, o.selectors)
	if err != nil {
		return nil, []error{err}
	}
	for _, d := range found {
		objects = append(objects, marked{objectRef{d.Namespace(), d.Name()}, d.UID()})
	}
	return objects, nil
}

// refs are the objects that are named, by operands or by manifests.
func (o *markOptions) refs(ctx context.Context, w *writer) (refs []objectRef, errs []error) {
	if !o.input.given() {
		return references(w.conn.namespace, o.names), nil
	}
	refs, errs = o.input.references(ctx, o.factory, w.conn)
	if len(refs) > 1 {
		if err := o.guard.onlyForOne(); err != nil {
			return nil, append(errs, err)
		}
	}
	return refs, errs
}

// mark changes one object.
func (o *markOptions) mark(ctx context.Context, w *writer, object marked) (outcome, error) {
	done, err := w.apply(ctx, change{
		name: object.name,
		uid:  object.uid,
		edit: func(ctx context.Context, fresh types.Document) (types.Document, error) {
			if err := o.stillChosen(fresh); err != nil {
				return nil, err
			}
			if err := o.mayReplace(ctx, w, fresh); err != nil {
				return nil, err
			}
			return withFields(fresh, o.values)
		},
		word: o.word,
	})
	switch {
	case errors.Is(err, errLeft):
		o.note("configmap/%s is passed over: it was changed, and -l doesn't choose it any more", object.name)
		return outcome{}, nil
	case err == nil && done.verb == unchanged:
		o.tellAbsent(w, object.name)
	}
	return done, err
}

// errLeft is an object that the selector doesn't choose any more.
var errLeft = errors.New("it has left the selection")

// stillChosen looks whether a fresh copy is what -l asks for: others may have
// changed its labels since it was listed.
func (o *markOptions) stillChosen(fresh types.Document) error {
	chosen, err := o.selectors.choose(fresh)
	if err == nil && !chosen {
		err = errLeft
	}
	return err
}

// mayReplace refuses to replace a value by another, on each copy anew: somebody
// else may have set it since the last one.
func (o *markOptions) mayReplace(ctx context.Context, w *writer, fresh types.Document) error {
	if o.overwrite {
		return nil
	}
	d := w.dispute(fresh)
	for _, f := range sortedKeys(o.values) {
		if now, want := d.fields[f], o.values[f]; now != nil && want != nil && now != want {
			d.add(ctx, f, sideValue{label: "yours", value: want})
		}
	}
	return d.end(fmt.Sprintf("the %s has another value; nothing was written", o.noun), "give --overwrite to replace it")
}

// tellAbsent says which keys were to be removed where nothing was to do.
func (o *markOptions) tellAbsent(w *writer, name string) {
	for _, f := range sortedKeys(o.values) {
		if o.values[f] == nil {
			w.note("%s has no %s %q", name, o.noun, f.Key)
		}
	}
}

func (o *markOptions) word(_, _ types.Document) string {
	for _, v := range o.values {
		if v != nil {
			return o.set
		}
	}
	return o.removed
}

// show prints what there is of each object, a KEY=VALUE on a line.
func (o *markOptions) show(ctx context.Context, w *writer) error {
	if o.all || o.selectors.given() {
		found, err := o.matching(ctx, w.conn, o.selectors)
		if err != nil {
			return err
		}
		return o.printAll(found, true)
	}
	refs, errs := o.refs(ctx, w)
	found, failed := readNamed(ctx, w.conn, refs)
	errs = append(errs, failed...)
	if err := o.printAll(found, len(refs) > 1); err != nil {
		errs = append(errs, err)
	}
	return oneOrMany(errs)
}

func (o *markOptions) printAll(docs []types.Document, headed bool) error {
	for _, d := range docs {
		if headed {
			if err := o.say("configmap/%s:", d.Name()); err != nil {
				return err
			}
		}
		fields := d.Fields()
		for _, f := range sortedKeys(fields) {
			if f.Section != o.section {
				continue
			}
			value := fmt.Sprint(fields[f])
			if isTerminal(o.Out) {
				value = output.Visible(value, "\t\n")
			}
			if err := o.say("%s=%s", f.Key, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// sortedKeys are the fields of a map by section and key.
func sortedKeys(m map[types.Field]any) []types.Field {
	return slices.SortedFunc(maps.Keys(m), func(a, b types.Field) int {
		return strings.Compare(a.String(), b.String())
	})
}
