package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/pflag"
)

// left is the event of an object that no longer matches the selectors, which
// the server calls deleted.
const left client.EventType = "LEFT"

// watchFlags let get follow what it shows.
type watchFlags struct {
	on      bool
	only    bool
	events  bool
	timeout time.Duration
}

func (w *watchFlags) add(flags *pflag.FlagSet) {
	flags.BoolVarP(&w.on, "watch", "w", false, "after that, show each change until interrupted")
	flags.BoolVar(&w.only, "watch-only", false, "show the changes alone, not what is there at first")
	flags.BoolVar(&w.events, "output-watch-events", true, "say what happened with each change: ADDED, MODIFIED, DELETED or LEFT")
	flags.DurationVar(&w.timeout, "timeout", 0, "with -w, end after that long (default: never)")
}

// check refuses flags that make no sense beside these.
func (w *watchFlags) check(o *getOptions) error {
	w.on = w.on || w.only
	switch {
	case !w.on && w.timeout != 0:
		return usagef("--timeout is for --watch; how long one request may take is --request-timeout")
	case w.timeout < 0:
		return usagef("--timeout must not be negative; without it the watch never ends")
	case w.on && o.key != "":
		return usagef("--key and --watch don't go together")
	case w.on && len(o.sortBy) > 0:
		return usagef("--sort-by and --watch don't go together: changes are shown in the order in which they happen")
	}
	return nil
}

// follow is get --watch.
func (o *getOptions) follow(ctx context.Context, conn *connection) error {
	if o.watch.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.watch.timeout)
		defer cancel()
	}
	server := &connectivity{factory: o.factory}
	watch := func(name string) client.WatchOptions {
		return client.WatchOptions{ListOptions: o.listOptions(), Name: name, Observe: server.observer()}
	}
	maps := conn.ConfigMaps(o.scope(conn))
	shown := &changes{getOptions: o, conn: conn, rows: &output.Rows{NoHeaders: o.print.NoHeaders}}
	for e, err := range followNamed(ctx, maps, o.names, watch) {
		if err == nil {
			err = shown.take(ctx, e)
		}
		if errors.Is(err, context.DeadlineExceeded) && o.watch.timeout > 0 {
			return o.explainWatch(conn, server.lost()) // else it ends as it was asked to
		}
		if err != nil {
			return o.explainWatch(conn, err)
		}
	}
	return nil
}

// explainWatch adds to an error what was followed.
func (o *getOptions) explainWatch(conn *connection, err error) error {
	if len(o.names) == 1 {
		return conn.explain(conn.namespace, o.names[0], err)
	}
	return conn.explainList(o.scope(conn), err)
}

// changes shows events as they come.
type changes struct {
	*getOptions
	conn  *connection
	rows  *output.Rows
	first []client.Event // what is there at first, until it is complete
	ready bool
	count int
}

func (c *changes) take(ctx context.Context, e client.Event) error {
	switch {
	case e.Type == client.Synced:
		return c.begin(ctx)
	case c.ready:
		return c.show(ctx, []client.Event{e})
	case !c.watch.only:
		c.first = append(c.first, e)
	}
	return nil
}

// begin shows what is there at first.
func (c *changes) begin(ctx context.Context) error {
	c.ready = true
	switch {
	case c.watch.only:
		c.note("waiting for changes (Ctrl-C ends)")
	case len(c.first) == 0:
		c.note("nothing is there yet; waiting for changes (Ctrl-C ends)")
	}
	first := c.first
	c.first = nil
	return c.show(ctx, first)
}

func (c *changes) show(ctx context.Context, events []client.Event) error {
	var rows [][]string
	for _, e := range events {
		e.Type = c.named(ctx, e)
		if !c.managedFields {
			e.Object = e.Object.Clone()
			e.Object.SetMeta("managedFields", nil)
		}
		if c.printer == nil {
			rows = append(rows, c.row(e))
			continue
		}
		err := c.write(e)
		if errors.As(err, new(*output.MissingError)) {
			// One object without it is no reason to stop following the others.
			c.note("%s: %v", e.Object.Name(), err)
			continue
		}
		if err != nil {
			return err
		}
	}
	if len(rows) == 0 {
		return nil
	}
	header := c.table().header()
	if c.watch.events {
		header = append([]string{"EVENT   "}, header...) // as wide as the longest
	}
	return c.rows.Print(c.Out, header, rows)
}

// named is what happened, in one word.
func (c *changes) named(ctx context.Context, e client.Event) client.EventType {
	if e.Type != client.Deleted || c.selector == "" && c.fieldSelector == "" {
		return e.Type
	}
	still, err := c.conn.ConfigMaps(e.Object.Namespace()).Left(ctx, e.Object)
	if err != nil && ctx.Err() == nil {
		c.note("%s: it was deleted, or no longer matches the selector: %s", e.Object.Name(), reason(err))
	}
	if still {
		return left
	}
	return e.Type
}

func (c *changes) row(e client.Event) []string {
	cells := c.table().cells(client.Row{
		Namespace: e.Object.Namespace(), Name: e.Object.Name(), Keys: strconv.Itoa(e.Object.DataCount()), Object: e.Object,
	})
	if c.watch.events {
		cells = append([]string{string(e.Type)}, cells...)
	}
	return cells
}

// write writes one event in a form for programs. JSON is one line each.
func (c *changes) write(e client.Event) error {
	c.count++
	if c.output == "json" && c.watch.events {
		enc := json.NewEncoder(c.Out)
		enc.SetEscapeHTML(false)
		return enc.Encode(struct {
			Type   client.EventType `json:"type"`
			Object types.Document   `json:"object"`
		}{e.Type, e.Object})
	}
	shown := e.Object
	if c.output == "yaml" && c.count > 1 {
		if _, err := io.WriteString(c.Out, "---\n"); err != nil {
			return err
		}
	}
	if c.output == "yaml" && c.watch.events {
		shown = types.Document{"type": string(e.Type), "object": map[string]any(e.Object)}
	}
	return c.printer.Print(c.Out, output.Objects{Items: []types.Document{shown}})
}
