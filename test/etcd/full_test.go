package etcd_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"example.com/cmctl/pkg/server/store"
)

// etcd itself is not sure: where its quota ends between the check and the writing it writes,
// and answers that it has no space.
func TestWhatIsRefusedForLackOfSpaceIsNotThere(t *testing.T) {
	c := config(t)
	c.QuotaBackendBytes = 8 << 20
	st := open(t, alone(start(t, c)))
	const writers = 32
	value := []byte(strings.Repeat("v", 4000))
	var mu sync.Mutex
	refused := map[store.Key]bool{}
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			for n := 0; ; n++ {
				key := store.Key(fmt.Sprintf("k/%d/%d", w, n))
				_, err := st.Commit(t.Context(), store.Txn{Guards: []store.Guard{{Key: key}}, Writes: []store.Record{{Key: key, Value: value}}})
				if err == nil {
					continue
				}
				if !errors.Is(err, store.ErrClusterFull) {
					t.Errorf("%s: %v, want ErrClusterFull", key, err)
				}
				mu.Lock()
				refused[key] = true
				mu.Unlock()
				return
			}
		})
	}
	work.Wait()
	if len(refused) != writers {
		t.Fatalf("%d were refused, want %d", len(refused), writers)
	}
	for key := range refused {
		if _, err := st.Get(t.Context(), key, 0); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s was refused, and then: %v, want ErrNotFound", key, err)
		}
	}
	if err := st.Healthy(); !errors.Is(err, store.ErrFull) {
		t.Errorf("the store is %v, want ErrFull", err)
	}
}
