package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
	"example.com/cmctl/pkg/types"
)

// patience is how long a test waits for what must come; only a failing test
// waits so long.
const patience = 30 * time.Second

// event is one line of a watch.
type event struct {
	Type   string
	Object json.RawMessage
}

// word is the event in short: its type, then name@version, the data where there
// is any, and the label x; a Status is its code and message.
func (e event) word() string {
	var o struct {
		types.ConfigMap
		Code    int
		Message string
	}
	if err := json.Unmarshal(e.Object, &o); err != nil {
		return err.Error()
	}
	if o.Kind == "Status" {
		return fmt.Sprintf("%s %d %s", e.Type, o.Code, o.Message)
	}
	word := e.Type + " " + o.Name + "@" + o.ResourceVersion
	if v, ok := o.Data["k"]; ok {
		word += "=" + v
	}
	if x, ok := o.Labels["x"]; ok {
		word += "[" + x + "]"
	}
	if _, ok := o.Annotations[metav1.InitialEventsAnnotationKey]; ok {
		word += " (end)"
	}
	return word
}

// version is that of the event's object.
func (e event) version(t testing.TB) int {
	t.Helper()
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(e.Object, &o); err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(o.ResourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// events is an open watch.
type events struct {
	t     testing.TB
	path  string
	lines chan event // closed when the stream has ended
	err   error      // why; nil: the server ended it in order. Set before lines is closed
	stop  context.CancelFunc
}

// watch opens a watch and returns when its head has come.
func (a *api) watch(path string) *events {
	a.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", a.url+path, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != types.MediaJSON {
		a.t.Fatalf("%s: %s %s", path, resp.Status, resp.Header.Get("Content-Type"))
	}
	w := &events{t: a.t, path: path, lines: make(chan event), stop: cancel}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(w.lines)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 8<<20)
		for lines.Scan() {
			var e event
			if w.err = json.Unmarshal(lines.Bytes(), &e); w.err != nil {
				return
			}
			select {
			case w.lines <- e:
			case <-ctx.Done():
				return
			}
		}
		w.err = lines.Err()
	}()
	a.t.Cleanup(func() { cancel(); <-ended })
	return w
}

// more is false once the stream has ended.
func (w *events) more() (event, bool) {
	w.t.Helper()
	select {
	case e, ok := <-w.lines:
		return e, ok
	case <-time.After(patience):
		w.t.Fatalf("%s: no event", w.path)
		return event{}, false
	}
}

func (w *events) next() event {
	w.t.Helper()
	e, ok := w.more()
	if !ok {
		w.t.Fatalf("%s ended: %v", w.path, w.err)
	}
	return e
}

// sees demands these events next, and in this order.
func (w *events) sees(want ...string) {
	w.t.Helper()
	for i, word := range want {
		if got := w.next().word(); got != word {
			w.t.Fatalf("%s: event %d is %q, want %q", w.path, i, got, word)
		}
	}
}

// ends demands that the server ends the stream in order, without another event.
func (w *events) ends() {
	w.t.Helper()
	if e, ok := w.more(); ok {
		w.t.Errorf("%s: got %q, want the end", w.path, e.word())
	} else if w.err != nil {
		w.t.Errorf("%s: ended with %v", w.path, w.err)
	}
}

// refusal is the answer to a watch that must not begin.
func (a *api) refusal(path string, headers ...string) result {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return a.doContext(ctx, "GET", path, "", headers...)
}

