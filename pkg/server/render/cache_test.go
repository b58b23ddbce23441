package render

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

func key(n int) cacheKey { return cacheKey{version: strconv.Itoa(n)} }

// bytesOf encodes to that many bytes and counts the calls.
func bytesOf(size int, calls *int) func() ([]byte, error) {
	return func() ([]byte, error) {
		*calls++
		return make([]byte, size), nil
	}
}

func TestCacheMakesAnEncodingOnceHoweverManyWait(t *testing.T) {
	c := newCache(1 << 20)
	var calls atomic.Int32
	var started, done sync.WaitGroup
	release := make(chan struct{})
	for range 100 {
		started.Add(1)
		done.Go(func() {
			started.Done()
			got, err := c.get(key(1), func() ([]byte, error) {
				calls.Add(1)
				<-release
				return []byte("x"), nil
			})
			if err != nil || string(got) != "x" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	started.Wait()
	close(release) // nobody has an answer before this
	done.Wait()
	if calls.Load() != 1 || c.size != 1+entryOverhead {
		t.Errorf("made %d times, size %d", calls.Load(), c.size)
	}
}

func TestCacheKeepsWithinItsLimitAndDropsTheLeastUsed(t *testing.T) {
	const size = 1000
	c := newCache(3 * (size + entryOverhead))
	calls := 0
	get := func(n int) {
		t.Helper()
		if _, err := c.get(key(n), bytesOf(size, &calls)); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 3 {
		get(n)
	}
	get(0)
	get(3) // drops 1, which was not used since
	if calls != 4 || c.size > c.limit || len(c.entries) != 3 || c.order.Len() != 3 {
		t.Fatalf("made %d times, size %d of %d, %d entries", calls, c.size, c.limit, len(c.entries))
	}
	get(0)
	get(2)
	if calls != 4 {
		t.Errorf("what was used last is gone")
	}
	if get(1); calls != 5 {
		t.Errorf("what was used least is kept")
	}
}

func TestCacheKeepsNothingLargerThanItself(t *testing.T) {
	for _, limit := range []int{-1, 0, 100} {
		c, calls := newCache(limit), 0
		for range 2 {
			if got, err := c.get(key(1), bytesOf(200, &calls)); err != nil || len(got) != 200 {
				t.Fatalf("got %d bytes, %v", len(got), err)
			}
		}
		if calls != 2 || c.size != 0 || len(c.entries) != 0 || c.order.Len() != 0 {
			t.Errorf("limit %d: made %d times, size %d", limit, calls, c.size)
		}
	}
}

func TestCacheForgetsFailures(t *testing.T) {
	c, calls := newCache(1<<20), 0
	broken := errors.New("broken")
	if _, err := c.get(key(1), func() ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if got, err := c.get(key(1), bytesOf(1, &calls)); err != nil || len(got) != 1 || calls != 1 {
		t.Errorf("after it: got %q, %v", got, err)
	}
	if c.size != 1+entryOverhead {
		t.Errorf("size %d", c.size)
	}
}
