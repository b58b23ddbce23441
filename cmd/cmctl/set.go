package main

import (
	"context"
	"path/filepath"
	"strings"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type setOptions struct {
	*factory
	writeFlags
	name       string
	pairs      []string
	files      []string
	conditions []string
	checks     contentChecks
	create     bool
}

func newSet(f *factory) *cobra.Command {
	o := &setOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "set NAME KEY=VALUE...",
		Short: "Set keys of a ConfigMap; all others stay as they are",
		Long: `Set keys of a ConfigMap. All of them land in one write, made from a fresh copy;
if others write in between, the keys are set on what is there then.

VALUE is everything after the first =, and KEY= is the empty value. With --if the
write is made only while the condition holds, as a lock or a hand-over needs it.`,
		Example: `  cmctl set flags mode=green rollout=50
  cmctl set web --from-file=nginx.conf --from-file=logo.png=./logo.png
  date | cmctl set flags --from-file=checked=-
  cmctl set lock holder=$HOSTNAME --if='!holder'        # only if nobody holds it
  cmctl set flags mode=green --if=mode=blue
  cmctl set flags mode=blue --create                    # make it if it is not there`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.operands(args); err != nil {
				return err
			}
			if err := o.validate(cmd.Flags()); err != nil {
				return err
			}
			if o.create && o.guard.given() {
				return usagef("--create makes an object of no version yet; it doesn't go with --resource-version or --uid")
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringArrayVar(&o.files, "from-file", nil, "`[KEY=]PATH` of a file with a value, - for stdin; may be repeated")
	addConditions(cmd.Flags(), &o.conditions)
	cmd.Flags().BoolVar(&o.create, "create", false, "make the object if there is none of this name")
	o.checks.addFlag(cmd.Flags())
	addHelmForce(cmd.Flags(), &o.helm)
	o.add(cmd.Flags())
	return cmd
}

func (o *setOptions) operands(args []string) error {
	names, pairs := splitOperands(args, func(arg string) bool { return strings.Contains(arg, "=") })
	names, err := parseNames(names)
	if err != nil {
		return err
	}
	if len(names) != 1 {
		return usagef("set takes one NAME, and then KEY=VALUE...")
	}
	if len(pairs) == 0 && len(o.files) == 0 {
		return usagef("nothing to set: give KEY=VALUE or --from-file")
	}
	o.name, o.pairs = names[0], pairs
	return nil
}

// splitOperands cuts operands where the first is no name.
func splitOperands(args []string, isPair func(string) bool) (names, pairs []string) {
	for i, arg := range args {
		if isPair(arg) {
			return args[:i], args[i:]
		}
	}
	return args, nil
}

func (o *setOptions) run(ctx context.Context) error {
	conditions, err := parseConditions(o.conditions)
	if err != nil {
		return err
	}
	if err := o.checks.prepare(o.factory); err != nil {
		return err
	}
	values, err := o.values(ctx)
	if err != nil {
		return err
	}
	w, err := o.writer("set", o.writeFlags)
	if err != nil {
		return err
	}
	created := false
	c := change{
		name:   o.name,
		checks: &o.checks,
		edit: func(ctx context.Context, fresh types.Document) (types.Document, error) {
			created = false
			if err := w.holds(ctx, fresh, conditions); err != nil {
				return nil, err
			}
			return withFields(fresh, values)
		},
		word: func(_, _ types.Document) string {
			if created {
				return "created"
			}
			return "set"
		},
		hint: "add --create to make it, if it should not be there yet",
		// Whether the condition held can't be found out again afterwards.
		computed: len(conditions) > 0,
	}
	if o.create {
		c.make = func(ctx context.Context) (types.Document, error) {
			created = true
			doc := types.NewDocument(w.conn.namespace, o.name)
			if err := w.holds(ctx, doc, conditions); err != nil {
				return nil, err
			}
			return withFields(doc, values)
		}
	}
	return w.one(ctx, "set", c)
}

// values are the fields to set, read once whatever happens later.
func (o *setOptions) values(ctx context.Context) (map[types.Field]any, error) {
	k := &keyValues{values: map[types.Field]any{}, note: o.note}
	for _, pair := range o.pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usagef("%q: set takes KEY=VALUE; KEY= is the empty value", pair)
		}
		if err := k.add(key, []byte(value)); err != nil {
			return nil, err
		}
	}
	stdin := false
	for _, file := range o.files {
		key, path, named := strings.Cut(file, "=")
		if !named {
			key, path = filepath.Base(file), file
		}
		if path == "" || key == "" || path == "-" && !named {
			return nil, usagef("--from-file takes KEY=PATH, or PATH whose last part is the key, not %q", file)
		}
		if path == "-" && stdin {
			return nil, usagef("stdin can be read once only, for one key")
		}
		stdin = stdin || path == "-"
		value, err := o.readFileOrStdin(ctx, path)
		if err != nil {
			return nil, err
		}
		if err := k.add(key, value); err != nil {
			return nil, err
		}
	}
	return k.values, nil
}