// put makes or replaces an object in the namespace default. value is data.k, x
// the label x; empty: none.
func (a *api) put(name, value, x string) {
	a.t.Helper()
	body := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"x":%q}},"data":{"k":%q}}`, name, x, value)
	if x == "" {
		body = fmt.Sprintf(`{"metadata":{"name":%q},"data":{"k":%q}}`, name, value)
	}
	if a.do("POST", collection, body).code == http.StatusConflict {
		a.must(200, "PUT", collection+"/"+name, body)
	}
}

func (a *api) remove(name string) {
	a.t.Helper()
	a.must(200, "DELETE", collection+"/"+name, "")
}

// watched starts a server on which PUT needs no version.
func watched(t testing.TB, options ...option) *api {
	return begin(t, append([]option{putMode(server.PutAlways)}, options...)...)
}

// Each watch gets what was written before it, and then what is written while it
// runs; a selector makes of it what a client sees that knows nothing else.
func TestWatchFromAVersion(t *testing.T) {
	a := watched(t)
	a.put("b", "1", "in")  // version 2
	a.put("a", "1", "")    // 3
	a.put("b", "2", "out") // 4
	a.put("b", "3", "out") // 5
	a.put("b", "4", "in")  // 6
	a.put("b", "5", "in")  // 7
	a.remove("b")          // 8
	a.put("b", "6", "out") // 9
	const other = "/api/v1/namespaces/other/configmaps"
	a.must(201, "POST", other, `{"metadata":{"name":"a"}}`) // 10
	type want = []string
	cases := []struct {
		path         string
		before, live want
	}{
		{collection + "?watch=1&resourceVersion=1",
			want{"ADDED b@2=1[in]", "ADDED a@3=1", "MODIFIED b@4=2[out]", "MODIFIED b@5=3[out]", "MODIFIED b@6=4[in]",
				"MODIFIED b@7=5[in]", "DELETED b@8=5[in]", "ADDED b@9=6[out]"},
			want{"MODIFIED b@11=7[in]", "MODIFIED a@12=2", "DELETED b@13=7[in]"}},
		{collection + "?watch=1&resourceVersion=7",
			want{"DELETED b@8=5[in]", "ADDED b@9=6[out]"},
			want{"MODIFIED b@11=7[in]", "MODIFIED a@12=2", "DELETED b@13=7[in]"}},
		{collection + "?watch=1&resourceVersion=10", nil,
			want{"MODIFIED b@11=7[in]", "MODIFIED a@12=2", "DELETED b@13=7[in]"}},
		{"/api/v1/configmaps?watch=1&resourceVersion=8",
			want{"ADDED b@9=6[out]", "ADDED a@10"},
			want{"MODIFIED b@11=7[in]", "MODIFIED a@12=2", "DELETED b@13=7[in]", "ADDED a@14"}},
		{collection + "?watch=1&resourceVersion=1&labelSelector=x%3Din",
			want{"ADDED b@2=1[in]", "DELETED b@4=1[in]", "ADDED b@6=4[in]", "MODIFIED b@7=5[in]", "DELETED b@8=5[in]"},
			want{"ADDED b@11=7[in]", "DELETED b@13=7[in]"}},
		{collection + "?watch=1&resourceVersion=4&labelSelector=x+notin+(out)",
			want{"ADDED b@6=4[in]", "MODIFIED b@7=5[in]", "DELETED b@8=5[in]"},
			want{"ADDED b@11=7[in]", "MODIFIED a@12=2", "DELETED b@13=7[in]"}},
		{collection + "?watch=1&resourceVersion=1&fieldSelector=metadata.name%3Da",
			want{"ADDED a@3=1"}, want{"MODIFIED a@12=2"}},
		{"/api/v1/configmaps?watch=1&resourceVersion=2&fieldSelector=metadata.name%3Da",
			want{"ADDED a@3=1", "ADDED a@10"}, want{"MODIFIED a@12=2", "ADDED a@14"}},
		{"/api/v1/configmaps?watch=1&resourceVersion=1&fieldSelector=metadata.namespace%3Dother",
			want{"ADDED a@10"}, nil},
		{"/api/v1/configmaps?watch=1&resourceVersion=1&fieldSelector=metadata.namespace%3Dother,metadata.name!%3Da", nil, nil},
		{"/api/v1/watch/configmaps?resourceVersion=9", want{"ADDED a@10"},
			want{"MODIFIED b@11=7[in]", "MODIFIED a@12=2", "DELETED b@13=7[in]", "ADDED a@14"}},
		{"/api/v1/watch/namespaces/default/configmaps?resourceVersion=8", want{"ADDED b@9=6[out]"},
			want{"MODIFIED b@11=7[in]", "MODIFIED a@12=2", "DELETED b@13=7[in]"}},
		{"/api/v1/watch/namespaces/default/configmaps/a?resourceVersion=1", want{"ADDED a@3=1"}, want{"MODIFIED a@12=2"}},
		// A version that is not reached yet: silence, then what comes after it.
		{collection + "?watch=1&resourceVersion=12", nil, want{"DELETED b@13=7[in]"}},
		{collection + "?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", nil,
			want{"MODIFIED b@11=7[in]", "MODIFIED a@12=2", "DELETED b@13=7[in]"}},
	}
	var open []*events
	for _, c := range cases {
		w := a.watch(c.path)
		w.sees(c.before...)
		open = append(open, w)
	}
	a.put("b", "7", "in")                                                                   // 11
	a.put("a", "2", "")                                                                     // 12
	a.remove("b")                                                                           // 13
	a.must(201, "POST", "/api/v1/namespaces/third/configmaps", `{"metadata":{"name":"a"}}`) // 14
	for i, c := range cases {
		open[i].sees(c.live...)
	}
}

func TestWatchBeginsWithWhatIsThere(t *testing.T) {
	a := watched(t)
	a.put("b", "1", "in")  // version 2
	a.put("a", "1", "out") // 3
	const list = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"", []string{"ADDED a@3=1[out]", "ADDED b@2=1[in]"}},
		{"&resourceVersion=0", []string{"ADDED a@3=1[out]", "ADDED b@2=1[in]"}},
		{"&resourceVersion=0&labelSelector=x%3Din", []string{"ADDED b@2=1[in]"}},
		{"&fieldSelector=metadata.name%3Db", []string{"ADDED b@2=1[in]"}},
		{"&allowWatchBookmarks=true", []string{"ADDED a@3=1[out]", "ADDED b@2=1[in]", "BOOKMARK @3 (end)"}},
		{list, []string{"ADDED a@3=1[out]", "ADDED b@2=1[in]"}},
		{list + "&allowWatchBookmarks=true", []string{"ADDED a@3=1[out]", "ADDED b@2=1[in]", "BOOKMARK @3 (end)"}},
		{list + "&allowWatchBookmarks=true&resourceVersion=2", []string{"ADDED a@3=1[out]", "ADDED b@2=1[in]", "BOOKMARK @3 (end)"}},
		{list + "&allowWatchBookmarks=true&labelSelector=x%3Dnone", []string{"BOOKMARK @3 (end)"}},
	} {
		w := a.watch(collection + "?watch=true" + c.query)
		w.sees(c.want...)
	}
	// The older path has initial events but, as in Kubernetes, no bookmark after them.
	legacy := a.watch("/api/v1/watch/namespaces/default/configmaps?allowWatchBookmarks=true")
	legacy.sees("ADDED a@3=1[out]", "ADDED b@2=1[in]")
	a.put("c", "1", "")
	legacy.sees("ADDED c@4=1")
}

// stored is a record as the server keeps an object of the namespace default.
func stored(name, value string) store.Record {
	return store.Record{
		Key:       store.Key("configmaps/default/" + name),
		Value:     []byte(`{"metadata":{"name":"` + name + `","namespace":"default"},"data":{"k":"` + value + `"}}`),
		VersionAt: len(`{"metadata":{`),
	}
}

// The initial events are one state, also when others write between its pages,
// and what they wrote follows.
func TestInitialEventsAreOneState(t *testing.T) {
	const objects = 1101
	var between sync.Once
	a := watched(t, tap(&tapped{list: func(st store.Store, ctx context.Context, o store.ListOptions) (store.Page, error) {
		if o.After != "" {
			between.Do(func() {
				gone := store.Record{Key: "configmaps/default/o1100", Deleted: true}
				for _, rec := range []store.Record{stored("early", "new"), stored("o0000", "new"), gone} {
					if _, err := st.Commit(ctx, store.Txn{Writes: []store.Record{rec}}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		return st.List(ctx, o)
	}}))
	var txn store.Txn
	for i := range objects {
		txn.Writes = append(txn.Writes, stored(fmt.Sprintf("o%04d", i), "old"))
	}
	if _, err := a.store.Commit(t.Context(), txn); err != nil {
		t.Fatal(err)
	}
	w := a.watch(collection + "?watch=1&allowWatchBookmarks=true")
	for i := range objects {
		w.sees(fmt.Sprintf("ADDED o%04d@2=old", i))
	}
	w.sees("BOOKMARK @2 (end)", "ADDED early@3=new", "MODIFIED o0000@4=new", "DELETED o1100@5=old")
}

func TestWatchOfNamespaces(t *testing.T) {
	a := watched(t)
	a.must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"team","labels":{"x":"in"}}}`) // 2
	all := a.watch("/api/v1/namespaces?watch=1&resourceVersion=1")
	all.sees("ADDED team@2[in]")
	active := a.watch("/api/v1/watch/namespaces?resourceVersion=2&fieldSelector=status.phase%3DActive")
	one := a.watch("/api/v1/watch/namespaces/team?resourceVersion=1")
	one.sees("ADDED team@2[in]")
	a.must(201, "POST", "/api/v1/namespaces/implied/configmaps", `{"metadata":{"name":"a"}}`) // 3
	for _, w := range []*events{all, active} {
		w.sees("ADDED implied@3")
	}
	a.must(200, "DELETE", "/api/v1/namespaces/team", "") // 4: Terminating, then it goes
	active.sees("DELETED team@4[in]")
	for _, w := range []*events{all, one} {
		w.sees("MODIFIED team@4[in]")
		if got := w.next(); got.Type != "DELETED" {
			t.Errorf("got %s, want DELETED", got.word())
		}
	}
}

