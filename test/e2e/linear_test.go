package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"github.com/anishathalye/porcupine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Histories of get, create, put and delete from concurrent clients over HTTP
// are linearizable, with the server killed and restarted in between.
func TestHistoriesAreLinearizable(t *testing.T) {
	const clients, restarts, keys = 10, 4, 3
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dir := t.TempDir()
	r := &recorder{began: time.Now()}
	for round := range restarts + 1 {
		s := startServer(t, dir)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for c := range clients {
			rng := rand.New(rand.NewPCG(seed, uint64(round*clients+c)))
			configMaps := connect(t, s.url).ConfigMaps("linear")
			all.Go(func() {
				known := map[string]types.Document{} // what this client read last
				for n := 0; n < 120 && ctx.Err() == nil; n++ {
					r.operate(ctx, configMaps, c, rng, fmt.Sprintf("key-%d", rng.IntN(keys)), known)
				}
			})
		}
		if round < restarts {
			time.Sleep(time.Duration(100+rand.IntN(150)) * time.Millisecond)
			s.kill()
			cancel()
		}
		all.Wait()
		cancel()
		if round == restarts {
			s.stop()
		}
	}
	history := r.history()
	model := objectModel()
	result, info := porcupine.CheckOperationsVerbose(model, history, 2*time.Minute)
	t.Logf("%d operations, %d without an answer: %s", len(history), r.unknown, result)
	if result != porcupine.Ok {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("linearizability-%d.html", seed))
		if err := porcupine.VisualizePath(model, info, path); err == nil {
			t.Logf("the history is drawn in %s", path)
		}
		t.Errorf("not linearizable: %s", result)
	}
}

// The checker itself must be able to refuse: a lost update is not linearizable.
func TestTheCheckerRefusesALostUpdate(t *testing.T) {
	put := func(sent, got, content string, at int64) porcupine.Operation {
		return porcupine.Operation{ClientId: int(at), Call: at, Return: at + 1,
			Input:  request{verb: "put", key: "k", sent: sent, content: content},
			Output: reply{version: got, content: content}}
	}
	history := []porcupine.Operation{
		{Call: 0, Return: 1, Input: request{verb: "create", key: "k", content: "a"}, Output: reply{version: "1", content: "a"}},
		put("1", "2", "b", 2),
		put("1", "3", "c", 4), // made from version 1 and taken all the same
	}
	if porcupine.CheckOperations(objectModel(), history) {
		t.Error("two writes made from the same version passed")
	}
}

// request and reply are one operation as the model sees it.
type request struct {
	verb, key, sent, content string
}

type reply struct {
	version, content string
	absent           bool // NotFound
	conflict         bool
	exists           bool // AlreadyExists
	unknown          bool // no answer
}

// state is one object. An empty version with content is one whose number no
// client has been told yet: the write that made it got no answer.
type state struct {
	exists           bool
	version, content string
}

func objectModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{}} },
		Step: func(s, in, out any) []any { return step(s.(state), in.(request), out.(reply)) },
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byKey := map[string][]porcupine.Operation{}
			for _, op := range history {
				k := op.Input.(request).key
				byKey[k] = append(byKey[k], op)
			}
			var parts [][]porcupine.Operation
			for _, p := range byKey {
				parts = append(parts, p)
			}
			return parts
		},
		Equal: func(a, b any) bool { return a.(state) == b.(state) },
		DescribeOperation: func(in, out any) string {
			return fmt.Sprintf("%+v -> %+v", in, out)
		},
	}
	return m.ToModel()
}

// step gives the states in which the object may be after the operation, none if
// the answer can't be.
func step(s state, in request, out reply) []any {
	next, possible := apply(s, in, out)
	switch {
	case out.unknown && possible:
		return []any{s, next} // it landed now, or never
	case out.unknown:
		return []any{s}
	case possible:
		return []any{next}
	}
	return nil
}

