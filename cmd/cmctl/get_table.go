package main

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
)

// table is what get shows a person.
type table struct {
	namespaces   bool // a NAMESPACE column, for -A
	wide         bool
	labelColumns []string
	labels       bool
	noHeaders    bool
	colors       output.Palette
	now          time.Time
}

func (t table) print(w io.Writer, rows []client.Row) error {
	laid := output.Table{Header: t.header(), NoHeaders: t.noHeaders, Colors: t.colors}
	for _, r := range rows {
		laid.Rows = append(laid.Rows, t.cells(r))
	}
	return laid.Print(w)
}

func (t table) header() []string {
	header := []string{"NAME", "DATA", "AGE"}
	if t.namespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	if t.wide {
		header = append(header, "VERSION", "KEYS")
	}
	for _, label := range t.labelColumns {
		header = append(header, strings.ToUpper(label[strings.LastIndex(label, "/")+1:]))
	}
	if t.labels {
		header = append(header, "LABELS")
	}
	return header
}

func (t table) cells(r client.Row) []string {
	cells := []string{r.Name, r.Keys, t.age(r)}
	if t.namespaces {
		cells = append([]string{r.Namespace}, cells...)
	}
	if t.wide {
		cells = append(cells, r.Object.ResourceVersion(), strings.Join(r.Object.DataKeys(), ","))
	}
	for _, label := range t.labelColumns {
		cells = append(cells, labelsOf(r.Object)[label])
	}
	if t.labels {
		cells = append(cells, asPairs(labelsOf(r.Object)))
	}
	return cells
}

// age is how long the object exists, also where a server gives the time at
// which it began in place of an age.
func (t table) age(r client.Row) string {
	text, _ := r.Object.Value("metadata", "creationTimestamp")
	for _, text := range []any{text, r.Age} {
		text, _ := text.(string)
		if created, err := time.Parse(time.RFC3339, text); err == nil {
			return duration.HumanDuration(t.now.Sub(created))
		}
	}
	return cmp.Or(r.Age, "<unknown>")
}

// labelsOf are the labels of an object.
func labelsOf(d types.Document) map[string]string { return textsAt(d, "metadata", "labels") }

// textsAt are the strings of the map at a path.
func textsAt(d types.Document, path ...string) map[string]string {
	at, _ := d.Value(path...)
	entries, _ := at.(map[string]any)
	texts := map[string]string{}
	for key, v := range entries {
		if text, ok := v.(string); ok {
			texts[key] = text
		}
	}
	return texts
}

// asPairs are entries on one line: a=1,b=2.
func asPairs(entries map[string]string) string {
	if len(entries) == 0 {
		return "<none>"
	}
	pairs := make([]string, 0, len(entries))
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		pairs = append(pairs, key+"="+entries[key])
	}
	return strings.Join(pairs, ",")
}
