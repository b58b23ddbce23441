// Package etcd_test tries the store on etcd, and servers on it, with real clusters.
package etcd_test

import (
	"fmt"
	"sync"
	"testing"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/etcd"
	"example.com/cmctl/pkg/server/store/storetest"
	"example.com/cmctl/test/etcd/internal/procs"
)

// maxOps is how many operations a transaction may have. The suite makes larger ones than the
// server does, for which etcd's default is enough.
const maxOps = 4096

// open opens a store.
func open(t testing.TB, o etcd.Options) store.Store {
	t.Helper()
	o.Prefix = "/cmserver"
	st, err := etcd.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// alone is a cluster that nobody else uses: revisions are as dense as in a file.
func alone(endpoint string) etcd.Options {
	return etcd.Options{Endpoints: []string{endpoint}, InitialVersion: 1000, CompactCluster: true}
}

func TestStoreOnEmbeddedEtcd(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store { return open(t, alone(embedded(t))) })
}

func TestStoreOfLargeValuesOnEmbeddedEtcd(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store {
		o := alone(embedded(t))
		o.InlineValueSize = 1
		return open(t, o)
	})
}

func TestStoreOnEtcd34(t *testing.T) {
	program, err := procs.Etcd34()
	if err != nil {
		t.Fatalf("Debian's etcd-server is missing: %v", err)
	}
	storetest.Run(t, func(t testing.TB) store.Store {
		return open(t, alone(procs.StartEtcd(t, program, 1, fmt.Sprint("--max-txn-ops=", maxOps)).Members[0].Endpoint))
	})
}

// A store that is opened again has all there was, whatever process had it.
func TestStoreOverRestarts(t *testing.T) {
	var mu sync.Mutex
	clusters := map[string]string{} // by what the suite takes for a directory
	storetest.RunDurable(t, func(t testing.TB, dir string) store.Store {
		mu.Lock()
		if clusters[dir] == "" {
			clusters[dir] = embedded(t)
		}
		o := alone(clusters[dir])
		mu.Unlock()
		o.InitialVersion = 1
		return open(t, o)
	})
}
