package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"example.com/cmctl/pkg/types"
	"example.com/cmctl/test/linear"
)

// Histories of get, create, put and delete from concurrent clients over HTTP
// are linearizable, with the server killed and restarted in between.
func TestHistoriesAreLinearizable(t *testing.T) {
	const clients, restarts, keys = 10, 4, 3
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dir := t.TempDir()
	r := linear.New()
	for round := range restarts + 1 {
		s := startServer(t, dir)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for c := range clients {
			rng := rand.New(rand.NewPCG(seed, uint64(round*clients+c)))
			configMaps := connect(t, s.url).ConfigMaps(linear.Namespace)
			all.Go(func() {
				known := map[string]types.Document{} // what this client read last
				for n := 0; n < 120 && ctx.Err() == nil; n++ {
					r.Operate(ctx, configMaps, c, rng, fmt.Sprintf("key-%d", rng.IntN(keys)), known)
				}
			})
		}
		if round < restarts {
			time.Sleep(time.Duration(100+rand.IntN(150)) * time.Millisecond)
			s.kill()
			cancel()
		}
		all.Wait()
		cancel()
		if round == restarts {
			s.stop()
		}
	}
	r.Check(t)
}
