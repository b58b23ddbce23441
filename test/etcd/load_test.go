package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"example.com/cmctl/test/etcd/internal/procs"
	"example.com/cmctl/test/linear"
)

// load is what clients do while things fail, through all servers at once: objects that are
// read and written at random, counters that are raised, objects that are made and must stay.
type load struct {
	t       *testing.T
	clients []*client.Client
	history *linear.Recorder
	over    chan struct{} // closed when no more is to be begun; what was begun goes to its end
	running sync.WaitGroup

	raised [counters]struct{ sure, open atomic.Int64 }
	made   struct {
		sync.Mutex
		names []string
	}
}

const (
	counters      = 16
	counted       = "counted"
	kept          = "kept"
	ofHistories   = 6 // clients of each kind
	ofCounters    = 6
	ofKept        = 2
	histories     = 4 // objects
	pauseOfClient = 15 * time.Millisecond
)

var number = types.Field{Section: "data", Key: "n"}

// newLoad has a client of each server alone, and one that goes on with the others, for each
// server that may come first.
func newLoad(t *testing.T, servers []*procs.Server) *load {
	t.Helper()
	l := &load{t: t, history: linear.New(), over: make(chan struct{})}
	for first := range servers {
		var order []string
		for i := range servers {
			order = append(order, servers[(first+i)%len(servers)].URL)
		}
		l.connect(order[0])
		l.connect(strings.Join(order, ","))
	}
	return l
}

func (l *load) connect(servers string) {
	l.t.Helper()
	target, err := client.ResolveTarget(client.TargetOptions{Server: servers})
	if err != nil {
		l.t.Fatal(err)
	}
	c, err := client.New(target, client.Options{FieldManager: "load", RequestTimeout: 15 * time.Second})
	if err != nil {
		l.t.Fatal(err)
	}
	l.clients = append(l.clients, c)
}

// any is a client of a server at random.
func (l *load) any() *client.Client { return l.clients[rand.IntN(len(l.clients))] }

// begin starts the clients. Counters are there before.
func (l *load) begin() {
	ctx := l.t.Context()
	for i := range counters {
		doc := types.NewDocument(counted, counter(i))
		doc.Set(number, "0")
		if _, err := l.any().ConfigMaps(counted).Create(ctx, doc, ""); err != nil {
			l.t.Fatal(err)
		}
	}
	for who := range ofHistories {
		l.running.Go(func() { l.operate(ctx, who) })
	}
	for range ofCounters {
		l.running.Go(func() { l.raise(ctx) })
	}
	for who := range ofKept {
		l.running.Go(func() { l.keep(ctx, who) })
	}
}

// goesOn waits a little, and tells whether there is more to do.
func (l *load) goesOn() bool {
	select {
	case <-time.After(time.Duration(rand.Int64N(int64(2 * pauseOfClient)))):
		return true
	case <-l.over:
		return false
	}
}

func (l *load) operate(ctx context.Context, who int) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), uint64(who)))
	known := map[string]types.Document{}
	for l.goesOn() {
		l.history.Operate(ctx, l.any().ConfigMaps(linear.Namespace), who, rng, fmt.Sprintf("key-%d", rng.IntN(histories)), known)
	}
}

func counter(i int) string { return fmt.Sprintf("counter-%02d", i) }

// raise adds one to counters. What becomes of each addition is found out, or stays open.
func (l *load) raise(ctx context.Context) {
	for l.goesOn() {
		i := rand.IntN(counters)
		_, err := retry.Update(ctx, l.any().ConfigMaps(counted).Object(counter(i)), addOne, retry.Options{})
		var unknown *retry.OutcomeUnknownError
		switch {
		case err == nil:
			l.raised[i].sure.Add(1)
		case errors.As(err, &unknown):
			l.raised[i].open.Add(1)
		}
	}
}

var addOne = client.EditConfigMap(func(cm *types.ConfigMap) error {
	n, err := strconv.Atoi(cm.Data["n"])
	cm.Data["n"] = strconv.Itoa(n + 1)
	return err
})

// keep makes objects that nobody deletes.
func (l *load) keep(ctx context.Context, who int) {
	for n := 0; l.goesOn(); n++ {
		name := fmt.Sprintf("kept-%d-%d", who, n)
		doc := types.NewDocument(kept, name)
		doc.Set(number, name)
		if _, err := l.any().ConfigMaps(kept).Create(ctx, doc, ""); err == nil {
			l.made.Lock()
			l.made.names = append(l.made.names, name)
			l.made.Unlock()
		}
	}
}

// end stops the clients.
func (l *load) end() {
	close(l.over)
	l.running.Wait()
}

// check holds all servers against what the clients were told.
func (l *load) check() {
	l.t.Helper()
	ctx := l.t.Context()
	l.history.Check(l.t)
	sum, open := int64(0), int64(0)
	for i := range counters {
		sure, maybe := l.raised[i].sure.Load(), l.raised[i].open.Load()
		sum, open = sum+sure, open+maybe
		for _, c := range l.clients {
			doc, err := c.ConfigMaps(counted).Get(ctx, counter(i))
			if err != nil {
				l.t.Fatal(err)
			}
			text, _ := doc.Fields()[number].(string)
			if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < sure || n > sure+maybe {
				l.t.Errorf("%s is at %s, and was raised %d times for sure and %d times perhaps", counter(i), text, sure, maybe)
			}
		}
	}
	if sum == 0 || len(l.made.names) == 0 {
		l.t.Errorf("nothing was done: %d additions, %d objects", sum, len(l.made.names))
	}
	for _, c := range l.clients {
		for _, name := range l.made.names {
			if _, err := c.ConfigMaps(kept).Get(ctx, name); err != nil {
				l.t.Errorf("%s was acknowledged: %v", name, err)
			}
		}
	}
	l.t.Logf("%d additions for sure, %d open; %d objects made", sum, open, len(l.made.names))
}

// passRound writes an object through one server and reads it through another at once.
func (l *load) passRound(who, rounds int) {
	ctx := l.t.Context()
	name := fmt.Sprintf("round-%d", who)
	doc := types.NewDocument("round", name)
	doc.Set(number, "0")
	doc, err := l.clients[0].ConfigMaps("round").Create(ctx, doc, "")
	if err != nil {
		l.t.Error(err)
		return
	}
	for n := range rounds {
		doc.Set(number, strconv.Itoa(n))
		if doc, err = l.any().ConfigMaps("round").Put(ctx, doc, ""); err != nil {
			l.t.Error(err)
			return
		}
		got, err := l.any().ConfigMaps("round").Get(ctx, name)
		if err != nil || got.ResourceVersion() != doc.ResourceVersion() {
			l.t.Errorf("written at %s, then read at %s, %v", doc.ResourceVersion(), got.ResourceVersion(), err)
			return
		}
		list, err := l.any().ConfigMaps("round").List(ctx, client.ListOptions{})
		if err != nil || !holds(list.Items, name, doc.ResourceVersion()) {
			l.t.Errorf("written at %s, which a list does not have, %v", doc.ResourceVersion(), err)
			return
		}
	}
}

func holds(items []types.Document, name, version string) bool {
	return slices.ContainsFunc(items, func(d types.Document) bool { return d.Name() == name && d.ResourceVersion() == version })
}
