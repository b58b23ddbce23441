package client_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
)

// holding is a store that takes long over its first change to flags.
type holding struct {
	store.Store
	once sync.Once
	let  chan struct{} // closed when it may go on
}

func (h *holding) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	if txn.Writes[0].Verb == "update" && strings.HasSuffix(string(txn.Writes[0].Key), "/flags") {
		h.once.Do(func() { <-h.let })
	}
	return h.Store.Commit(ctx, txn)
}

// More writers than the server has room for: those that it turns away wait as long
// as it asks, and all of them get to write.
func TestOverloadIsRiddenThrough(t *testing.T) {
	const room = 2
	for name, o := range map[string]server.Options{
		"of the server":   {MaxMutatingInFlight: room},
		"of the one user": {MaxInFlightPerUser: room, Authenticator: jane{}},
	} {
		t.Run(name, func(t *testing.T) { ridesThrough(t, o) })
	}
}

// jane is who sends every request.
type jane struct{}

func (jane) Authenticate(*http.Request) (user.Info, error) {
	return &user.DefaultInfo{Name: "jane"}, nil
}

// ridesThrough demands it of a server that does not have room for all writers.
func ridesThrough(t *testing.T, limited server.Options) {
	const writers = 8
	st, err := local.Open(local.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	slow := &holding{Store: st, let: make(chan struct{})}
	limited.Store = slow
	m := mapsOf(t, server.New(limited).Handler())
	mustCreate(t, m, flags("count", "0"))

	turnedAway := make(chan struct{}, 100*writers)
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			o := patient()
			o.Computed = true
			o.Observe = func(e retry.Event) {
				if e.Step == retry.Waiting {
					turnedAway <- struct{}{}
				}
			}
			if _, err := retry.Update(t.Context(), m.Object("flags"), increment, o); err != nil {
				t.Error(err)
			}
		})
	}
	// One write is held. Others may be refused as conflicts one after the other, but
	// no more than the room there is can be under way when nothing moves any more.
	<-turnedAway
	close(slow.let)
	all.Wait()
	if got := value(mustGet(t, m, "flags"), "count"); got != strconv.Itoa(writers) {
		t.Errorf("the counter is %v, want %d", got, writers)
	}
}
