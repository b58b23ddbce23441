package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
)

type historyOptions struct {
	*factory
	name    string
	changes bool
	limit   int
	output  string
	print   output.Options
	printer output.Printer // nil for the tables and for names
}

func newHistory(f *factory) *cobra.Command {
	o := &historyOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "List the versions of a ConfigMap that the server keeps, also of a deleted one",
		Long: `List the versions of a ConfigMap that the server keeps, newest first: when each was
written, how, with what tool and by whom. Of a deleted one too, for as long as the
server keeps what was deleted.

--changes says what each write changed; for that all of the versions are read. -o
takes wide (uid and write id), yaml, json, name (the versions alone) and expressions.

Only cmserver keeps old versions. A Kubernetes API server has none: there
'cmctl blame' tells who wrote each key last.`,
		Example: `  cmctl history flags
  cmctl history flags --changes
  cmctl history flags -o json
  cmctl get flags --version 4711          # as it was then
  cmctl diff flags --from 4711            # what changed since
  cmctl undo flags                        # take the newest change back`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.name, err = oneName("history", args); err != nil {
				return err
			}
			if err := o.complete(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.changes, "changes", false, "show which fields each write changed")
	flags.IntVar(&o.limit, "limit", 0, "show the newest `N` versions only (default all)")
	flags.StringVarP(&o.output, "output", "o", "", "how to print: wide, "+strings.Join(output.Formats, ", ")+" (default a table)")
	flags.BoolVar(&o.print.NoHeaders, "no-headers", false, "leave out the first line of a table")
	return cmd
}

func (o *historyOptions) complete() (err error) {
	if o.limit < 0 {
		return usagef("--limit must be at least 1, not %d", o.limit)
	}
	switch o.output {
	case "", "wide", "name":
		return nil
	}
	o.print.Colors = o.colors(o.Out)
	if o.printer, err = output.New(o.output, o.print); err != nil {
		return usagef("%v", err)
	}
	return nil
}

func (o *historyOptions) run(ctx context.Context) error {
	conn, err := o.connect("history")
	if err != nil {
		return err
	}
	return conn.explain(conn.namespace, o.name, o.list(ctx, conn))
}

func (o *historyOptions) list(ctx context.Context, conn *connection) error {
	past := conn.past(o.name)
	list, err := past.list(ctx)
	if err != nil {
		return err
	}
	shown := len(list.Items)
	if o.limit > 0 {
		shown = min(shown, o.limit)
	}
	var writes []pastWrite
	for i := range shown {
		w := pastWrite{HistoryEntry: list.Items[i]}
		if o.changes {
			if w, err = past.write(ctx, list.Items, i); err != nil {
				return err
			}
		}
		writes = append(writes, w)
	}
	if err := o.show(list, writes); err != nil {
		return err
	}
	o.tell(conn, list.Items, shown)
	return nil
}

func (o *historyOptions) show(list *types.HistoryList, writes []pastWrite) error {
	if o.printer != nil {
		return o.printDocument(list, writes)
	}
	if o.output == "name" {
		for _, w := range writes {
			if err := o.say("%s", w.ResourceVersion); err != nil {
				return err
			}
		}
		return nil
	}
	laid := output.Table{Header: []string{"VERSION", "TIME", "VERB", "MANAGER", "USER"}, NoHeaders: o.print.NoHeaders, Colors: o.colors(o.Out)}
	if o.output == "wide" {
		laid.Header = append(laid.Header, "UID", "WRITE-ID")
	}
	if o.changes {
		laid.Header = append(laid.Header, "CHANGED")
	}
	for _, w := range writes {
		laid.Rows = append(laid.Rows, o.cells(w))
	}
	return laid.Print(o.Out)
}

func (o *historyOptions) cells(w pastWrite) []string {
	cells := []string{w.ResourceVersion, w.Time.UTC().Format(time.RFC3339), w.Verb, cmp.Or(w.FieldManager, "-"), cmp.Or(w.User, "-")}
	if o.output == "wide" {
		cells = append(cells, string(w.UID), cmp.Or(w.WriteID, "-"))
	}
	switch names := fieldsOf(w.changes); {
	case !o.changes:
	case !w.known:
		cells = append(cells, "not known")
	case len(names) == 0:
		cells = append(cells, "-")
	case len(names) > maxTold:
		cells = append(cells, fmt.Sprintf("%s and %d more", strings.Join(firstOf(names), ","), len(names)-maxTold))
	default:
		cells = append(cells, strings.Join(names, ","))
	}
	return cells
}

// printDocument writes the history in a form for programs: as the server gives it,
// with the names of the fields that changed where they were asked for. Columns have a
// line for each version.
func (o *historyOptions) printDocument(list *types.HistoryList, writes []pastWrite) error {
	items := make([]any, len(writes))
	docs := make([]types.Document, len(writes))
	for i, w := range writes {
		item, err := asDocument(w.HistoryEntry)
		if err != nil {
			return err
		}
		if o.changes && w.known {
			changed := []any{}
			for _, name := range fieldsOf(w.changes) {
				changed = append(changed, name)
			}
			item["changed"] = changed
		}
		items[i], docs[i] = map[string]any(item), item
	}
	if strings.HasPrefix(o.output, "custom-columns") {
		return o.printer.Print(o.Out, output.Objects{Items: docs, List: true})
	}
	doc, err := asDocument(list)
	if err != nil {
		return err
	}
	doc["items"] = items
	return o.printer.Print(o.Out, output.Objects{Items: []types.Document{doc}})
}

// asDocument is a value of the API as JSON has it.
func asDocument(v any) (types.Document, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return types.ParseDocument(text)
}

// tell says where the list ends, and what can be done about a deletion.
func (o *historyOptions) tell(conn *connection, items []types.HistoryEntry, shown int) {
	if items[0].Deleted {
		o.note("it is deleted; 'cmctl undo %s%s' brings it back", o.name, conn.where)
	}
	last := len(items) - 1
	switch {
	case shown <= last:
		o.note("%d older versions are not shown", last+1-shown)
	case !creates(items, last):
		o.note("the history begins with version %s: older ones are no longer kept", items[last].ResourceVersion)
	}
}
