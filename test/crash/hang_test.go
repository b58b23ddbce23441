package crash

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store/local"
)

// hanging is a disk whose log takes no sync between hang and goOn.
type hanging struct {
	mu sync.RWMutex // held for writing while it hangs
}

func (h *hanging) fs() vfs.FS {
	return errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".log") && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) {
			h.mu.RLock()
			defer h.mu.RUnlock()
		}
		return nil
	}))
}

func (h *hanging) hang() { h.mu.Lock() }
func (h *hanging) goOn() { h.mu.Unlock() }

// The disk hangs in the midst of a write: its client is told in time that the outcome
// is open, those behind it that nothing was stored; reads go on, and the server is not
// ready. When the disk goes on all is well by itself, and the open write is there.
func TestADiskThatHangs(t *testing.T) {
	var disk hanging
	st, err := local.Open(local.Options{Dir: "data", FS: reusingFS{disk.fs()}})
	if err != nil {
		t.Fatal(err)
	}
	const timeout = 100 * time.Millisecond
	srv := server.New(server.Options{Store: st, RequestTimeout: timeout})
	hs := httptest.NewServer(srv.Handler())
	defer func() {
		hs.Close()
		srv.Stop()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	a := newAPI(hs.URL)
	create := func(name string) (code int, said string) {
		body, err := json.Marshal(large(name, 100))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := a.client.Post(a.url+collection, "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	expect(t, a, 201, "POST", collection, large("here", 100))

	disk.hang()
	if code, said := create("open"); code != 504 || !strings.Contains(said, "whether it will be stored is open") {
		t.Errorf("the write under way: %d %s", code, said)
	}
	refused := 0
	until(t, "writes are refused at once", func() bool {
		expect(t, a, 200, "GET", collection+"/here", nil)
		expect(t, a, 404, "GET", collection+"/open", nil)
		code, said := create(fmt.Sprint("refused-", refused))
		refused++
		if code != 503 && code != 504 || !strings.Contains(said, "nothing was stored") {
			t.Errorf("a write behind it: %d %s", code, said)
		}
		return code == 503
	})
	expect(t, a, 500, "GET", "/readyz", nil)
	expect(t, a, 200, "GET", "/livez", nil)

	disk.goOn()
	until(t, "it is ready again", func() bool { code, _ := a.call(t.Context(), "GET", "/readyz", "", nil, nil); return code == 200 })
	expect(t, a, 200, "GET", collection+"/open", nil)
	for i := range refused {
		expect(t, a, 404, "GET", fmt.Sprintf("%s/refused-%d", collection, i), nil)
	}
	expect(t, a, 201, "POST", collection, large("after", 100))
}