func TestWatchRefusals(t *testing.T) {
	a := watched(t)
	for _, c := range []struct {
		path    string
		code    int
		reason  string
		message string
	}{
		{collection + "?watch=1&resourceVersion=abc", 400, "BadRequest", `resourceVersion: Invalid value: "abc"`},
		{collection + "?watch=1&resourceVersion=-1", 400, "BadRequest", `"-1"`},
		{collection + "?watch=1&timeoutSeconds=x", 400, "BadRequest", "x"},
		{collection + "?watch=1&labelSelector=x+in", 400, "BadRequest", "unable to parse requirement"},
		{collection + "?watch=1&fieldSelector=data.k%3Dv", 400, "BadRequest", `"data.k" is not a known field selector: only "metadata.name", "metadata.namespace"`},
		{"/api/v1/namespaces?watch=1&fieldSelector=spec%3Dv", 400, "BadRequest", "field label not supported: spec"},
		{"/api/v1/watch/namespaces/default/configmaps/a?fieldSelector=metadata.name%3Db", 400, "BadRequest", "doesn't match requested name"},
		{collection + "?watch=1&sendInitialEvents=true", 422, "Invalid", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"},
		{collection + "?watch=1&resourceVersion=1&resourceVersionMatch=Exact", 422, "Invalid", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"},
		{collection + "?watch=1&continue=abc", 422, "Invalid", "resourceVersionMatch is forbidden when continue is provided"},
	} {
		isStatus(t, a.refusal(c.path), c.code, c.reason, c.message)
	}
	isStatus(t, a.do("POST", "/api/v1/watch/namespaces/default/configmaps", "{}"), 405, "MethodNotAllowed", "")
	a.create()
	if r := a.must(200, "GET", flags+"?watch=true", ""); r.object.Name != "flags" {
		t.Errorf("a watch of a named path is no plain GET: %s", r.body)
	}
	if r := a.refusal(collection+"?watch=1", "Accept", "application/yaml"); r.code != 406 || !strings.Contains(r.body, "reason: NotAcceptable") {
		t.Errorf("a watch in YAML got %d %s", r.code, r.body)
	}
}

// A watch can't begin before what is kept: the answer is 200, and an event says
// why nothing more comes.
func TestWatchOfWhatIsNoLongerKept(t *testing.T) {
	a := watched(t)
	a.put("a", "1", "")
	a.put("a", "2", "")
	if err := a.store.Compact(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	w := a.watch(collection + "?watch=1&resourceVersion=2")
	w.sees("ERROR 410 too old resource version: 2 (3)")
	w.ends()
	a.watch(collection + "?watch=1&resourceVersion=2&sendInitialEvents=true&resourceVersionMatch=NotOlderThan").sees("ADDED a@3=2")
	future := a.watch(collection + "?watch=1&resourceVersion=99&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
	future.sees("ERROR 504 Timeout: Too large resource version: 99, current: 3")
	future.ends()
}

// What stops a watch that runs: the client is told what it must act upon, and
// else sees the end of the stream.
func TestHowAWatchStops(t *testing.T) {
	for _, c := range []struct {
		err  error
		want []string
	}{
		{store.ErrCompacted, []string{"ERROR 410 too old resource version: 2 (0)"}},
		{store.ErrSlow, nil},
		{store.ErrClosed, nil},
		{fmt.Errorf("%w: secret detail", store.ErrDamaged), []string{"ERROR 500"}},
	} {
		stop := make(chan struct{})
		a := watched(t, tap(&tapped{watch: func(w store.Watcher) store.Watcher {
			return &stopped{Watcher: w, stop: stop, err: c.err}
		}}))
		w := a.watch(collection + "?watch=1&resourceVersion=1")
		a.put("a", "1", "")
		w.sees("ADDED a@2=1")
		close(stop)
		for _, want := range c.want {
			if got := w.next().word(); !strings.HasPrefix(got, want) || strings.Contains(got, "secret") {
				t.Errorf("%v: got %q, want %q", c.err, got, want)
			}
		}
		w.ends()
	}
}

// stopped fails with err once stop is closed.
type stopped struct {
	store.Watcher
	stop chan struct{}
	err  error
}

func (w *stopped) Next(ctx context.Context) ([]store.Event, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-w.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	events, err := w.Watcher.Next(ctx)
	select {
	case <-w.stop:
		return nil, w.err
	default:
		return events, err
	}
}

func TestWatchesEndWithTheServer(t *testing.T) {
	a := watched(t)
	w := a.watch(collection + "?watch=1")
	a.server.EndWatches()
	w.ends()
	isStatus(t, a.refusal(collection+"?watch=1"), 503, "ServiceUnavailable", "shutting down")
	a.must(200, "GET", collection, "")
}

func TestWatchesEndWithTheStore(t *testing.T) {
	a := watched(t, ownStore(t, local.Options{}))
	w, other := a.watch(collection+"?watch=1"), a.watch("/api/v1/configmaps?watch=1&resourceVersion=99")
	if err := a.store.Close(); err != nil {
		t.Fatal(err)
	}
	w.ends()
	other.ends()
}

// ownStore makes the server's store by these options.
func ownStore(t *testing.T, o local.Options) option {
	o.InMemory, o.InitialVersion = true, 1
	st, err := local.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() }) // a test may have closed it
	return over(func(store.Store) store.Store { return st })
}

// Watches are counted apart: they leave room for requests, and requests for them.
func TestLimitOfWatches(t *testing.T) {
	a := watched(t, func(o *server.Options) { o.MaxInFlight, o.MaxWatches = 1, 2 })
	first, _ := a.watch(collection+"?watch=1"), a.watch(collection+"?watch=1")
	a.put("a", "1", "")
	first.sees("ADDED a@2=1")
	isStatus(t, a.refusal(collection+"?watch=1"), 429, "TooManyRequests", "too many watches")
	a.server.EndWatches()
	first.ends()
}

func TestAWatchWhoseClientGoesIsClosed(t *testing.T) {
	closed := make(chan struct{}, 1)
	a := watched(t, tap(&tapped{watch: func(w store.Watcher) store.Watcher { return &closing{w, closed} }}))
	w := a.watch(collection + "?watch=1&resourceVersion=1")
	a.put("a", "1", "")
	w.sees("ADDED a@2=1")
	w.stop()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Error("the store's watch is still open")
	}
}

// closing tells that it was closed.
type closing struct {
	store.Watcher
	closed chan struct{}
}

func (w *closing) Close() {
	w.Watcher.Close()
	w.closed <- struct{}{}
}

// A client that does not read is cut off when it has fallen too far behind, after
// events without a gap. The others miss nothing.
func TestASlowWatcherHoldsNobodyBack(t *testing.T) {
	a := watched(t, ownStore(t, local.Options{WatchBuffer: 8}))
	slow := a.watch(collection + "?watch=1&resourceVersion=1") // nobody takes its lines yet
	quick := a.watch(collection + "?watch=1&resourceVersion=1")
	large := strings.Repeat("x", 1<<20)
	const last = 40
	for version := 2; version <= last; version++ {
		if _, err := a.store.Commit(t.Context(), store.Txn{Writes: []store.Record{stored("a", large)}}); err != nil {
			t.Fatal(err)
		}
		if got := quick.next().version(t); got != version {
			t.Fatalf("the quick one got version %d, want %d", got, version)
		}
	}
	for version := 2; ; version++ {
		e, ok := slow.more()
		if !ok {
			return // cut in the middle of a frame if it was stuck for half a minute
		}
		if got := e.version(t); got != version {
			t.Fatalf("the slow one got version %d, want %d", got, version)
		}
		if version == last {
			t.Fatal("the slow one got all, though it took nothing for so long")
		}
	}
}

func TestAThousandWatchersGetEachEvent(t *testing.T) {
	const watchers = 1000
	a := watched(t)
	open := make([]*events, watchers)
	for i := range open {
		open[i] = a.watch(collection + []string{
			"?watch=1&resourceVersion=1",
			"?watch=1&labelSelector=x%3Din",
			"?watch=1&fieldSelector=metadata.name%3Da",
			"?watch=1&allowWatchBookmarks=1&resourceVersion=0",
		}[i%4])
	}
	a.put("a", "1", "in")
	a.remove("a")
	for i, w := range open {
		if i%4 == 3 {
			w.sees("BOOKMARK @1 (end)")
		}
		w.sees("ADDED a@2=1[in]", "DELETED a@3=1[in]")
	}
}

// tapped is a store of which a test overrides what watches use.
type tapped struct {
	store.Store
	list  func(store.Store, context.Context, store.ListOptions) (store.Page, error)
	watch func(store.Watcher) store.Watcher
}

func tap(s *tapped) option { return over(func(st store.Store) store.Store { s.Store = st; return s }) }

func (s *tapped) List(ctx context.Context, o store.ListOptions) (store.Page, error) {
	if s.list != nil && strings.HasPrefix(string(o.Prefix), "configmaps/") {
		return s.list(s.Store, ctx, o)
	}
	return s.Store.List(ctx, o)
}

func (s *tapped) Watch(ctx context.Context, prefix store.Key, from store.Revision) (store.Watcher, error) {
	w, err := s.Store.Watch(ctx, prefix, from)
	if err != nil || s.watch == nil || !strings.HasPrefix(string(prefix), "configmaps/") {
		return w, err
	}
	return s.watch(w), nil
}
