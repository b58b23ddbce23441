package render

import (
	"encoding/json"
	"testing"
	"time"

	"example.com/cmctl/pkg/types"
)

func TestEveryResourceHasATable(t *testing.T) {
	for _, r := range types.Resources {
		var columns []any
		if err := json.Unmarshal(columnsOf(r), &columns); err != nil || len(columns) != 3 || tables[r].cell == nil {
			t.Errorf("%s: %d columns, %v", r.Plural, len(columns), err)
		}
	}
}

func TestAgesAreShownAsPeopleSayThem(t *testing.T) {
	const created = `"2026-03-01T12:00:00Z"`
	for _, c := range []struct {
		created string
		after   time.Duration
		want    string
	}{
		{created, 0, "0s"},
		{created, 90 * time.Second, "90s"},
		{created, 3 * time.Minute, "3m"},
		{created, 49 * time.Hour, "2d1h"},
		{created, -time.Minute, "<invalid>"},
		{"", time.Minute, "<unknown>"},
		{"null", time.Minute, "<unknown>"},
		{`"soon"`, time.Minute, "<unknown>"},
	} {
		r := New(0, func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(c.after) })
		object := `{"metadata":{}}`
		if c.created != "" {
			object = `{"metadata":{"creationTimestamp":` + c.created + `}}`
		}
		if got := r.age(readRow([]byte(object)).Created); got != c.want {
			t.Errorf("created %s, %v later: got %q, want %q", c.created, c.after, got, c.want)
		}
	}
}
