package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/cmctl/pkg/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	watchKills   = 4
	watchAuthors = 8
	watchWrites  = 200 // of an author in a round, if it is not killed before
	followers    = 24
)

// Authors write while followers watch, drop their connections and resume from the
// last version they saw, and the server is killed and restarted. In the end the
// history must be what the authors were told, and each follower must have seen
// exactly its part of the history: no gap, no event twice, no other order.
func TestWatchersReplayTheHistory(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	s := startServer(t, dir)
	g := &gate{url: s.url}
	g.open()
	began := listVersion(ctx, t, s.url)

	fleet := make([]*follower, followers)
	var final atomic.Int64 // the last version; 0 while there are authors
	var watching sync.WaitGroup
	for i := range fleet {
		fleet[i] = newFollower(i, began, rand.New(rand.NewPCG(seed, uint64(1000+i))))
		watching.Go(func() { fleet[i].run(ctx, g, &final) })
	}
	authors := make([]*author, watchAuthors)
	for i := range authors {
		authors[i] = newAuthor(i, rand.New(rand.NewPCG(seed, uint64(i))))
	}
	for round := range watchKills + 1 {
		killAfter := 0
		if round < watchKills {
			killAfter = 1 + rand.IntN(watchAuthors*watchWrites*2/3)
		}
		if write(ctx, authors, g, killAfter, s) {
			s = startServer(t, dir, "--listen", strings.TrimPrefix(g.url, "http://"))
			g.open()
		}
	}
	for _, a := range authors {
		a.settle(ctx, g.url)
	}
	last := listVersion(ctx, t, g.url)
	final.Store(last)
	watching.Wait()

	history := readHistory(ctx, t, g.url, began, last)
	for _, a := range authors {
		a.check(t, history)
	}
	seen, resumed := 0, 0
	for _, f := range fleet {
		f.check(t, history)
		resumed += f.connections
		for _, l := range f.lives {
			seen += len(l.events) + len(l.initial)
		}
	}
	t.Logf("%d changes; %d followers saw %d events over %d connections", len(history), followers, seen, resumed)
	if code := s.stop(); code != 0 {
		t.Errorf("cmserver ended with %d on SIGTERM:\n%s", code, s.log)
	}
}

// gate tells who needs the server when it is up.
type gate struct {
	url string
	mu  sync.Mutex
	up  chan struct{} // guarded by mu; closed while the server is up
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.up == nil {
		g.up = make(chan struct{})
	}
	close(g.up)
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.up = make(chan struct{})
}

// wait is false if ctx ended before the server was up.
func (g *gate) wait(ctx context.Context) bool {
	g.mu.Lock()
	up := g.up
	g.mu.Unlock()
	select {
	case <-up:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// change is what happened to an object, as an event tells it.
type change struct {
	kind    string // ADDED, MODIFIED, DELETED
	object  string // namespace/name
	version int64
	content string
	side    string // label
}

func changeOf(kind string, cm *types.ConfigMap) (change, error) {
	version, err := strconv.ParseInt(cm.ResourceVersion, 10, 64)
	return change{kind, cm.Namespace + "/" + cm.Name, version, cm.Data["content"], cm.Labels["side"]}, err
}

// author writes objects that are its own, one after the other.
type author struct {
	name    string
	rng     *rand.Rand
	serial  int
	objects []string
	current map[string]*types.ConfigMap // nil: there is none
	pending *change                     // a write without an answer
	told    map[string][]change         // by object; the version of a deletion is not told
	problem error
}

func newAuthor(i int, rng *rand.Rand) *author {
	a := &author{name: fmt.Sprintf("author%d", i), rng: rng, current: map[string]*types.ConfigMap{}, told: map[string][]change{}}
	for n := range 5 {
		a.objects = append(a.objects, fmt.Sprintf("%s/%s-%d", []string{"even", "odd"}[n%2], a.name, n))
	}
	return a
}

// write lets all authors write a round. With killAfter it kills the server after
// so many answers and returns true, and then the gate is shut.
func write(ctx context.Context, authors []*author, g *gate, killAfter int, s *server) (killed bool) {
	answers := make(chan struct{})
	var all sync.WaitGroup
	for _, a := range authors {
		all.Go(func() {
			if a.settle(ctx, g.url) {
				for n := 0; n < watchWrites && a.writeOne(ctx, g.url); n++ {
					answers <- struct{}{}
				}
			}
		})
	}
	go func() { all.Wait(); close(answers) }()
	dead := make(chan struct{})
	count := 0
	for range answers {
		if count++; count == killAfter {
			killed = true
			g.shut()
			go func() { s.kill(); close(dead) }() // while others write
		}
	}
	if killAfter > 0 && !killed {
		killed = true
		g.shut()
		s.kill()
	} else if killed {
		<-dead
	}
	return killed
}

// writeOne is false if there was no answer.
func (a *author) writeOne(ctx context.Context, url string) bool {
	object := a.objects[a.rng.IntN(len(a.objects))]
	namespace, name, _ := strings.Cut(object, "/")
	path := url + "/api/v1/namespaces/" + namespace + "/configmaps"
	a.serial++
	next := &types.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"side": []string{"in", "out"}[a.rng.IntN(2)]}},
		Data: map[string]string{"content": fmt.Sprintf("%s write %d", a.name, a.serial)}}
	want := change{object: object, content: next.Data["content"], side: next.Labels["side"]}
	var err error
	var got types.ConfigMap
	switch current := a.current[object]; {
	case current == nil:
		want.kind = "ADDED"
		err = call(ctx, "POST", path, next, 201, &got)
	case a.rng.IntN(6) == 0:
		want = change{kind: "DELETED", object: object, content: current.Data["content"], side: current.Labels["side"]}
		err = call(ctx, "DELETE", path+"/"+name, nil, 200, nil)
	default:
		want.kind = "MODIFIED"
		next.ResourceVersion = current.ResourceVersion
		err = call(ctx, "PUT", path+"/"+name, next, 200, &got)
	}
	if err != nil {
		a.pending = &want
		if errors.As(err, new(*refused)) {
			a.problem = err
		}
		return false
	}
	a.landed(want, &got)
	return true
}

