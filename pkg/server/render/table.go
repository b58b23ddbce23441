package render

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"example.com/cmctl/pkg/types"
)

// table is how objects of one resource are shown in rows.
type table struct {
	columns json.RawMessage // their definitions
	// cell appends the one cell that only this resource has.
	cell func(dst []byte, item Item) []byte
}

var tables = map[*types.Resource]table{
	types.ConfigMaps: {
		columns: columns(metav1.TableColumnDefinition{Name: "Data", Type: "string", Description: corev1.ConfigMap{}.SwaggerDoc()["data"]}),
		cell: func(dst []byte, item Item) []byte {
			return strconv.AppendInt(dst, int64(item.Row.Keys), 10)
		},
	},
	types.Namespaces: {
		columns: columns(metav1.TableColumnDefinition{Name: "Status", Type: "string", Description: "The status of the namespace"}),
		cell: func(dst []byte, item Item) []byte {
			return appendText(dst, member(member(item.Encoded.Value, "status"), "phase"))
		},
	},
}

// columns are definitions as JSON: name and age, and one between them.
func columns(own metav1.TableColumnDefinition) json.RawMessage {
	meta := metav1.ObjectMeta{}.SwaggerDoc()
	all := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: meta["name"]},
		own,
		{Name: "Age", Type: "string", Description: meta["creationTimestamp"]},
	}
	text, _ := json.Marshal(all) // strings and numbers always marshal
	return text
}

// columnsOf are the definitions for a resource.
func columnsOf(r *types.Resource) json.RawMessage { return tables[r].columns }

// noColumns stand for definitions that the client has already.
var noColumns = json.RawMessage("null")

// appendTable appends items as a table.
func (r *Renderer) appendTable(dst []byte, f Form, columns json.RawMessage, l List) []byte {
	dst = appendType(dst, metav1.TypeMeta{APIVersion: f.apiVersion(), Kind: kindTable})
	dst = appendListMeta(dst, l)
	dst = append(dst, `,"columnDefinitions":`...)
	dst = append(dst, columns...)
	dst = append(dst, `,"rows":[`...)
	for i, item := range l.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.appendRow(dst, f, item)
	}
	return append(dst, ']', '}')
}

func (r *Renderer) appendRow(dst []byte, f Form, item Item) []byte {
	if item.Row.Name == "" {
		item.Row = readRow(item.Encoded.Value)
	}
	dst = append(dst, `{"cells":["`...)
	dst = append(dst, item.Row.Name...) // as a name it has nothing to escape
	dst = append(dst, '"', ',')
	dst = tables[item.Encoded.Resource].cell(dst, item)
	dst = append(dst, `,"`...)
	dst = append(dst, r.age(item.Row.Created)...)
	dst = append(dst, `"],"object":`...)
	switch f.include {
	case metav1.IncludeNone:
		dst = append(dst, "null"...)
	case metav1.IncludeObject:
		dst = item.Encoded.AppendObject(dst, item.Version)
	default:
		dst = f.appendPartial(dst, item)
	}
	return append(dst, '}')
}

// readRow reads an object.
func readRow(object []byte) Row {
	meta := member(object, "metadata")
	row := Row{Name: string(bytes.Trim(member(meta, "name"), `"`)), Keys: count(member(object, "data")) + count(member(object, "binaryData"))}
	var created metav1.Time
	if json.Unmarshal(member(meta, "creationTimestamp"), &created) == nil { // else it is unknown
		row.Created = created.Time
	}
	return row
}

// appendText appends a string that is JSON already; one that is absent is empty.
func appendText(dst, text []byte) []byte {
	if text == nil {
		return append(dst, `""`...)
	}
	return append(dst, text...)
}

// age says how long ago something was made, as Kubernetes shows it to people.
func (r *Renderer) age(created time.Time) string {
	if created.IsZero() {
		return `<unknown>`
	}
	return duration.HumanDuration(r.now().Sub(created))
}
