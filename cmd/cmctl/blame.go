package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/blame"
	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

type blameOptions struct {
	*factory
	name    string
	key     string
	lines   string
	depth   int
	output  string
	printer output.Printer // nil for the table
}

func newBlame(f *factory) *cobra.Command {
	o := &blameOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "blame NAME",
		Short: "Show who wrote each key last",
		Long: `Show for each key of data and binaryData, each label and each annotation who wrote
its value last, with what tool and when.

cmserver keeps the versions of an object, and names the very write. A Kubernetes
API server keeps none: there it is read from the object's managedFields, which
have one time for each tool, so that a key may have been written earlier than
that: "at or before". The same goes for what is older than the history.

--lines shows a value line by line, each with the write that it is from.`,
		Example: `  cmctl blame flags
  cmctl blame flags --key mode
  cmctl blame flags --lines app.yaml
  cmctl blame flags -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.name, err = oneName("blame", args); err != nil {
				return err
			}
			if err := o.complete(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.key, "key", "", "show this `key` of data alone")
	flags.StringVar(&o.lines, "lines", "", "show the value of this `key` line by line")
	flags.IntVar(&o.depth, "depth", 100, "how many versions to look at")
	flags.StringVarP(&o.output, "output", "o", "", "how to print: yaml or json (default a table)")
	return cmd
}

func (o *blameOptions) complete() (err error) {
	switch {
	case o.key != "" && o.lines != "":
		return usagef("give either --key or --lines, not both")
	case o.depth < 1:
		return usagef("--depth must be at least 1, not %d", o.depth)
	}
	if err := checkOutput(o.output, "yaml", "json"); err != nil || o.output == "" {
		return err
	}
	o.printer, err = output.New(o.output, output.Options{})
	return err
}

// annotated is what the versions of an object are shown to, newest first.
type annotated interface {
	Add(e types.HistoryEntry, doc types.Document)
	Begin()
	Complete() bool
}

func (o *blameOptions) run(ctx context.Context) error {
	conn, err := o.connect("blame")
	if err != nil {
		return err
	}
	maps := conn.ConfigMaps(conn.namespace)
	live, err := maps.Get(ctx, o.name)
	if err != nil {
		return conn.explain(conn.namespace, o.name, err)
	}
	if o.lines != "" {
		err = o.runLines(ctx, maps, live)
	} else {
		err = o.runFields(ctx, maps, live)
	}
	return conn.explain(conn.namespace, o.name, err)
}

func (o *blameOptions) runFields(ctx context.Context, maps *client.ConfigMaps, live types.Document) error {
	b := blame.New(live)
	if o.key != "" && !b.Only(types.Field{Section: "data", Key: o.key}) {
		return noKey(live, o.key)
	}
	if err := o.walk(ctx, maps, live, b); err != nil {
		return err
	}
	return o.printFields(live, b.Origins())
}

func (o *blameOptions) runLines(ctx context.Context, maps *client.ConfigMaps, live types.Document) error {
	f := types.Field{Section: "data", Key: o.lines}
	value := live.Fields()[f]
	_, isText := value.(string)
	switch {
	case value == nil:
		return noKey(live, o.lines)
	case !isText:
		return fmt.Errorf("binaryData[%s] has no lines; see --key %s", o.lines, o.lines)
	}
	l := blame.NewLines(live, f)
	if err := o.walk(ctx, maps, live, l); err != nil {
		return err
	}
	return o.printLines(live, l.Origins())
}

// walk shows the versions of the object, from the live one back, until each
// last write is known, and says on stderr why some are not.
func (o *blameOptions) walk(ctx context.Context, maps *client.ConfigMaps, live types.Document, a annotated) error {
	list, err := maps.History(ctx, o.name)
	if errors.Is(err, client.ErrNoHistory) {
		o.note("this server keeps no history: what is known is from managedFields, which have one time for each tool")
		return nil
	}
	if apierrors.IsForbidden(err) {
		o.note("%v: what is known is from managedFields, which have one time for each tool", err)
		return nil
	}
	if err != nil {
		return err
	}
	// What was written since the object was read is not looked at.
	start := slices.IndexFunc(list.Items, func(e types.HistoryEntry) bool { return e.ResourceVersion == live.ResourceVersion() })
	if start < 0 {
		o.note("the history does not have version %s, which was read; try again", live.ResourceVersion())
		return nil
	}
	a.Add(list.Items[start], live)
	last := list.Items[start]
	for i, e := range list.Items[start+1:] {
		switch {
		case e.Deleted || string(e.UID) != live.UID():
			a.Begin() // before this one there was another object
			return nil
		case a.Complete():
			return nil
		case i+2 > o.depth:
			o.note("only the newest %d versions were looked at; --depth looks further", o.depth)
			return nil
		}
		doc, err := maps.At(ctx, o.name, e.ResourceVersion)
		if apierrors.IsResourceExpired(err) || apierrors.IsNotFound(err) {
			break // dropped meanwhile
		}
		if err != nil {
			return err
		}
		a.Add(e, doc)
		last = e
	}
	if last.Verb == "create" {
		a.Begin()
	}
	if !a.Complete() {
		o.note("the history begins with version %s; what is older was written at or before it", last.ResourceVersion)
	}
	return nil
}

func (o *blameOptions) printFields(live types.Document, origins []blame.Origin) error {
	if o.printer != nil {
		return o.printDocument(live, "fields", origins, func(i int) map[string]any {
			return map[string]any{"field": origins[i].Field.String(), "section": origins[i].Field.Section, "key": origins[i].Field.Key}
		})
	}
	laid := output.Table{Header: []string{"FIELD", "WITH", "BY", "WHEN", "VERSION"}, Colors: o.colors(o.Out)}
	for _, origin := range origins {
		laid.Rows = append(laid.Rows, append([]string{origin.Field.String()}, cellsOf(origin)...))
	}
	if len(origins) == 0 {
		o.note("it has no data, labels or annotations")
		return nil
	}
	return laid.Print(o.Out)
}

func (o *blameOptions) printLines(live types.Document, lines []blame.Line) error {
	origins := make([]blame.Origin, len(lines))
	for i, l := range lines {
		origins[i] = l.Origin
	}
	if o.printer != nil {
		return o.printDocument(live, "lines", origins, func(i int) map[string]any {
			return map[string]any{"line": int64(i + 1), "text": lines[i].Text}
		})
	}
	laid := output.Table{Header: []string{"WITH", "BY", "WHEN", "VERSION", "LINE", "TEXT"}, Colors: o.colors(o.Out)}
	for i, l := range lines {
		laid.Rows = append(laid.Rows, append(cellsOf(l.Origin), strconv.Itoa(i+1), l.Text))
	}
	return laid.Print(o.Out)
}

// cellsOf is an origin as the tables show it: tool, user, time and version.
func cellsOf(o blame.Origin) []string {
	cell := func(text string) string { return cmp.Or(text, "-") }
	when := "not recorded"
	switch {
	case o.Time.IsZero():
	case o.Exact:
		when = o.Time.UTC().Format(time.RFC3339)
	default:
		when = atOrBefore(o.Time)
	}
	return []string{cell(o.Manager), cell(o.User), when, cell(o.Version)}
}

// printDocument writes the origins in a form for programs, each with what it is
// the origin of.
func (o *blameOptions) printDocument(live types.Document, list string, origins []blame.Origin, of func(i int) map[string]any) error {
	items := make([]any, len(origins))
	for i, origin := range origins {
		item := of(i)
		item["exact"] = origin.Exact
		for name, text := range map[string]string{
			"manager": origin.Manager, "user": origin.User, "verb": origin.Verb, "resourceVersion": origin.Version,
		} {
			if text != "" {
				item[name] = text
			}
		}
		if !origin.Time.IsZero() {
			item["time"] = origin.Time.UTC().Format(time.RFC3339)
		}
		items[i] = item
	}
	doc := types.Document{
		"name": live.Name(), "namespace": live.Namespace(), "uid": live.UID(), "resourceVersion": live.ResourceVersion(),
		list: items,
	}
	return o.printer.Print(o.Out, output.Objects{Items: []types.Document{doc}})
}
