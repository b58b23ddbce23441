package main

import (
	"strings"
	"testing"
	"time"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
)

// The age is an age, whatever a server sends.
func TestAge(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	made := types.NewDocument("ns", "flags")
	made.SetMeta("creationTimestamp", "2026-11-30T11:00:00Z")
	for _, c := range []struct {
		row  client.Row
		want string
	}{
		{client.Row{Object: made}, "60m"},
		{client.Row{Object: made, Age: "5s"}, "60m"},
		{client.Row{Age: "5s"}, "5s"},
		{client.Row{Age: "2026-11-30T11:59:00Z"}, "60s"},
		{client.Row{Object: types.NewDocument("ns", "flags")}, "<unknown>"},
		{client.Row{}, "<unknown>"},
	} {
		if got := (table{now: now}).age(c.row); got != c.want {
			t.Errorf("%+v: %q, want %q", c.row, got, c.want)
		}
	}
}

func TestColumns(t *testing.T) {
	d := types.NewDocument("ns", "flags")
	d.Set(types.Field{Section: "metadata.labels", Key: "example.com/tier"}, "web")
	d.Set(types.Field{Section: "data", Key: "b"}, "x")
	d.Set(types.Field{Section: "data", Key: "a"}, types.Binary("aGk="))
	row := client.Row{Namespace: "ns", Name: "flags", Keys: "2", Age: "5s", Object: d}
	for _, c := range []struct {
		table
		header, cells string
	}{
		{table{}, "NAME DATA AGE", "flags 2 5s"},
		{table{namespaces: true}, "NAMESPACE NAME DATA AGE", "ns flags 2 5s"},
		{table{wide: true}, "NAME DATA AGE VERSION KEYS", "flags 2 5s  a,b"},
		{table{labelColumns: []string{"example.com/tier", "none"}}, "NAME DATA AGE TIER NONE", "flags 2 5s web "},
		{table{labels: true}, "NAME DATA AGE LABELS", "flags 2 5s example.com/tier=web"},
	} {
		if got := strings.Join(c.table.header(), " "); got != c.header {
			t.Errorf("%q, want %q", got, c.header)
		}
		if got := strings.Join(c.table.cells(row), " "); got != c.cells {
			t.Errorf("%q, want %q", got, c.cells)
		}
	}
	if got := (table{labels: true}).cells(client.Row{}); got[3] != "<none>" {
		t.Errorf("%q", got)
	}
}