func apply(s state, in request, out reply) (next state, possible bool) {
	landed := state{exists: true, version: out.version, content: in.content}
	switch in.verb {
	case "get":
		if out.unknown || out.absent {
			return s, out.unknown || !s.exists
		}
		return state{true, out.version, out.content}, s.exists && s.content == out.content && (s.version == "" || s.version == out.version)
	case "create":
		if out.exists {
			return s, s.exists
		}
		return landed, !s.exists
	case "put":
		switch {
		case out.absent:
			return s, !s.exists
		case out.conflict:
			return s, s.exists && s.version != in.sent
		}
		return landed, s.exists && s.version == in.sent
	case "delete":
		if out.absent {
			return s, !s.exists
		}
		return state{}, s.exists
	}
	return s, false
}

// recorder collects the operations of all clients.
type recorder struct {
	began   time.Time
	serial  atomic.Int64
	mu      sync.Mutex
	ops     []porcupine.Operation // guarded by mu
	open    []porcupine.Operation // guarded by mu; without an answer
	unknown int                   // guarded by mu
}

var contentField = types.Field{Section: "data", Key: "content"}

// operate makes one random request and records it.
func (r *recorder) operate(ctx context.Context, configMaps *client.ConfigMaps, who int, rng *rand.Rand, key string, known map[string]types.Document) {
	in := request{key: key, content: fmt.Sprint(r.serial.Add(1))}
	base := known[key]
	switch n := rng.IntN(10); {
	case base == nil && n < 5:
		in.verb = "create"
	case base == nil || n < 3:
		in.verb = "get"
	case n < 9:
		in.verb, in.sent = "put", base.ResourceVersion()
	default:
		in.verb = "delete"
	}
	call := time.Since(r.began).Nanoseconds()
	got, err := perform(ctx, configMaps, in, base)
	op := porcupine.Operation{ClientId: who, Input: in, Call: call, Return: time.Since(r.began).Nanoseconds()}
	out, sent := outcomeOf(got, err)
	op.Output = out
	if got != nil {
		known[key] = got
	} else if in.verb != "create" || out.unknown {
		delete(known, key)
	}
	if !sent || out.unknown && in.verb == "get" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if out.unknown {
		r.unknown++
		r.open = append(r.open, op)
		return
	}
	r.ops = append(r.ops, op)
}

func perform(ctx context.Context, configMaps *client.ConfigMaps, in request, base types.Document) (types.Document, error) {
	switch in.verb {
	case "get":
		return configMaps.Get(ctx, in.key)
	case "create":
		doc := types.NewDocument("linear", in.key)
		doc.Set(contentField, in.content)
		return configMaps.Create(ctx, doc, "")
	case "put":
		doc := base.Clone()
		doc.Set(contentField, in.content)
		return configMaps.Put(ctx, doc, "")
	}
	return nil, configMaps.Delete(ctx, in.key, retry.Version{}, "")
}

// outcomeOf sorts an answer; sent is false for a request that never left.
func outcomeOf(doc types.Document, err error) (out reply, sent bool) {
	var status apierrors.APIStatus
	switch {
	case err == nil && doc == nil:
		return reply{}, true
	case err == nil:
		content, _ := doc.Fields()[contentField].(string)
		return reply{version: doc.ResourceVersion(), content: content}, true
	case errors.As(err, new(*retry.UnsentError)):
		return reply{}, false
	case apierrors.IsNotFound(err):
		return reply{absent: true}, true
	case apierrors.IsAlreadyExists(err):
		return reply{exists: true}, true
	case apierrors.IsConflict(err):
		return reply{conflict: true}, true
	case errors.As(err, &status) && status.Status().Code < 500:
		panic(err) // no request of this test may be refused otherwise
	}
	return reply{unknown: true}, true
}

// history is all of it, with what got no answer open to the end.
func (r *recorder) history() []porcupine.Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := time.Since(r.began).Nanoseconds()
	all := append([]porcupine.Operation{}, r.ops...)
	for i, op := range r.open {
		op.ClientId = 1_000_000 + i // the client went on; nobody waits for this one
		op.Return = end
		all = append(all, op)
	}
	return all
}
