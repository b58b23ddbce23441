package retry_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/cmctl/pkg/retry"
)

var (
	firstSeed = flag.Uint64("seed", 1, "first seed of the random tests")
	seeds     = flag.Int("seeds", 300, "how many seeds they try")
)

// weather draws what happens to each request of a server. Its chances are drawn
// too, so that some runs see few faults and others little else.
type weather struct {
	mu   sync.Mutex // guards rand
	rand *rand.Rand
	bad  float64 // the chance that a request goes wrong
	// lateCreates lets a create land long after its answer was lost. Where
	// others delete the object meanwhile that makes it a second time, which no
	// client can prevent.
	lateCreates bool
}

func (w *weather) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.IntN(n)
}

func (w *weather) wait() { time.Sleep(time.Duration(w.draw(50)) * time.Millisecond) }

func (w *weather) strikes(verb string) fault {
	write := verb != "GET" && verb != "FIND"
	return func(ctx context.Context, r request) (doc, error) {
		w.wait()
		if w.draw(1000) >= int(w.bad*1000) {
			got, err := r.land()
			w.wait()
			return got, err
		}
		kinds := []fault{answers(tooMany(int32(w.draw(3)))), answers(unavailable(int32(w.draw(3)))), answers(internal()), lostBefore, unsent}
		if write {
			kinds = append(kinds, lostAfter, lostAfter, failsAfter(internal()), failsAfter(unavailable(0)))
		}
		if write && (verb != "POST" || w.lateCreates) {
			kinds = append(kinds, w.lostAndLate, w.lostAndLate)
		}
		return kinds[w.draw(len(kinds))](ctx, r)
	}
}

// lostAndLate lands some time after its answer was lost.
func (w *weather) lostAndLate(_ context.Context, r request) (doc, error) {
	time.AfterFunc(time.Duration(w.draw(3000))*time.Millisecond, func() {
		_, _ = r.land() // its answer reaches nobody
	})
	return doc{}, &retry.LostError{Err: errBroken}
}

// claim is what a call said about its write.
type claim struct {
	id  retry.WriteID
	err error
}

// storm lets several writers increment a counter at once in bad weather, waits
// until all that was on its way has landed, and returns what they claim.
func storm(t *testing.T, s *server, w *weather, increments verb) []claim {
	s.weather = w.strikes
	const writers, rounds = 5, 4
	claims := make([][]claim, writers)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for round := range rounds {
				id := retry.WriteID(fmt.Sprintf("%d.%d", i, round))
				_, err := increments(t.Context(), s, retry.Options{WriteID: id, MaxAttempts: 1 + w.draw(8)})
				claims[i] = append(claims[i], claim{id, err})
			}
		})
	}
	all.Wait()
	time.Sleep(time.Hour)
	var flat []claim
	for _, c := range claims {
		flat = append(flat, c...)
	}
	return flat
}

// judge compares each claim with the server's book: who says that it landed,
// landed once; who says that it did not, never did; and only who says that it
// does not know may be either. It returns how many said what.
func judge(t *testing.T, s *server, claims []claim) (succeeded, failed, unknown, unknownLanded int) {
	for _, c := range claims {
		landed := s.landed(c.id)
		switch {
		case landed > 1:
			t.Errorf("write %s was made %d times", c.id, landed)
		case c.err == nil, errors.As(c.err, new(*retry.DeletedError)):
			succeeded++
			if landed != 1 {
				t.Errorf("write %s is told to have landed, but has not", c.id)
			}
		case errors.As(c.err, new(*retry.OutcomeUnknownError)):
			unknown++
			unknownLanded += landed
		case errors.As(c.err, new(*retry.ExhaustedError)), has(c.err, "NotFound"), errors.As(c.err, new(*retry.ReplacedError)),
			kinds(c.err) == "unsent", kinds(c.err) == "lost", kinds(c.err) == "InternalError": // of the first read
			failed++
			if landed != 0 {
				t.Errorf("write %s is told to have failed, but has landed: %v", c.id, c.err)
			}
		default:
			t.Errorf("write %s ended in an error of no known type: %v", c.id, c.err)
		}
	}
	return succeeded, failed, unknown, unknownLanded
}