// landed notes a write that was made; now is the object after it.
func (a *author) landed(c change, now *types.ConfigMap) {
	if c.kind == "DELETED" {
		a.current[c.object] = nil
	} else {
		a.current[c.object] = now
		c.version, _ = strconv.ParseInt(now.ResourceVersion, 10, 64)
	}
	a.told[c.object] = append(a.told[c.object], c)
}

// settle finds out whether the write without an answer was made. It is false if
// the server can't be asked.
func (a *author) settle(ctx context.Context, url string) bool {
	if a.pending == nil {
		return true
	}
	namespace, name, _ := strings.Cut(a.pending.object, "/")
	var now types.ConfigMap
	err := call(ctx, "GET", url+"/api/v1/namespaces/"+namespace+"/configmaps/"+name, nil, 200, &now)
	var no *refused
	absent := errors.As(err, &no) && no.code == http.StatusNotFound
	switch {
	case err != nil && !absent:
		return false
	case a.pending.kind == "DELETED" && absent, a.pending.kind != "DELETED" && now.Data["content"] == a.pending.content:
		a.landed(*a.pending, &now)
	}
	a.pending = nil
	return true
}

// check compares what the author was told with the history of its objects.
func (a *author) check(t *testing.T, history []change) {
	t.Helper()
	if a.problem != nil || a.pending != nil {
		t.Errorf("%s: the only writer was refused: %v, pending %v", a.name, a.problem, a.pending)
	}
	for _, object := range a.objects {
		var got []change
		for _, c := range history {
			if c.object == object {
				if c.kind == "DELETED" {
					c.version = 0
				}
				got = append(got, c)
			}
		}
		sameChanges(t, "history of "+object, got, a.told[object])
	}
}

// refused is an answer that is no success.
type refused struct {
	code int
	body string
}

func (e *refused) Error() string { return fmt.Sprintf("%d %s", e.code, e.body) }

// call sends one request and reads its answer into out, if it has the code.
func call(ctx context.Context, method, url string, in any, code int, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != code {
		return &refused{resp.StatusCode, string(text)}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

func listVersion(ctx context.Context, t *testing.T, url string) int64 {
	t.Helper()
	var list types.ConfigMapList
	if err := call(ctx, "GET", url+"/api/v1/configmaps?limit=1", nil, 200, &list); err != nil {
		t.Fatal(err)
	}
	version, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// readHistory is all changes, by one watch that is never interrupted.
func readHistory(ctx context.Context, t *testing.T, url string, after, last int64) []change {
	t.Helper()
	var history []change
	position := after
	q := query{"resourceVersion": strconv.FormatInt(after, 10)}
	err := q.watch(ctx, url+"/api/v1/configmaps", func(kind string, cm *types.ConfigMap) (bool, error) {
		c, err := changeOf(kind, cm)
		if err != nil || c.version <= position {
			return false, fmt.Errorf("%+v after version %d: %w", c, position, err)
		}
		if position = c.version; kind != "BOOKMARK" {
			history = append(history, c)
		}
		return position < last, nil
	})
	if err != nil || position < last {
		t.Fatalf("the history ends at version %d of %d: %v", position, last, err)
	}
	return history
}

// query are the parameters of a watch besides those that every one here has.
type query map[string]string

// watch hands each event to see, until that wants no more or the stream ends. An
// error is one that no watch may have, or see's; broken connections are none.
func (q query) watch(ctx context.Context, path string, see func(kind string, cm *types.ConfigMap) (more bool, err error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// At the end of its time a watch has a bookmark two seconds before.
	values := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"1"}, "timeoutSeconds": {"3"}}
	for name, value := range q {
		values.Set(name, value)
	}
	req, err := http.NewRequestWithContext(ctx, "GET", path+"?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		return fmt.Errorf("watch: %s", resp.Status)
	}
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // a line that was cut off is no event
		}
		var e struct {
			Type   string
			Object types.ConfigMap
		}
		if err := json.Unmarshal(line, &e); err != nil || e.Type == "ERROR" {
			return fmt.Errorf("event %s: %w", line, err)
		}
		if more, err := see(e.Type, &e.Object); err != nil || !more {
			return err
		}
	}
}