// keyValues gathers keys of data and refuses one that is given twice.
type keyValues struct {
	values map[types.Field]any
	note   func(format string, args ...any)
}

func (k *keyValues) add(key string, value []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	f := types.Field{Section: "data", Key: key}
	if _, twice := k.values[f]; twice {
		return usagef("key %q is given twice", key)
	}
	k.values[f] = dataValue(key, value, k.note)
	return nil
}

// dataValue is a value as data holds it: text, or bytes that are none, which
// is said.
func dataValue(key string, value []byte, note func(string, ...any)) any {
	if at := types.InvalidUTF8(value); at >= 0 {
		note("%s: stored in binaryData, for it is not UTF-8 text (at byte %d)", key, at)
	}
	return types.ValueOf(value)
}

// withFields is a copy of an object with these values; a nil one removes the
// field.
func withFields(fresh types.Document, values map[types.Field]any) (types.Document, error) {
	next := fresh.Clone()
	for f, v := range values {
		next.Set(f, v)
	}
	if len(types.Diff(fresh, next)) == 0 && fresh.ResourceVersion() != "" {
		return nil, retry.ErrUnchanged
	}
	return next, nil
}

// precondition is what a key must hold for a write to be made.
type precondition struct {
	key    string
	value  *string // nil: any
	absent bool
}

// addConditions adds --if, the same for all verbs that take it.
func addConditions(flags *pflag.FlagSet, conditions *[]string) {
	flags.StringArrayVar(conditions, "if", nil, "write only if `KEY=VALUE` is there; KEY: it has any value; '!KEY': it is absent; may be repeated")
}

func parseConditions(texts []string) ([]precondition, error) {
	var all []precondition
	for _, text := range texts {
		var c precondition
		key, value, exact := strings.Cut(text, "=")
		c.key, c.absent = strings.CutPrefix(key, "!")
		if exact {
			c.value = &value
		}
		if c.absent && exact {
			return nil, usagef("--if=%q: say '!%s' for an absent key", text, c.key)
		}
		if err := checkKey(c.key); err != nil {
			return nil, usagef("--if=%q: %v", text, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// met tells whether a key with that value, nil if it is absent, is as wanted.
func (c precondition) met(value any) bool {
	if value == nil || c.absent {
		return value == nil && c.absent
	}
	raw, ok := types.RawValue(value)
	return c.value == nil || ok && string(raw) == *c.value
}

// holds is nil if the object meets the conditions, or the conflict that a
// person or script must decide.
func (w *writer) holds(ctx context.Context, doc types.Document, conditions []precondition) error {
	d := w.dispute(doc)
	for _, c := range conditions {
		switch f := (types.Field{Section: "data", Key: c.key}); {
		case c.met(d.fields[f]):
		case c.value != nil:
			d.add(ctx, f, sideValue{label: "wanted", value: *c.value})
		case c.absent:
			d.add(ctx, f, sideValue{label: "wanted"})
		default:
			d.add(ctx, f)
		}
	}
	return d.end("the condition of --if does not hold; nothing was written", "")
}
