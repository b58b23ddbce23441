package client_test

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/server/inject"
	"example.com/cmctl/pkg/server/servertest"
)

// counterOn makes a counter on a server that misbehaves, and gives the way to it.
func counterOn(t *testing.T, faults string) (*servertest.Server, *client.ConfigMaps) {
	t.Helper()
	s := servertest.Start(t, servertest.Inject(faults))
	maps := connect(t, client.TargetOptions{Server: s.URL}, client.Options{}).ConfigMaps(namespace)
	if _, err := retry.CreateOrGet(t.Context(), maps.Object("flags"), flags("count", "0"), patient()); err != nil {
		t.Fatal(err)
	}
	return s, maps
}

// Each fault is what the loop takes it for, as often as the server says, and in each
// run of one seed alike.
func TestTheLoopMeetsWhatIsInjected(t *testing.T) {
	const rounds = 40
	for _, c := range []struct {
		kind  inject.Kind
		steps []retry.Step
	}{
		{inject.Conflict, []retry.Step{retry.Refused}},
		{inject.Lost, []retry.Step{retry.Lost}},
		{inject.TooMany, []retry.Step{retry.Waiting}},
		// Behind a 503 to a write may stand a server that carried it out.
		{inject.Unavailable, []retry.Step{retry.Waiting, retry.Lost}},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			spec := string(c.kind) + "=20%,retry-after=0s,seed=11"
			run := func() inject.Count {
				s, maps := counterOn(t, spec)
				before, met := s.Injected()[c.kind].Struck, 0
				o := patient()
				o.Computed = true
				o.Observe = func(e retry.Event) {
					if slices.Contains(c.steps, e.Step) {
						met++
					}
				}
				for range rounds {
					if _, err := retry.Update(t.Context(), maps.Object("flags"), increment, o); err != nil {
						t.Fatal(err)
					}
				}
				count := s.Injected()[c.kind]
				if met == 0 || met != count.Struck-before {
					t.Errorf("the loop met it %d times, the server says %d (%v)", met, count.Struck-before, count)
				}
				return count
			}
			if first, second := run(), run(); first != second {
				t.Errorf("one run had %v, the next one %v", first, second)
			}
		})
	}
}

// Many count at once while everything goes wrong that can be injected: the counter
// is exact. A read that fails ends the loop, before anything was written; whoever
// tries again until it has succeeded has counted once. Now and then an outcome stays
// unknown, and is told so: an injected conflict moves no version, as a real one would,
// and where it meets a body that was lost before, nothing proves what became of that.
func TestCountersAreExactUnderAllFaults(t *testing.T) {
	const writers, rounds = 6, 20
	s, maps := counterOn(t, "conflict=10%,latency=100us-1ms@30%,reset=4%,lost=10%,429=5%,500=4%,503=5%,504=4%,retry-after=0s,seed=3")
	o := patient()
	o.Computed = true
	var all sync.WaitGroup
	var done, unknown atomic.Int64
	for range writers {
		all.Go(func() {
			for range rounds {
				_, err := retry.Update(t.Context(), maps.Object("flags"), increment, o)
				for err != nil && !errors.As(err, new(*retry.OutcomeUnknownError)) && t.Context().Err() == nil {
					_, err = retry.Update(t.Context(), maps.Object("flags"), increment, o)
				}
				if err != nil {
					unknown.Add(1)
					continue
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	doc, err := maps.Get(t.Context(), "flags")
	for err != nil && t.Context().Err() == nil {
		doc, err = maps.Get(t.Context(), "flags")
	}
	text, _ := value(doc, "count").(string)
	got, err := strconv.ParseInt(text, 10, 64)
	if err != nil || got < done.Load() || got > done.Load()+unknown.Load() || unknown.Load() > writers*rounds/10 {
		t.Errorf("the counter is %q; %d are done and %d unknown", text, done.Load(), unknown.Load())
	}
	for kind, count := range s.Injected() {
		if count.Struck == 0 {
			t.Errorf("%s never struck: %v", kind, count)
		}
	}
	t.Log(s.Injected())
}

// A watch on a server that ends it all the time, and says half of the time that it
// has expired, still tells every state that lasts.
func TestAWatchUnderInjectedEnds(t *testing.T) {
	s, maps := counterOn(t, "watch-close=1ms-20ms,gone=50%,seed=1")
	written, relisted := 0, false
	for e, err := range maps.Watch(t.Context(), client.WatchOptions{Backoff: retry.Backoff{Base: time.Millisecond, Max: time.Millisecond}}) {
		if err != nil {
			t.Fatal(err)
		}
		relisted = relisted || e.Relisted
		if e.Type != client.Synced && value(e.Object, "count") != strconv.Itoa(written) {
			t.Fatalf("after %d writes: %s %v", written, e.Type, e.Object.Fields())
		}
		if e.Type == client.Added {
			continue // its end comes with Synced
		}
		if written == 30 {
			break
		}
		if _, err := retry.Update(t.Context(), maps.Object("flags"), increment, patient()); err != nil {
			t.Fatal(err)
		}
		written++
	}
	if got := s.Injected(); !relisted || got[inject.Gone].Struck == 0 || got[inject.WatchClose].Struck == 0 {
		t.Errorf("the test saw none of it: %v, listed anew: %t", got, relisted)
	}
}
