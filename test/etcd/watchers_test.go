package etcd_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"example.com/cmctl/test/etcd/internal/procs"
)

// seen is one event as a watcher sees it.
type seen struct {
	Type    string
	Key     string // namespace/name
	Version int64
}

// follower watches everything, through one server after the other: where a watch ends it
// goes on at the next server, from the version that it has seen last.
type follower struct {
	mu      sync.Mutex // guards what follows
	events  []seen
	at      int64 // everything up to here was seen
	moves   int
	expired int // times that it was told to begin anew
	err     error
}

// follow starts a follower at a version. first is the server that it begins with.
func follow(ctx context.Context, servers []*procs.Server, first int, at int64) *follower {
	f := &follower{at: at}
	go func() {
		for i := first; ctx.Err() == nil; i++ {
			f.once(ctx, servers[i%len(servers)].URL)
			f.mu.Lock()
			f.moves++
			stopped := f.err != nil
			f.mu.Unlock()
			if stopped {
				return
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	return f
}

// once is one watch. It is given up where nothing comes for some seconds: a server that
// stands still breaks no connection.
func (f *follower) once(ctx context.Context, url string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(3*time.Second, cancel)
	defer idle.Stop()
	path := fmt.Sprintf("%s/api/v1/configmaps?watch=1&allowWatchBookmarks=1&resourceVersion=%d", url, f.position())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		f.failed(err)
		return
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return
	}
	defer answer.Body.Close() // it is read to its end, or given up
	if answer.StatusCode != http.StatusOK {
		return
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		idle.Reset(3 * time.Second)
		if !f.take(lines.Bytes()) {
			return
		}
	}
}

func (f *follower) position() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

func (f *follower) state() (at int64, moves int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at, f.moves, f.err
}

func (f *follower) failed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

// take notes one event. It is false if the watch is over.
func (f *follower) take(line []byte) bool {
	var e struct {
		Type   string
		Object struct {
			Code     int
			Metadata struct{ Namespace, Name, ResourceVersion string }
		}
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return false // a line that was cut off
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Type == "ERROR" {
		if e.Object.Code == http.StatusGone {
			f.expired++
			f.err = fmt.Errorf("told to begin anew at %d", f.at)
		}
		return false
	}
	m := e.Object.Metadata
	version, err := strconv.ParseInt(m.ResourceVersion, 10, 64)
	if err != nil {
		f.err = fmt.Errorf("%q: %w", line, err)
		return false
	}
	if version < f.at || version == f.at && e.Type != "BOOKMARK" {
		f.err = fmt.Errorf("%s of %s/%s at %d came after %d", e.Type, m.Namespace, m.Name, version, f.at)
		return false
	}
	f.at = version
	if e.Type != "BOOKMARK" {
		f.events = append(f.events, seen{e.Type, m.Namespace + "/" + m.Name, version})
	}
	return true
}

// upTo are the events up to a version.
func (f *follower) upTo(version int64) []seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, _ := slices.BinarySearchFunc(f.events, version+1, func(e seen, v int64) int { return int(e.Version - v) })
	return slices.Clone(f.events[:n])
}

// agree demands that all followers have seen the same, each event once and in order, up to
// an event that they all come to.
func agree(t *testing.T, all []*follower, last int64) {
	t.Helper()
	for i, f := range all {
		procs.Eventually(t, fmt.Sprintf("watcher %d comes to %d", i, last), time.Minute, func() bool {
			at, _, err := f.state()
			return at >= last || err != nil
		})
		if _, _, err := f.state(); err != nil {
			t.Errorf("watcher %d: %v", i, err)
		}
	}
	first := all[0].upTo(last)
	moves := 0
	for i, f := range all {
		got := f.upTo(last)
		_, moved, _ := f.state()
		moves += moved
		if !slices.Equal(got, first) {
			n := 0
			for n < min(len(got), len(first)) && got[n] == first[n] {
				n++
			}
			t.Errorf("watcher %d saw %d events and watcher 0 saw %d; they differ from number %d on: %v and %v", i, len(got), len(first), n,
				got[n:min(n+2, len(got))], first[n:min(n+2, len(first))])
		}
	}
	t.Logf("%d watchers saw the same %d events, and went to another server %d times", len(all), len(first), moves)
}
