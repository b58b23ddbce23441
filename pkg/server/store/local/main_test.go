package local

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/storetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdEnv); dir != "" {
		holdStore(dir)
		return
	}
	// What Pebble has begun when a start fails on a broken disk it leaves behind; the
	// process ends with such a start.
	const pebble = "github.com/cockroachdb/pebble/v2"
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction(pebble+".(*ConcurrencyLimitScheduler).periodicGranter"),
		goleak.IgnoreAnyFunction(pebble+".(*cleanupManager).mainLoop"),
		goleak.IgnoreAnyFunction(pebble+"/internal/genericcache.(*shard[...]).releaseLoop"),
		goleak.IgnoreAnyFunction(pebble+"/record.(*LogWriter).flushLoop"),
	)
}

// open opens a store that is checked in full and closed when the test ends, so
// that every test is also a test of what it leaves behind.
func open(tb testing.TB, o Options) *Store {
	tb.Helper()
	s, err := Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	checkAtEnd(tb, s)
	return s
}

func checkAtEnd(tb testing.TB, s *Store) {
	tb.Cleanup(func() {
		if s.isClosing() {
			return
		}
		if err := s.Check(context.Background()); err != nil {
			tb.Errorf("check: %v", err)
		}
		if err := s.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
}

// mem is a store on a memory file system that outlives it.
func mem(fs vfs.FS) Options { return Options{Dir: "store", FS: fs} }

func TestStoreInMemory(t *testing.T) {
	storetest.Run(t, func(tb testing.TB) store.Store { return open(tb, Options{InMemory: true}) })
}

// A store that keeps no value in memory and little history takes the other paths.
func TestStoreOfLargeValues(t *testing.T) {
	storetest.Run(t, func(tb testing.TB) store.Store {
		return open(tb, Options{InMemory: true, InlineValueSize: 1, apartAbove: 2, HistoryLimit: 2, WatchBuffer: 2000})
	})
}

func TestStoreOnDisk(t *testing.T) {
	storetest.RunDurable(t, func(tb testing.TB, dir string) store.Store { return open(tb, Options{Dir: dir}) })
}

func put(tb testing.TB, s *Store, key store.Key, value string) store.Revision {
	tb.Helper()
	rev, err := s.Commit(context.Background(), store.Txn{Writes: []store.Record{{Key: key, Value: []byte(value)}}})
	if err != nil {
		tb.Fatal(err)
	}
	return rev
}

func remove(tb testing.TB, s *Store, key store.Key) store.Revision {
	tb.Helper()
	rev, err := s.Commit(context.Background(), store.Txn{Writes: []store.Record{{Key: key, Deleted: true}}})
	if err != nil {
		tb.Fatal(err)
	}
	return rev
}

func ok(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// holdEnv makes the test binary a process that opens the store in the directory,
// says so, and keeps it until it is killed.
const holdEnv = "CMCTL_TEST_HOLD_STORE"

func holdStore(dir string) {
	s, err := Open(Options{Dir: dir})
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	rev, err := s.Commit(context.Background(), store.Txn{Writes: []store.Record{{Key: "held", Value: []byte("1")}}})
	fmt.Println("holding", rev, err)
	select {}
}
