package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/managed"
	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
)

type describeOptions struct {
	*factory
	selection
	names []string
}

func newDescribe(f *factory) *cobra.Command {
	o := &describeOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "describe [NAME...]",
		Short: "Show ConfigMaps for reading: who wrote them, and every value as it is",
		Example: `  cmctl describe flags
  cmctl describe -l tier=web
  cmctl describe           # all in the namespace`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.names, err = parseNames(args); err != nil {
				return err
			}
			if err := o.selection.check(o.names); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.selection.add(cmd.Flags())
	return cmd
}

func (o *describeOptions) run(ctx context.Context) error {
	conn, err := o.connect("describe")
	if err != nil {
		return err
	}
	found, errs := o.selection.read(ctx, conn, o.names)
	if len(found) == 0 && len(errs) == 0 {
		o.note("No ConfigMaps found.")
	}
	var b bytes.Buffer
	for i, d := range found {
		if i > 0 {
			b.WriteString("\n\n")
		}
		description{doc: d, now: o.now(), colors: o.colors(o.Out)}.write(&b)
	}
	if _, err := o.Out.Write(b.Bytes()); err != nil {
		errs = append(errs, err)
	}
	return oneOrMany(errs)
}

// description is an object told for reading. Nothing in it can act on the
// terminal: control characters are shown as escapes.
type description struct {
	doc    types.Document
	now    time.Time
	colors output.Palette
}

func (d description) write(w io.Writer) {
	fields := []struct{ name, value string }{
		{"Name", d.doc.Name()},
		{"Namespace", d.doc.Namespace()},
		{"Labels", d.entries("=", "metadata", "labels")},
		{"Annotations", d.entries(": ", "metadata", "annotations")},
		{"Version", d.doc.ResourceVersion()},
		{"Created", d.since("creationTimestamp")},
		{"Deleted", d.since("deletionTimestamp")},
		{"Last written", d.lastWrite()},
		{"Immutable", d.immutable()},
	}
	for _, f := range fields {
		if f.value != "" {
			fmt.Fprintf(w, "%-15s%s\n", f.name+":", strings.ReplaceAll(f.value, "\n", "\n"+strings.Repeat(" ", 15)))
		}
	}
	d.heading(w, "\nData", "====")
	data := textsAt(d.doc, "data")
	for _, key := range slices.Sorted(maps.Keys(data)) {
		d.heading(w, key+":", "----")
		fmt.Fprintf(w, "%s\n\n", strings.TrimSuffix(output.Visible(data[key], "\n\t"), "\n"))
	}
	d.heading(w, "\nBinaryData", "====")
	binary := textsAt(d.doc, "binaryData")
	for _, key := range slices.Sorted(maps.Keys(binary)) {
		size := "not base64"
		if raw, ok := types.Binary(binary[key]).Bytes(); ok {
			size = fmt.Sprintf("%d bytes", len(raw))
		}
		fmt.Fprintf(w, "%s: %s\n", key, size)
	}
}

func (d description) heading(w io.Writer, text, line string) {
	fmt.Fprintf(w, "%s\n%s\n", d.colors.Bold(text), line)
}

// entries are those of a map, one a line. What apply keeps there for itself is
// left out.
func (d description) entries(between string, path ...string) string {
	entries := textsAt(d.doc, path...)
	maps.DeleteFunc(entries, func(key, _ string) bool {
		f := annotation(key)
		return strings.Join(path, ".") == f.Section && f.Bookkeeping()
	})
	if len(entries) == 0 {
		return "<none>"
	}
	lines := make([]string, 0, len(entries))
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		lines = append(lines, key+between+output.Visible(entries[key], ""))
	}
	return strings.Join(lines, "\n")
}

// since is a time of the metadata, and how long ago it was.
func (d description) since(field string) string {
	at, _ := d.doc.Value("metadata", field)
	text, _ := at.(string)
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return fmt.Sprintf("%s (%s ago)", text, duration.HumanDuration(d.now.Sub(when)))
}

// lastWrite is the newest entry of managedFields.
func (d description) lastWrite() string {
	manager, at := managed.LastOfAll(d.doc)
	switch {
	case manager == "":
		return "by whom is not recorded"
	case at.IsZero():
		return "by " + output.Visible(manager, "")
	}
	return fmt.Sprintf("%s by %s", at.UTC().Format(time.RFC3339), output.Visible(manager, ""))
}

func (d description) immutable() string {
	if immutable, _ := d.doc["immutable"].(bool); immutable {
		return "true (the data can't be changed; the metadata can)"
	}
	return ""
}