func everySeed(t *testing.T, run func(t *testing.T, w *weather)) {
	for i := range *seeds {
		seed := *firstSeed + uint64(i)
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			run(t, &weather{rand: rnd, bad: rnd.Float64() * 0.8})
		})
		if t.Failed() {
			t.Fatalf("the seed was %d (-seed=%d -seeds=1)", seed, seed)
		}
	}
}

func TestCountersLoseAndDoubleNothing(t *testing.T) {
	for _, history := range []bool{true, false} {
		t.Run(fmt.Sprintf("history %t", history), func(t *testing.T) {
			total, open := 0, 0
			everySeed(t, func(t *testing.T, w *weather) {
				s := newServer(nil, history)
				claims := storm(t, s, w, computes(increment("n")))
				succeeded, _, unknown, unknownLanded := judge(t, s, claims)
				count := number("0" + s.now().data["n"])
				if count != succeeded+unknownLanded {
					t.Errorf("the counter is %d after %d successes and %d unknown ones that landed", count, succeeded, unknownLanded)
				}
				if count < succeeded || count > succeeded+unknown {
					t.Errorf("the counter is %d after %d successes and %d unknown outcomes", count, succeeded, unknown)
				}
				total, open = total+len(claims), open+unknown
			})
			t.Logf("%d of %d outcomes unknown", open, total)
		})
	}
}

func TestUpsertedCountersSurviveDeletes(t *testing.T) {
	for _, history := range []bool{true, false} {
		t.Run(fmt.Sprintf("history %t", history), func(t *testing.T) {
			everySeed(t, func(t *testing.T, w *weather) {
				s := emptyServer(nil, history)
				stop := time.AfterFunc(time.Duration(w.draw(4000))*time.Millisecond, s.anotherDeletes)
				defer stop.Stop()
				judge(t, s, storm(t, s, w, func(ctx context.Context, s *server, o retry.Options) (retry.Result[doc], error) {
					o.Computed = true
					return upserts(increment("n"))(ctx, s, o)
				}))
			})
		})
	}
}

// An edit to a fixed value may be merged twice where there is no history, but
// a success means that the value was there and a failure that it never was.
func TestFixedEditsTellTheTruth(t *testing.T) {
	everySeed(t, func(t *testing.T, w *weather) {
		s := newServer(nil, false)
		claims := storm(t, s, w, func(ctx context.Context, s *server, o retry.Options) (retry.Result[doc], error) {
			return retry.Update[doc](ctx, s, set("k"+string(o.WriteID), "v"), o)
		})
		for _, c := range claims {
			_, there := s.now().data["k"+string(c.id)]
			switch {
			case errors.As(c.err, new(*retry.OutcomeUnknownError)):
			case there != (c.err == nil):
				t.Errorf("write %s: its value is there: %t, its error: %v", c.id, there, c.err)
			}
		}
	})
}

func TestCreatesAndDeletesInBadWeatherTellTheTruth(t *testing.T) {
	for _, history := range []bool{true, false} {
		t.Run(fmt.Sprintf("history %t", history), func(t *testing.T) {
			everySeed(t, func(t *testing.T, w *weather) {
				w.lateCreates = true
				s := emptyServer(nil, history)
				made := storm(t, s, w, func(ctx context.Context, s *server, o retry.Options) (retry.Result[doc], error) {
					own := doc{data: map[string]string{"by": string(o.WriteID)}}
					return retry.Create[doc](ctx, s, own, func(found doc) bool { return found.String() == own.String() }, o)
				})
				check(t, s, "create", made, "AlreadyExists")
			})
		})
	}
	everySeed(t, func(t *testing.T, w *weather) {
		s := newServer(nil, true)
		check(t, s, "delete", storm(t, s, w, deletesIt), "NotFound")
	})
}

// check is judge for writes of which one alone can land; the others are
// answered by refusal.
func check(t *testing.T, s *server, what string, claims []claim, refusal string) {
	for _, c := range claims {
		landed := s.landed(c.id)
		switch {
		case errors.As(c.err, new(*retry.OutcomeUnknownError)) && landed <= 1:
		case c.err == nil && landed == 1:
		case c.err != nil && landed == 0 && (kinds(c.err) == refusal || errors.As(c.err, new(*retry.ExhaustedError)) ||
			kinds(c.err) == "unsent" || kinds(c.err) == "lost" || kinds(c.err) == "InternalError"):
		default:
			t.Errorf("%s %s landed %d times and says: %v", what, c.id, landed, c.err)
		}
	}
}
