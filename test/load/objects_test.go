package load

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// A server full of objects takes a bounded amount of memory for each. How long it
// starts and writes, beside one with a few, is told and not judged: machines differ.
func TestManyObjects(t *testing.T) {
	few, many := 1000, sized(20_000, 1_000_000)
	small, large := serveFilled(t, few), serveFilled(t, many)
	for n, p := range map[int]*process{few: small, many: large} {
		t.Logf("%d objects of 1 KiB: ready after %v, which took %v of processor time; %d MiB resident",
			n, p.took.Round(time.Millisecond), p.worked(t), p.memory(t))
	}

	// Turns of both, so that what else the machine does meets both.
	rounds := sized(300, 3000)
	var a, b []time.Duration
	for range rounds {
		a = append(a, timedPut(t, small, rand.IntN(few)))
		b = append(b, timedPut(t, large, rand.IntN(many)))
	}
	ma, mb := median(a), median(b)
	t.Logf("PUT, median of %d: %v with %d objects, %v with %d: %.2f times as long; now %d MiB",
		rounds, ma, few, mb, many, float64(mb)/float64(ma), large.memory(t))
	if per := (large.memory(t) - small.memory(t)) << 20 / (many - few); per > 8<<10 {
		t.Errorf("an object of 1 KiB takes %d bytes of memory", per)
	}
}

// serveFilled runs a server on so many objects.
func serveFilled(t *testing.T, count int) *process {
	t.Helper()
	dir := t.TempDir()
	fill(t, dir, count)
	return run(t, dir)
}

// timedPut changes an object and returns how long the write took.
func timedPut(t *testing.T, p *process, n int) time.Duration {
	t.Helper()
	path := collection + "/" + objectName(n)
	cm, err := p.send(t.Context(), "GET", path, nil)
	if err != nil {
		t.Fatal(err)
	}
	cm.Data["changed"] = strconv.Itoa(int(time.Now().UnixNano()))
	began := time.Now()
	if _, err := p.send(t.Context(), "PUT", path, cm); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2].Round(time.Microsecond)
}
