package inject

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Header names, in an answer, the faults that it had: those that made it, such as
// "conflict", and those that it came through, such as "latency=57ms".
const Header = "Cmserver-Injected"

// Faults are those of one server. They may be used by any number of goroutines.
// A nil *Faults injects nothing.
type Faults struct {
	spec Spec
	dice map[Kind]*die
}

// New makes the faults of a Spec; nil for one that is empty.
func New(spec Spec) *Faults {
	if spec.Empty() {
		return nil
	}
	f := &Faults{spec: spec, dice: map[Kind]*die{}}
	for k, r := range spec.rules {
		own := fnv.New64a()
		_, _ = own.Write([]byte(k)) // a hash takes everything
		f.dice[k] = &die{rule: r, random: rand.New(rand.NewPCG(spec.seed, own.Sum64()))}
	}
	return f
}

// String says what is injected.
func (f *Faults) String() string {
	if f == nil {
		return ""
	}
	return f.spec.String()
}

// Count is how often a fault struck.
type Count struct {
	Struck int // so many
	Of     int // of so many that it might have
}

func (c Count) String() string { return fmt.Sprintf("%d of %d", c.Struck, c.Of) }

// Counts are those of each fault that is injected.
func (f *Faults) Counts() map[Kind]Count {
	if f == nil {
		return nil
	}
	counts := map[Kind]Count{}
	for k, d := range f.dice {
		counts[k] = d.counted()
	}
	return counts
}

// die decides about one fault.
type die struct {
	rule
	mu     sync.Mutex
	random *rand.Rand // guarded by mu
	count  Count      // guarded by mu
}

// throw tells whether the fault strikes this time, and for how long. It takes as
// much chance when it spares as when it strikes, so that the n-th throw is the same
// whatever came before.
func (d *die) throw() (struck bool, length time.Duration) {
	if d == nil {
		return false, 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	share, place := d.random.Float64(), d.random.Float64()
	d.count.Of++
	struck = share < d.share
	if d.first > 0 {
		struck = d.count.Of <= d.first
	}
	if struck {
		d.count.Struck++
	}
	return struck, d.min + time.Duration(place*float64(d.max-d.min))
}

func (d *die) counted() Count {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}

// strikes decides about a fault that makes an answer, and marks that.
func (f *Faults) strikes(w http.ResponseWriter, k Kind) bool {
	if f == nil {
		return false
	}
	struck, _ := f.dice[k].throw()
	if struck {
		mark(w, string(k))
		if warning, err := utilnet.NewWarningHeader(299, "-", "injected fault: "+string(k)+" (cmserver --inject)"); err == nil {
			w.Header().Add("Warning", warning)
		}
	}
	return struck
}

// lasts decides about a fault that takes a time, and marks the answer; 0: none.
func (f *Faults) lasts(w http.ResponseWriter, k Kind) time.Duration {
	if f == nil {
		return 0
	}
	struck, length := f.dice[k].throw()
	if !struck {
		return 0
	}
	mark(w, string(k)+"="+length.Round(time.Microsecond).String())
	return length
}

func mark(w http.ResponseWriter, what string) { w.Header().Add(Header, what) }

// Conflict decides whether a write is refused that names the version which is
// stored.
func (f *Faults) Conflict(w http.ResponseWriter) bool { return f.strikes(w, Conflict) }

// Gone decides whether a watch that names a version, or a list that goes on from a
// page, is told that it has expired.
func (f *Faults) Gone(w http.ResponseWriter) bool { return f.strikes(w, Gone) }

// WatchTime is how long a watch lasts that may last for limit.
func (f *Faults) WatchTime(w http.ResponseWriter, limit time.Duration) time.Duration {
	if early := f.lasts(w, WatchClose); early > 0 {
		return min(early, limit)
	}
	return limit
}
