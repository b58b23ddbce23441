package types

import (
	"encoding/json"
	"fmt"
	"time"
)

// historyTimeLayout is RFC 3339 with milliseconds: finer than Kubernetes'
// timestamps, because several versions of an object may fall into one second.
const historyTimeLayout = "2006-01-02T15:04:05.000Z07:00"

// HistoryTime is a point in time that is written as RFC 3339 with
// milliseconds, in UTC.
type HistoryTime struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t HistoryTime) MarshalJSON() ([]byte, error) {
	return json.Marshal(t.UTC().Format(historyTimeLayout))
}

// UnmarshalJSON implements json.Unmarshaler. It takes any RFC 3339 time.
func (t *HistoryTime) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("history time: %w", err)
	}
	parsed, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return fmt.Errorf("history time: %w", err)
	}
	t.Time = parsed.UTC()
	return nil
}
