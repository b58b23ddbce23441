package crash

import (
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store/local"
)

// The clock jumps, by an hour or by decades, also between two lives of the server.
// Versions only go up, guards compare them alone, and what is stored can be read. The
// time says when the clock showed what.
func TestClockJumps(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	disk, last := vfs.NewMem(), int64(0)
	for life, times := range [][]time.Time{
		{noon, noon.Add(-time.Hour), noon.Add(time.Hour)},
		{time.Unix(0, 0), time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC), noon},
		{time.Date(2106, 2, 7, 6, 28, 16, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), noon},
	} {
		st, err := local.Open(local.Options{Dir: "data", FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		now := noon
		s := server.New(server.Options{Store: st, Clock: func() time.Time { return now }})
		hs := httptest.NewServer(s.Handler())
		a := newAPI(hs.URL)
		for i, at := range times {
			now = at
			name := "a-" + strconv.Itoa(life) + "-" + strconv.Itoa(i)
			var made, changed object
			if code, err := a.call(t.Context(), "POST", collection, "", large(name, 10), &made); code != 201 || err != nil {
				t.Fatalf("%s at %s: %d, %v", name, at, code, err)
			}
			made.Data["more"] = "1"
			stale := made
			now = now.Add(-30 * time.Minute)
			if code, err := a.call(t.Context(), "PUT", collection+"/"+name, "", made, &changed); code != 200 || err != nil {
				t.Fatalf("%s at %s: %d, %v", name, now, code, err)
			}
			now = at.Add(24 * time.Hour)
			if at.Year() == 9999 {
				now = at
			}
			stale.Data["more"] = "2"
			expect(t, a, 409, "PUT", collection+"/"+name, stale)
			for _, o := range []object{made, changed} {
				v := number(o.Metadata.ResourceVersion)
				if v <= last {
					t.Errorf("%s at %s: version %d after %d", name, at, v, last)
				}
				last = v
				expect(t, a, 200, "GET", collection+"/"+name+"/history?resourceVersion="+o.Metadata.ResourceVersion, nil)
			}
			expect(t, a, 200, "GET", collection+"/"+name+"/history", nil)
			expect(t, a, 200, "GET", collection, nil)
		}
		if err := st.Check(t.Context()); err != nil {
			t.Error(err)
		}
		hs.Close()
		s.Stop()
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
