package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"example.com/cmctl/cmd/cmctl/internal/filter"
	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
)

type updateOptions struct {
	*factory
	writeFlags
	name    string
	format  string
	key     string
	command []string
	checks  contentChecks
	where   string // the flags that choose the server
}

func newUpdate(f *factory) *cobra.Command {
	o := &updateOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "update NAME -- COMMAND [ARG...]",
		Short: "Send a ConfigMap through a command, and put back what it makes of it",
		Long: `Send a ConfigMap through a command, from its standard input to its standard output,
and put the result back on the version that the command was given. If others write in
between, the command runs again on the fresh copy, so that any number of these can
run at once and none undoes another.

The command gets YAML, or JSON with --format=json and if it is jq. It must not count how often it
runs, and its output is used only if it ends with success. With --key it gets the
bytes of that value alone. A command that prints nothing changes nothing.

Where an answer is lost and the server keeps no history of the object, nobody can
tell whether the change was made. The command is not run again then: that ends with
exit code 7.`,
		Example: `  cmctl update counter -- jq '.data.n = (.data.n | tonumber + 1 | tostring)'
  cmctl update web --key=nginx.conf -- sed 's/worker_processes 1/worker_processes 4/'
  cmctl update flags -- yq '.data.mode = "green"'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.operands(args, cmd.ArgsLenAtDash()); err != nil {
				return err
			}
			switch o.format {
			case "yaml", "json":
			case "":
				o.format = formatFor(o.command[0])
			default:
				return usagef("--format takes yaml or json, not %q", o.format)
			}
			if cmd.Flags().Changed("key") {
				if err := checkKey(o.key); err != nil {
					return usagef("--key: %v", err)
				}
			}
			if o.key != "" && cmd.Flags().Changed("format") {
				return usagef("--key gives the command the bytes of a value; --format doesn't go with it")
			}
			if err := o.validate(cmd.Flags()); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.format, "format", "", "what the command gets: yaml or json (default yaml, and json for jq)")
	cmd.Flags().StringVar(&o.key, "key", "", "give the command the value of this `KEY` alone")
	o.checks.addFlag(cmd.Flags())
	addHelmForce(cmd.Flags(), &o.helm)
	o.add(cmd.Flags())
	return cmd
}

// operands takes the name, and the command after the two dashes.
func (o *updateOptions) operands(args []string, dash int) error {
	if dash < 0 || dash == len(args) {
		return usagef("update takes one NAME, then -- and the command: cmctl update NAME -- COMMAND")
	}
	names, err := parseNames(args[:dash])
	if err != nil {
		return err
	}
	if len(names) != 1 {
		return usagef("update takes one NAME before the --")
	}
	o.name, o.command = names[0], args[dash:]
	return nil
}

// formatFor is what a command gets unless told otherwise. jq, under its names,
// reads JSON alone.
func formatFor(command string) string {
	if slices.Contains([]string{"jq", "gojq", "jaq"}, filepath.Base(command)) {
		return "json"
	}
	return "yaml"
}

func (o *updateOptions) run(ctx context.Context) error {
	if err := o.checks.prepare(o.factory); err != nil {
		return err
	}
	w, err := o.writer("update", o.writeFlags)
	if err != nil {
		return err
	}
	o.where = w.conn.where
	edit := o.whole
	if o.key != "" {
		edit = o.value
	}
	return w.one(ctx, "update", change{
		name: o.name, edit: edit, checks: &o.checks, computed: true,
		word: func(_, _ types.Document) string { return "updated" },
	})
}

// value sends one value through the command.
func (o *updateOptions) value(ctx context.Context, fresh types.Document) (types.Document, error) {
	f := types.Field{Section: "data", Key: o.key}
	in, err := rawKey(fresh, o.key)
	if err != nil {
		return nil, err
	}
	out, err := o.filter(ctx, in)
	if err != nil {
		return nil, unwritten(err)
	}
	switch {
	case bytes.Equal(in, out):
		return nil, retry.ErrUnchanged
	case len(out) == 0:
		return nil, &hintedError{errNoOutput, fmt.Sprintf("to store the empty value: cmctl set %s %s=%s; to remove the key: cmctl unset %s %s%s", o.name, o.key, o.where, o.name, o.key, o.where)}
	}
	return withFields(fresh, map[types.Field]any{f: dataValue(o.key, out, o.note)})
}

// whole sends the object through the command. What changed is found by comparing
// with what it was given, so that what it is not given stays as it is.
func (o *updateOptions) whole(ctx context.Context, fresh types.Document) (types.Document, error) {
	given, in, err := o.show(fresh)
	if err != nil {
		return nil, err
	}
	out, err := o.filter(ctx, in)
	if err != nil {
		return nil, unwritten(err)
	}
	made, err := parseOutput(out, o.meant(), given)
	if err != nil {
		return nil, err
	}
	changes := types.Diff(given, made)
	if len(changes) == 0 {
		return nil, retry.ErrUnchanged
	}
	next := fresh.Clone()
	for _, c := range changes {
		if c.Field == lastApplied {
			return nil, fmt.Errorf("the command's output sets the annotation %s, which apply alone keeps; nothing was written", types.LastApplied)
		}
		next.Set(c.Field, c.To)
	}
	return next, nil
}

// filter runs the command. A forced end of ours is its end too.
func (o *updateOptions) filter(ctx context.Context, in []byte) ([]byte, error) {
	return filter.Command{Argv: o.command, Stderr: o.Err, Running: o.interrupts.before}.Run(ctx, in)
}

// unwritten says of a failed command what that means for the object.
func unwritten(err error) error { return fmt.Errorf("%w; nothing was written", err) }

// show is what the command gets, and the document that this says. Without the
// server's bookkeeping, and without the record of the last apply: what edits
// the whole text would edit that too.
func (o *updateOptions) show(fresh types.Document) (given types.Document, text []byte, err error) {
	given, _ = withoutRecord(fresh)
	given.SetMeta("managedFields", nil)
	var b bytes.Buffer
	if err := printDocument(&b, o.format, given); err != nil {
		return nil, nil, err
	}
	if o.format == "json" {
		return given, b.Bytes(), nil
	}
	back, err := manifest.ParseYAML(b.Bytes())
	if err != nil || len(types.Diff(given, back)) > 0 {
		return nil, nil, errors.New("this object can't be shown as YAML without changing it; take --format=json")
	}
	return given, b.Bytes(), nil
}

// meant is the format that the command must answer in.
func (o *updateOptions) meant() manifest.Format {
	if o.format == "json" {
		return manifest.JSON
	}
	return manifest.Any
}

// errNoOutput is a command that printed nothing, as one does that failed without saying
// so.
var errNoOutput = errors.New("the command's output is empty; nothing was written")

// parseOutput reads what a command made of the object that it was given, and
// refuses what can't be meant: another object, or one made from another version.
func parseOutput(text []byte, format manifest.Format, given types.Document) (types.Document, error) {
	const source = "the command's output"
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errNoOutput
	}
	found, faults := manifest.Parse(source, text, format, given)
	switch {
	case len(faults) > 0:
		return nil, unwritten(oneOrMany(faults))
	case len(found) != 1:
		return nil, fmt.Errorf("%s holds %d objects instead of the one that it was given; nothing was written", source, len(found))
	}
	made := found[0].Document
	for _, p := range made.Problems(false) {
		if !manifest.Untouched(given, made, p.Path) {
			return nil, fmt.Errorf("%s: %s; nothing was written", found[0].Where(), p.Message)
		}
	}
	for _, id := range []struct {
		field, was, now string
		optional        bool
	}{
		{"name", given.Name(), made.Name(), false},
		{"namespace", given.Namespace(), made.Namespace(), true},
		{"uid", given.UID(), made.UID(), true},
		{"resourceVersion", given.ResourceVersion(), made.ResourceVersion(), true},
	} {
		if id.now != id.was && !(id.optional && id.now == "") {
			return nil, fmt.Errorf("%s: metadata.%s is %q, but %q was given; nothing was written", source, id.field, id.now, id.was)
		}
	}
	return made, nil
}