// follower watches a part of the objects.
type follower struct {
	number      int
	path        string
	selectors   query
	selected    func(change) bool
	afresh      bool // it begins anew at times, with initial events
	patient     bool // it drops its connections at bookmarks only, and goes on from there
	rng         *rand.Rand
	lives       []*life
	connections int
	problem     error
}

// life is what a follower saw without beginning anew.
type life struct {
	began    int64    // the version after which the events begin
	initial  []change // what was there then
	whole    bool     // the initial events came to their end, or there are none
	position int64    // everything up to here was seen
	events   []change
}

func newFollower(i int, began int64, rng *rand.Rand) *follower {
	f := &follower{number: i, rng: rng, afresh: i%3 == 2, patient: i%4 == 1, lives: []*life{{began: began, position: began, whole: true}}}
	in := func(c change) bool { return c.side == "in" }
	even := func(c change) bool { return strings.HasPrefix(c.object, "even/") }
	switch i % 6 {
	case 0, 1:
		f.path, f.selected = "/api/v1/configmaps", func(change) bool { return true }
	case 2:
		f.path, f.selected = "/api/v1/configmaps", in
		f.selectors = query{"labelSelector": "side=in"}
	case 3:
		f.path, f.selected = "/api/v1/namespaces/even/configmaps", func(c change) bool { return even(c) && !in(c) }
		f.selectors = query{"labelSelector": "side!=in"}
	case 4:
		f.path, f.selected = "/api/v1/namespaces/even/configmaps", func(c change) bool { return c.object == "even/author0-0" }
		f.selectors = query{"fieldSelector": "metadata.name=author0-0"}
	case 5:
		f.path, f.selected = "/api/v1/watch/namespaces/odd/configmaps", func(c change) bool { return !even(c) }
	}
	return f
}

func (f *follower) run(ctx context.Context, g *gate, final *atomic.Int64) {
	done := func() bool {
		last := final.Load()
		l := f.lives[len(f.lives)-1]
		return last > 0 && l.whole && l.position >= last
	}
	for f.problem == nil && !done() && g.wait(ctx) {
		f.connect(ctx, g.url, done)
	}
	if !done() && f.problem == nil {
		f.problem = errors.New("it did not come to the end in time")
	}
}

