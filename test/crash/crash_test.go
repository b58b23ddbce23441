package crash

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// seed is CRASH_SEED, or a random one.
func seed(t *testing.T) uint64 {
	s, err := strconv.ParseUint(os.Getenv("CRASH_SEED"), 10, 64)
	if err != nil {
		s = rand.Uint64()
	}
	t.Logf("repeat with CRASH_SEED=%d", s)
	return s
}

// bound is when a half ends without CRASH_FOR, however slow the machine is.
const bound = 30 * time.Second

// more says whether another round is due: CRASH_FOR, or else the rounds, decide.
func more(t *testing.T, round, rounds int, took time.Duration) bool {
	text := os.Getenv("CRASH_FOR")
	if text == "" {
		return round < rounds && took < bound
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("CRASH_FOR: %v", err)
	}
	return took < d
}

// world is a server that can be stopped at once, and what it keeps its data on.
type world interface {
	// start returns when the server takes requests, or says why it won't.
	start(t *testing.T) (url string, err error)
	// helpers start what else writes, and return what waits for its end.
	helpers(ctx context.Context, t *testing.T, l *ledger, url string, round int) (wait func())
	// crash stops the server. What is acknowledged before l.cutHere or, without it,
	// before the end, has to survive.
	crash(t *testing.T, l *ledger, r *rand.Rand)
	// away ends what is left of the crashed server, after all writers have.
	away(t *testing.T)
}

// run crashes the world until more says no, and returns what was wrong.
func run(t *testing.T, w world, rounds int) (problems []string) {
	r := rand.New(rand.NewPCG(seed(t), 0))
	l, crashes := newLedger(), 0
	url, err := w.start(t) // builds the programs too, which is none of the crashes' time
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for round := 0; len(problems) == 0 && more(t, round, rounds, time.Since(began)); round++ {
		ctx, cancel := context.WithCancel(t.Context())
		l.begin()
		wait, waitHelpers := load(ctx, l, url, round, r), w.helpers(ctx, t, l, url, round)
		ended := make(chan struct{})
		go func() {
			wait()
			waitHelpers()
			l.end()
			close(ended)
		}()
		l.wait(1 + r.IntN(300))
		w.crash(t, l, r)
		cancel()
		<-ended
		w.away(t)
		crashes++
		open := len(l.open)
		if url, err = w.start(t); err != nil {
			return append(problems, err.Error())
		}
		f, err := look(t.Context(), l, url)
		if err != nil {
			return append(problems, err.Error())
		}
		f.trimmed = time.Since(began) > historyWindow
		if problems = l.check(f); testing.Verbose() && round%10 == 0 {
			t.Logf("round %d: %d acknowledged so far, %d open, version %d", round, l.count, open, f.current)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.crash(t, l, r)
	w.helpers(ctx, t, l, url, -1)()
	w.away(t)
	if crashes == 0 {
		problems = append(problems, "the time was over before the first crash")
	}
	t.Logf("%d crashes survived, %d writes acknowledged, %d refused or never made, %d versions found",
		crashes, l.count, len(l.refused), len(l.seen))
	return problems
}

func report(t *testing.T, problems []string) {
	for i, p := range problems {
		if i == 20 {
			t.Errorf("and %d more", len(problems)-i)
			return
		}
		t.Error(p)
	}
}
