package crash

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// write is one that a writer tried. Its token is its write id and is in its data.
type write struct {
	key, token string
	base       string // the version that it was made from; empty: whatever is there
	verb       string // POST, PUT, PATCH or DELETE
	version    int64  // that it was acknowledged with; 0: the answer has none
}

// ledger is what the writers know.
type ledger struct {
	mu           sync.Mutex // guards what follows
	acknowledged []write
	open         map[string]write // by token: no answer came
	refused      map[string]bool  // by token: certainly not made
	seen         map[int64]string // by version: "key token", of all versions ever found
	highest      int64            // of the versions acknowledged or found
	cut          bool             // what is acknowledged from now on may be lost
	count        int              // of acknowledged writes, of all rounds
	counted      *sync.Cond       // count has changed, or the round is over
	over         bool
}

func newLedger() *ledger {
	l := &ledger{open: map[string]write{}, refused: map[string]bool{}, seen: map[int64]string{}}
	l.counted = sync.NewCond(&l.mu)
	return l
}

func (l *ledger) acknowledge(w write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		l.open[w.token] = w
		return
	}
	l.acknowledged = append(l.acknowledged, w)
	l.highest = max(l.highest, w.version)
	l.count++
	l.counted.Broadcast()
}

func (l *ledger) leaveOpen(w write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[w.token] = w
}

func (l *ledger) refuse(w write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused[w.token] = true
}

// wait returns when so many more writes were acknowledged, or the writers ended.
func (l *ledger) wait(more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for target := l.count + more; l.count < target && !l.over; {
		l.counted.Wait()
	}
}

// begin and end are those of a round.
func (l *ledger) begin() { l.set(func() { l.cut, l.over = false, false }) }
func (l *ledger) end()   { l.set(func() { l.over = true }) }

// cutHere makes what is acknowledged from now on open: the power is about to go.
func (l *ledger) cutHere() { l.set(func() { l.cut = true }) }

func (l *ledger) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	l.counted.Broadcast()
}

// version is one version of a key as the server tells it after a restart, with the
// token of the write that made it.
type version struct {
	number  int64
	token   string
	deleted bool
}

// found is what a restarted server has.
type found struct {
	current   int64                // version of the whole store
	histories map[string][]version // by key, oldest first
	live      map[string]version   // what a list shows
	trimmed   bool                 // old versions may have been given up
}

// check holds what was found against the ledger and returns what is wrong. Then it
// settles what was open: what is there now has to stay, and what is not must never
// turn up.
func (l *ledger) check(f found) (problems []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if f.current < l.highest {
		wrong("the store is at version %d, %d was handed out before", f.current, l.highest)
	}
	landed := map[string]int64{} // by token
	for key, history := range f.histories {
		for i, v := range history {
			what := key + " " + v.token
			if before, known := l.seen[v.number]; known && before != what {
				wrong("version %d was %q and is %q", v.number, before, what)
			}
			l.seen[v.number] = what
			l.highest = max(l.highest, v.number)
			if twice, ok := landed[v.token]; ok {
				wrong("%s was made twice, as version %d and %d", v.token, twice, v.number)
			}
			landed[v.token] = v.number
			if l.refused[v.token] {
				wrong("%s: %s is there as version %d, though it was refused", key, v.token, v.number)
			}
			if i > 0 && history[i-1].number >= v.number {
				wrong("%s: version %d comes after %d", key, v.number, history[i-1].number)
			}
		}
		newest, live := history[len(history)-1], f.live[key]
		if newest.deleted != (live == version{}) || !newest.deleted && live != newest {
			wrong("%s: the newest version is %+v, the object %+v", key, newest, live)
		}
	}
	for key, v := range f.live {
		if len(f.histories[key]) == 0 {
			wrong("%s: version %d has no history", key, v.number)
		}
	}
	for _, w := range l.acknowledged {
		if err := f.holds(w); err != nil {
			wrong("%v", err)
		}
	}
	l.settle(landed)
	return problems
}

// holds demands an acknowledged write: it is the version that was said, and made from
// the one that it named.
func (f found) holds(w write) error {
	history := f.histories[w.key]
	at := slices.IndexFunc(history, func(v version) bool { return v.token == w.token })
	if at < 0 {
		if f.trimmed && (len(history) == 0 || w.version < history[0].number) {
			return nil
		}
		return fmt.Errorf("%s: %s %s was acknowledged as version %d and is gone", w.key, w.verb, w.token, w.version)
	}
	v := history[at]
	switch {
	case w.version != 0 && v.number != w.version:
		return fmt.Errorf("%s: %s was acknowledged as version %d and is %d", w.key, w.token, w.version, v.number)
	case v.deleted != (w.verb == "DELETE"):
		return fmt.Errorf("%s: %s %s is there with deleted %t", w.key, w.verb, w.token, v.deleted)
	case at == 0:
		return nil
	case w.verb == "POST" && !history[at-1].deleted:
		return fmt.Errorf("%s: %s was created over version %d", w.key, w.token, history[at-1].number)
	case w.base != "" && strconv.FormatInt(history[at-1].number, 10) != w.base:
		return fmt.Errorf("%s: %s was made from version %s and follows %d: an update is lost", w.key, w.token, w.base, history[at-1].number)
	}
	return nil
}

func (l *ledger) settle(landed map[string]int64) {
	for token, w := range l.open {
		if at, ok := landed[token]; ok {
			w.version = at
			l.acknowledged = append(l.acknowledged, w)
		} else {
			l.refused[token] = true
		}
	}
	clear(l.open)
}

// historyWindow is how long a server keeps every version at least.
const historyWindow = 5 * time.Minute