// connect watches until the stream breaks or the follower has had enough.
func (f *follower) connect(ctx context.Context, url string, done func() bool) {
	f.connections++
	l := f.lives[len(f.lives)-1]
	if f.afresh && f.rng.IntN(4) == 0 || !l.whole {
		l = &life{}
		f.lives = append(f.lives, l)
	}
	q := query{"resourceVersion": strconv.FormatInt(l.position, 10)}
	if !l.whole {
		q = query{"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "watch": "1"}
	}
	for name, value := range f.selectors {
		q[name] = value
	}
	left := 1 + f.rng.IntN(100)
	f.problem = q.watch(ctx, url+f.path, func(kind string, cm *types.ConfigMap) (bool, error) {
		if err := l.see(kind, cm); err != nil {
			return false, err
		}
		if left--; f.patient {
			return kind != "BOOKMARK", nil
		}
		return left > 0 && !done(), nil
	})
}

func (l *life) see(kind string, cm *types.ConfigMap) error {
	c, err := changeOf(kind, cm)
	switch {
	case err != nil:
		return err
	case kind == "BOOKMARK" && cm.Annotations[metav1.InitialEventsAnnotationKey] == "true":
		l.whole, l.began, l.position = true, c.version, c.version
	case !l.whole:
		l.initial = append(l.initial, c)
	case c.version < l.position, c.version == l.position && kind != "BOOKMARK":
		return fmt.Errorf("%+v after version %d", c, l.position)
	case kind == "BOOKMARK":
		l.position = c.version
	default:
		l.position = c.version
		l.events = append(l.events, c)
	}
	return nil
}

// check compares what the follower saw with its part of the history.
func (f *follower) check(t *testing.T, history []change) {
	t.Helper()
	if f.problem != nil {
		t.Errorf("follower %d: %v", f.number, f.problem)
	}
	for i, l := range f.lives {
		if !l.whole {
			continue // the connection broke before it had anything to go on from
		}
		initial, events := part(history, f.selected, l.began, l.position)
		name := fmt.Sprintf("follower %d of %s %v, life %d", f.number, f.path, f.selectors, i)
		if i > 0 {
			sameChanges(t, name+", initial events", l.initial, initial)
		}
		sameChanges(t, name, l.events, events)
	}
}

// part is what a watch shows of a history: the selected objects at the version
// began, by namespace and name, and the changes after it up to a version.
func part(history []change, selected func(change) bool, began, upTo int64) (initial, events []change) {
	now := map[string]change{}
	show := func(c change) (change, bool) {
		before, existed := now[c.object]
		was := existed && selected(before)
		is := c.kind != "DELETED" && selected(c)
		if now[c.object] = c; c.kind == "DELETED" {
			delete(now, c.object)
		}
		switch {
		case is && was:
			c.kind = "MODIFIED"
		case is:
			c.kind = "ADDED"
		case was:
			c = change{"DELETED", c.object, c.version, before.content, before.side}
		}
		return c, is || was
	}
	for i, c := range history {
		if c.version > began && (i == 0 || history[i-1].version <= began) {
			initial = selectedOf(now, selected)
		}
		if c, seen := show(c); seen && c.version > began && c.version <= upTo {
			events = append(events, c)
		}
	}
	if len(history) == 0 || history[len(history)-1].version <= began {
		initial = selectedOf(now, selected)
	}
	return initial, events
}

func selectedOf(objects map[string]change, selected func(change) bool) []change {
	var all []change
	for _, c := range objects {
		if selected(c) {
			c.kind = "ADDED"
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b change) int { return cmp.Compare(a.object, b.object) })
	return all
}

// sameChanges reports the first difference.
func sameChanges(t *testing.T, what string, got, want []change) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("%s: %d changes, the next should be %+v", what, i, want[i])
		case i >= len(want):
			t.Errorf("%s: change %d should not be there: %+v", what, i, got[i])
		case got[i] != want[i]:
			t.Errorf("%s: change %d is %+v, want %+v", what, i, got[i], want[i])
		default:
			continue
		}
		return
	}
}

// A server that is told to stop does not wait for its watches: they end in order.
func TestAServerStopsUnderItsWatches(t *testing.T) {
	s := startServer(t, t.TempDir())
	var ends []chan error
	for range 50 {
		resp, err := http.Get(s.url + "/api/v1/configmaps?watch=1")
		if err != nil {
			t.Fatal(err)
		}
		end := make(chan error, 1)
		ends = append(ends, end)
		go func() {
			defer resp.Body.Close()
			_, err := io.Copy(io.Discard, resp.Body)
			end <- err
		}()
	}
	if code := s.stop(); code != 0 || strings.Contains(s.log.String(), "cut off") {
		t.Errorf("cmserver ended with %d:\n%s", code, s.log)
	}
	for _, end := range ends {
		if err := <-end; err != nil {
			t.Errorf("a watch broke: %v", err)
		}
	}
}

// The check itself must be able to refuse.
func TestTheCheckOfWatchersRefusesAGap(t *testing.T) {
	history := []change{
		{"ADDED", "even/a", 2, "1", "in"},
		{"MODIFIED", "even/a", 3, "2", "out"},
		{"MODIFIED", "even/a", 4, "3", "in"},
		{"DELETED", "even/a", 5, "3", "in"},
		{"ADDED", "odd/b", 6, "1", "in"},
	}
	in := func(c change) bool { return c.side == "in" }
	initial, events := part(history, in, 2, 5)
	if want := history[:1]; !slices.Equal(initial, want) {
		t.Errorf("initial: got %+v, want %+v", initial, want)
	}
	want := []change{{"DELETED", "even/a", 3, "1", "in"}, {"ADDED", "even/a", 4, "3", "in"}, history[3]}
	if !slices.Equal(events, want) {
		t.Errorf("events: got %+v, want %+v", events, want)
	}
	l := &life{began: 2, position: 2, whole: true}
	event := func(kind, version string) error {
		return l.see(kind, &types.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "even", Name: "a", ResourceVersion: version}})
	}
	for _, c := range []struct {
		kind, version string
		taken         bool
	}{{"ADDED", "4", true}, {"MODIFIED", "4", false}, {"MODIFIED", "3", false}, {"BOOKMARK", "4", true}, {"BOOKMARK", "3", false}} {
		if err := event(c.kind, c.version); (err == nil) != c.taken {
			t.Errorf("%s at version %s: %v", c.kind, c.version, err)
		}
	}
}
