package crash

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store/local"
)

// powerless is a server in this process on a disk that a power cut can hit.
type powerless struct {
	disk  *vfs.MemFS // what survived the last cut
	wrap  func(vfs.FS) vfs.FS
	loses bool // all that was not synced, each time

	store *local.Store
	api   *server.Server
	http  *httptest.Server
}

// reusingFS reuses files in two steps. MemFS does it in one, in which it takes the
// lock for reading that it has, and never gets it if a power cut waits in between.
type reusingFS struct{ vfs.FS }

func (f reusingFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.Rename(old, name); err != nil {
		return nil, err
	}
	return f.OpenReadWrite(name, c)
}

func (w *powerless) start(t *testing.T) (string, error) {
	t.Helper()
	st, err := local.Open(local.Options{Dir: "data", FS: reusingFS{w.wrap(w.disk)}})
	if err != nil {
		return "", err
	}
	w.store, w.api = st, server.New(server.Options{Store: st})
	if err := w.api.Start(t.Context()); err != nil {
		return "", errors.Join(err, st.Close())
	}
	w.http = httptest.NewServer(w.api.Handler())
	return w.http.URL, nil
}

// crash takes a copy of the disk as the cut leaves it. The server that goes on
// meanwhile is of no account any more.
func (w *powerless) crash(_ *testing.T, l *ledger, r *rand.Rand) {
	percent := r.IntN(101)
	if w.loses {
		percent = 0
	}
	l.cutHere()
	w.disk = w.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: r})
}

func (w *powerless) away(t *testing.T) {
	w.http.Close()
	w.api.Stop()
	if err := w.store.Close(); err != nil {
		t.Error(err)
	}
}

func (w *powerless) helpers(context.Context, *testing.T, *ledger, string, int) func() {
	return func() {}
}

// The power goes under load, again and again.
func TestPowerCut(t *testing.T) {
	honest := func(fs vfs.FS) vfs.FS { return fs }
	report(t, run(t, &powerless{disk: vfs.NewCrashableMem(), wrap: honest}, 40))
}

// The test above would see a loss: on a disk that says that it has synced the log, and
// has not, acknowledged writes are gone after a cut, or the start says that they are.
func TestPowerCutSeesALoss(t *testing.T) {
	problems := run(t, &powerless{disk: vfs.NewCrashableMem(), wrap: lying, loses: true}, 40)
	if len(problems) == 0 {
		t.Fatal("no log was ever synced, and nothing was lost")
	}
	t.Logf("%d problems, the first: %s", len(problems), problems[0])
}

func lying(fs vfs.FS) vfs.FS { return lyingFS{fs} }

// lyingFS does not sync logs.
type lyingFS struct{ vfs.FS }

func (f lyingFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	return lie(name, file), err
}

func (f lyingFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(old, name, c)
	return lie(name, file), err
}

func lie(name string, file vfs.File) vfs.File {
	if file == nil || !strings.HasSuffix(name, ".log") {
		return file
	}
	return lyingFile{file}
}

type lyingFile struct{ vfs.File }

func (lyingFile) Sync() error                { return nil }
func (lyingFile) SyncData() error            { return nil }
func (lyingFile) SyncTo(int64) (bool, error) { return false, nil }
