package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	kills   = 20
	writers = 32
)

// The server is killed twenty times under thirty-two writers. What it
// acknowledged is there after each restart, no version is ever seen with two
// contents, and versions never go back.
func TestNothingAcknowledgedIsLostByKill(t *testing.T) {
	dir := t.TempDir()
	l := &ledger{versions: map[string]string{}, objects: map[string]*entry{}}
	acknowledged := 0
	for round := range kills {
		s := startServer(t, dir)
		l.verify(t, s.url)
		n := l.writeUntilKilled(t, s)
		if n == 0 {
			t.Errorf("round %d: no write was acknowledged before the kill", round)
		}
		acknowledged += n
		if t.Failed() {
			break
		}
	}
	s := startServer(t, dir)
	l.verify(t, s.url)
	if code := s.stop(); code != 0 {
		t.Errorf("cmserver ended with %d on SIGTERM:\n%s", code, s.log)
	}
	t.Logf("%d kills, %d writes acknowledged, %d versions seen", kills, acknowledged, len(l.versions))
}

// ledger is what the clients know: all that was acknowledged, and what may have
// landed without an answer.
type ledger struct {
	mu       sync.Mutex
	versions map[string]string // guarded by mu; version -> "object content", of all ever seen
	highest  int64             // guarded by mu; of the versions seen
	objects  map[string]*entry // one writer each, so an entry needs no lock
	problems []string          // guarded by mu
	round    int
}

// entry is one object as its only writer knows it.
type entry struct {
	doc     types.Document // last acknowledged state; nil: deleted or never made
	content string         // of doc
	pending string         // a write without an answer: its content, or gone
}

const gone = "(deleted)"

// see notes a version with the content that it was seen with.
func (l *ledger) see(name, version, content string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what := name + " " + content
	if before, ok := l.versions[version]; ok && before != what {
		l.problems = append(l.problems, fmt.Sprintf("version %s was %q and is %q", version, before, what))
	}
	l.versions[version] = what
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		l.problems = append(l.problems, fmt.Sprintf("version %q is no number", version))
	}
	l.highest = max(l.highest, n)
}

// writeUntilKilled lets the writers run, kills the server in the middle of it
// and returns how many writes were acknowledged.
func (l *ledger) writeUntilKilled(t *testing.T, s *server) int {
	for i := range writers {
		if name := fmt.Sprintf("w%d", i); l.objects[name] == nil {
			l.objects[name] = &entry{}
		}
	}
	l.round++
	var all sync.WaitGroup
	acknowledged := make(chan struct{}) // one send for each
	for i := range writers {
		configMaps := connect(t, s.url).ConfigMaps("kill")
		all.Go(func() { l.writer(t.Context(), configMaps, fmt.Sprintf("w%d", i), acknowledged) })
	}
	go func() { all.Wait(); close(acknowledged) }()
	count, limit := 0, 1+rand.IntN(600)
	for range acknowledged {
		if count++; count == limit {
			// Without waiting for the writers: their writes are in flight.
			go s.kill()
		}
	}
	<-s.done
	return count
}

// writer writes one object until the server is gone.
func (l *ledger) writer(ctx context.Context, configMaps *client.ConfigMaps, name string, acknowledged chan<- struct{}) {
	e := l.objects[name]
	for n := 0; ; n++ {
		content := fmt.Sprintf("round %d write %d", l.round, n)
		var got types.Document
		var err error
		switch {
		case e.doc == nil:
			doc := types.NewDocument("kill", name)
			doc.Set(types.Field{Section: "data", Key: "content"}, content)
			got, err = configMaps.Create(ctx, doc, "")
		case n%17 == 16:
			content = gone
			err = configMaps.Delete(ctx, name, retry.Version{UID: e.doc.UID(), ResourceVersion: e.doc.ResourceVersion()}, "")
		default:
			doc := e.doc.Clone()
			doc.Set(types.Field{Section: "data", Key: "content"}, content)
			got, err = configMaps.Put(ctx, doc, "")
		}
		if err != nil {
			var status apierrors.APIStatus
			if errors.As(err, &status) && status.Status().Code < 500 {
				l.mu.Lock()
				l.problems = append(l.problems, fmt.Sprintf("%s: the only writer was refused: %v", name, err))
				l.mu.Unlock()
			}
			if !errors.As(err, new(*retry.UnsentError)) {
				e.pending = content
			}
			return
		}
		acknowledged <- struct{}{}
		e.doc, e.content, e.pending = got, content, ""
		if got != nil {
			l.see(name, got.ResourceVersion(), content)
		}
	}
}

// verify compares what the restarted server has with the ledger.
func (l *ledger) verify(t *testing.T, url string) {
	t.Helper()
	list, err := connect(t, url).ConfigMaps("kill").List(t.Context(), client.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l.verifyCounter(t, list.ResourceVersion)
	found := map[string]types.Document{}
	for _, d := range list.Items {
		found[d.Name()] = d
	}
	for name, e := range l.objects {
		doc, content := found[name], gone
		if doc != nil {
			content, _ = doc.Fields()[types.Field{Section: "data", Key: "content"}].(string)
			l.see(name, doc.ResourceVersion(), content)
		}
		acknowledged := e.content
		if e.doc == nil {
			acknowledged = gone
		}
		switch content {
		case acknowledged:
			if doc != nil && doc.ResourceVersion() != e.doc.ResourceVersion() {
				t.Errorf("%s: acknowledged as version %s, is at %s", name, e.doc.ResourceVersion(), doc.ResourceVersion())
			}
		case e.pending:
		default:
			t.Errorf("%s: %q was acknowledged (pending: %q), the restarted server has %q", name, acknowledged, e.pending, content)
		}
		e.doc, e.content, e.pending = doc, content, ""
	}
	for name := range maps.Keys(found) {
		if l.objects[name] == nil {
			t.Errorf("%s: nobody wrote it", name)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.problems {
		t.Error(p)
	}
	l.problems = nil
}

func (l *ledger) verifyCounter(t *testing.T, version string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil || n < l.highest {
		t.Errorf("the store is at version %s after the restart; %d was handed out before", version, l.highest)
	}
	l.highest = max(l.highest, n)
}
