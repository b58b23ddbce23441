// Package linear records what clients do beside each other with a few objects, and holds it
// against what one client after the other could have seen.
package linear

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

	"github.com/anishathalye/porcupine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

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

// Recorder collects the operations of all clients.
type Recorder struct {
	began   time.Time
	serial  atomic.Int64
	mu      sync.Mutex
	ops     []porcupine.Operation // guarded by mu
	open    []porcupine.Operation // guarded by mu; without an answer
	unknown int                   // guarded by mu
}

var contentField = types.Field{Section: "data", Key: "content"}

// New begins a history.
func New() *Recorder { return &Recorder{began: time.Now()} }

// Namespace is where the objects of the histories are.
const Namespace = "linear"

// Operate makes one random request of the client who, and records it. known is what
// that client has read last, by key. A request may be made through any server.
func (r *Recorder) Operate(ctx context.Context, configMaps *client.ConfigMaps, who int, rng *rand.Rand, key string, known map[string]types.Document) {
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
		doc := types.NewDocument(Namespace, in.key)
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
	case errors.As(err, new(*retry.UnsentError)), apierrors.IsServiceUnavailable(err):
		return reply{}, false // it says that nothing was stored, and is held to that
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

// Check demands that the history is linearizable. Where it is not, a drawing is left.
func (r *Recorder) Check(t testing.TB) {
	t.Helper()
	history := r.history()
	model := objectModel()
	result, info := porcupine.CheckOperationsVerbose(model, history, 2*time.Minute)
	t.Logf("%d operations, %d without an answer: %s", len(history), r.unknown, result)
	if result == porcupine.Ok {
		return
	}
	path := filepath.Join(os.TempDir(), fmt.Sprintf("linearizability-%d.html", time.Now().UnixNano()))
	if err := porcupine.VisualizePath(model, info, path); err == nil {
		t.Logf("the history is drawn in %s", path)
	}
	t.Errorf("not linearizable: %s", result)
}

// history is all of it, with what got no answer open to the end.
func (r *Recorder) history() []porcupine.Operation {
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
