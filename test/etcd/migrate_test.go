package etcd_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/etcd"
	"example.com/cmctl/pkg/server/store/local"
	"example.com/cmctl/pkg/server/store/transfer"
)

// What was moved from a directory to a cluster and back is what it was, and no version is
// given twice on the way.
func TestThereAndBack(t *testing.T) {
	ctx := t.Context()
	first := onDisk(t, 1)
	for i := range 40 {
		key := store.Key(fmt.Sprintf("configmaps/team/%d", i))
		for n := range i%4 + 1 {
			write(t, first, store.Record{Key: key, Value: []byte(strings.Repeat("v", i*400+n)), UID: "u", Labels: map[string]string{"n": fmt.Sprint(n)},
				Meta: store.Meta{Verb: "update", User: "jane", WriteID: fmt.Sprint(n), Time: time.UnixMilli(time.Now().UnixMilli()).UTC()}})
		}
	}
	on := alone(embedded(t))
	on.InitialVersion = first.State().Current + local.LeastAdvance
	on.CompactCluster = false
	cluster := open(t, on)
	r, err := transfer.Copy(ctx, first, cluster, nil)
	if err != nil || r.Objects != 40 || r.Versions != 100 {
		t.Fatalf("to the cluster: %+v, %v", r, err)
	}
	if _, err := cluster.Watch(ctx, "", first.State().Current); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("a watch goes on from a version of the directory: %v", err)
	}
	// Another replica sees the same.
	replica := open(t, etcd.Options{Endpoints: on.Endpoints})
	if _, err := replica.Watch(ctx, "", first.State().Current); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("on another replica: %v", err)
	}
	second := onDisk(t, cluster.State().Current+local.LeastAdvance)
	if r, err = transfer.Copy(ctx, replica, second, nil); err != nil || r.Objects != 40 || r.Versions != 100 {
		t.Fatalf("back: %+v, %v", r, err)
	}
	for i := range 40 {
		key := store.Key(fmt.Sprintf("configmaps/team/%d", i))
		if got, want := told(t, second, key), told(t, first, key); got != want {
			t.Errorf("%s has become\n%.200s\nand was\n%.200s", key, got, want)
		}
	}
}

func onDisk(t *testing.T, first store.Revision) store.Store {
	t.Helper()
	st, err := local.Open(local.Options{Dir: t.TempDir(), InitialVersion: first})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func write(t *testing.T, st store.Store, records ...store.Record) store.Revision {
	t.Helper()
	rev, err := st.Commit(t.Context(), store.Txn{Writes: records})
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

// told is the history of a key with all that its versions hold, but for their revisions.
func told(t *testing.T, st store.Store, key store.Key) string {
	t.Helper()
	heads, err := st.History(t.Context(), key, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, head := range heads {
		rec, err := st.Version(t.Context(), key, head.Revision)
		if err != nil {
			t.Fatal(err)
		}
		rec.Revision = 0
		fmt.Fprintf(&all, "%+v %s\n", rec, rec.Value)
	}
	return all.String()
}
