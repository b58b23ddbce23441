package server_test

import (
	"log/slog"
	"strings"
	"testing"

	"example.com/cmctl/pkg/server"
)

// A method may be any word; of a long one the log has the beginning.
func TestALongMethodIsCutInTheLog(t *testing.T) {
	var log strings.Builder
	a := begin(t, func(o *server.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	method := strings.Repeat("M", 5000)
	a.must(405, method, flags, "")
	if said := log.String(); strings.Contains(said, method[:100]) || !strings.Contains(said, "MMM...TRUNCATED") {
		t.Errorf("the log is %s", said)
	}
}
