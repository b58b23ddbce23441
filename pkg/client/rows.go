package client

import (
	"context"
	"fmt"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/types"
)

// Row is what a list tells of an object without its contents.
type Row struct {
	Namespace string
	Name      string
	// Keys is how many keys the data has, and Age how old the object is, in the
	// server's words. Age is empty where the server leaves it to the client.
	Keys string
	Age  string
	// Object has the metadata, and perhaps the rest. It is nil unless the
	// metadata were asked for.
	Object types.Document
}

// RowOptions choose what Rows returns.
type RowOptions struct {
	ListOptions
	// Metadata asks for the metadata of each object too. A list over all
	// namespaces always has them: nothing else tells the namespace.
	Metadata bool
}

// tableOf is what to ask for so that no contents are sent, where the server can
// do that; if it can't, it answers with the list.
const tableOf = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json"

// Rows lists the collection without the data of its objects, which are the bulk
// of it. Like List, it is the state at one version.
func (m *ConfigMaps) Rows(ctx context.Context, o RowOptions) ([]Row, error) {
	k, err := m.collection()
	if err != nil {
		return nil, err
	}
	include := metav1.IncludeNone
	if o.Metadata || m.namespace == "" {
		include = metav1.IncludeMetadata
	}
	k.accept, k.query = tableOf, url.Values{"includeObject": {string(include)}}
	rows, _, err := wholeList(ctx, m.client, k, o.ListOptions, m.rows)
	return rows, err
}

// rows takes a Table apart, or the list that came in its place.
func (m *ConfigMaps) rows(page types.Document) (rows []Row, ok bool) {
	if page.Kind() != "Table" {
		items, ok := listItems(page)
		for _, d := range items {
			rows = append(rows, Row{Namespace: d.Namespace(), Name: d.Name(), Keys: fmt.Sprint(d.DataCount()), Object: d})
		}
		return rows, ok
	}
	rows, ok = tableRows(page)
	if m.namespace != "" {
		for i := range rows {
			rows[i].Namespace = m.namespace
		}
	}
	return rows, ok
}

// tableRows takes a Table apart.
func tableRows(table types.Document) (rows []Row, ok bool) {
	columns := tableColumns(table)
	raw, isList := table["rows"].([]any)
	if _, named := columns["Name"]; !named || !isList && table["rows"] != nil {
		return nil, false
	}
	for _, r := range raw {
		fields, _ := r.(map[string]any)
		row, ok := tableRow(fields, columns)
		if !ok {
			return nil, false
		}
		rows = append(rows, row)
	}
	return rows, true
}

// tableColumns are the positions of the columns by their names.
func tableColumns(table types.Document) map[string]int {
	columns := map[string]int{}
	definitions, _ := table["columnDefinitions"].([]any)
	for i, d := range definitions {
		definition, _ := d.(map[string]any)
		if name, ok := definition["name"].(string); ok {
			columns[name] = i
		}
	}
	return columns
}

func tableRow(fields map[string]any, columns map[string]int) (row Row, ok bool) {
	cells, _ := fields["cells"].([]any)
	cell := func(name string) string {
		if i, ok := columns[name]; ok && i < len(cells) && cells[i] != nil {
			return fmt.Sprint(cells[i])
		}
		return ""
	}
	row = Row{Name: cell("Name"), Keys: cell("Data"), Age: cell("Age")}
	if object, ok := fields["object"].(map[string]any); ok {
		row.Object = object
		row.Namespace = row.Object.Namespace()
	}
	return row, row.Name != ""
}
