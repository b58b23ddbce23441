package etcd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/feed"
	"example.com/cmctl/pkg/server/store/index"
)

// formatVersion is that of what this release writes.
const formatVersion = 1

// Store is a store.Store on an etcd cluster. It may be shared.
type Store struct {
	opts   Options
	log    *slog.Logger
	keys   layout
	client *clientv3.Client

	offset  store.Revision // a revision less that of etcd
	floor   store.Revision // states before this were never the store's
	limited bool           // what keeps the data knows single keys alone: kine

	cache   cache
	hub     feed.Hub
	pins    index.Pins
	values  values
	turns   turns
	fresh   barrier
	health  health
	mode    mode
	members members

	// told is the highest revision that anybody was told of.
	told atomic.Int64

	ctx     context.Context // ends with the store
	stop    context.CancelFunc
	workers sync.WaitGroup
	ops     sync.RWMutex // held for reading by calls, for writing by Close
	closed  atomic.Bool
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Describer = (*Store)(nil)
	_ store.Remote    = (*Store)(nil)
)

// Open opens the store under a prefix, and makes it if there is none. It reads every key,
// but no large value. The error says which cluster, what is wrong and what to do; it is
// store.ErrUnreachable if no member answers, store.ErrNewerFormat if a newer release
// wrote the data.
func Open(ctx context.Context, o Options) (*Store, error) {
	o = o.withDefaults()
	named := func(err error) error {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = fmt.Errorf("%w: no member has answered within %s", store.ErrUnreachable, o.Timeout)
		}
		return fmt.Errorf("etcd %s, prefix %s: %w", strings.Join(o.Endpoints, ","), o.Prefix, err)
	}
	client, err := connect(o)
	if err != nil {
		return nil, named(err)
	}
	s := &Store{opts: o, log: o.Logger.With("etcd", strings.Join(o.Endpoints, ",")), keys: layout{o.Prefix}, client: client}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.values.limit = o.CacheBytes
	s.members.init(o.Endpoints)
	s.cache.doubted = make(chan struct{}, 1)
	s.fresh.ask, s.fresh.start = func() (store.Revision, error) { return s.askRevision(s.ctx) }, s.workers.Go
	if err := s.open(ctx); err != nil {
		s.stop()
		_ = client.Close() // err says more
		return nil, named(err)
	}
	s.workers.Go(s.follow)
	s.workers.Go(s.watchHealth)
	return s, nil
}

// maxMessage is beyond all that a commit may have, in bytes: what is too large is etcd's to
// say, which may be set to take more than by default.
const maxMessage = 64 << 20

func connect(o Options) (*clientv3.Client, error) {
	const alive = 3 * time.Second // a member that stands still is left after twice that
	return clientv3.New(clientv3.Config{
		Endpoints: o.Endpoints, TLS: o.TLS, Username: o.Username, Password: o.Password,
		MaxCallSendMsgSize: maxMessage,
		DialTimeout:        o.Timeout, DialKeepAliveTime: alive, DialKeepAliveTimeout: alive, PermitWithoutStream: true,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: alive,
			// gRPC's own would try a member that was away for long again after minutes.
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: lastPause}})},
		Logger: zap.NewNop(),
	})
}

func (s *Store) open(ctx context.Context) error {
	var err error
	if s.limited, err = s.probe(ctx); err != nil {
		return err
	}
	if err := s.adopt(ctx); err != nil {
		return err
	}
	compacted, err := s.askCompacted(ctx)
	if err != nil {
		return err
	}
	s.learnMode(ctx)
	s.cache.lack(s.floor)
	s.clusterCompacted(compacted)
	if err := s.load(ctx); err != nil {
		return err
	}
	s.hub.Start(s.cache.state().Current)
	return nil
}

// probe tells whether what answers knows no more than transactions on a single key. Only one
// that says so does: in doubt there is an etcd, which is busy.
func (s *Store) probe(ctx context.Context) (limited bool, err error) {
	get := clientv3.OpGet(s.keys.format(), clientv3.WithKeysOnly())
	_, err = attempt(ctx, s, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return s.client.Txn(ctx).Then(get, get).Commit()
	})
	if err == nil || !isUnsupported(err) {
		return false, err
	}
	s.log.Info("store: behind the address is kine, which knows transactions on one key only: commits of several keys are made one after the other, and there is no history beyond what it keeps")
	return true, nil
}

// format is what lies in meta/format.
type format struct {
	Format int `json:"format"`
	// Base is what the revision in which this was written stands for; 0: for itself.
	Base store.Revision `json:"base,omitempty"`
	// Rebased tells that Base counts, even where it is 0.
	Rebased bool `json:"rebased,omitempty"`
}

// adopt finds out what etcd's revisions stand for, or decides it for a new store. Of
// several that do so at once one is first.
func (s *Store) adopt(ctx context.Context) error {
	for {
		found, err := s.ask(ctx, s.keys.format())
		if err != nil {
			return err
		}
		if len(found.Kvs) == 1 {
			return s.understand(found.Kvs[0].Value, found.Kvs[0].ModRevision)
		}
		if s.opts.MustExist {
			return store.ErrNoStore
		}
		if err := s.found(ctx); err != nil {
			return err
		}
	}
}

// found makes a new store, unless somebody else has made it.
func (s *Store) found(ctx context.Context) error {
	f := format{Format: formatVersion}
	if s.opts.InitialVersion > 0 {
		f.Base, f.Rebased = s.opts.InitialVersion-1, true
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	bounded, cancel := s.bounded(ctx)
	defer cancel()
	_, err = s.client.Txn(bounded).If(clientv3.Compare(clientv3.ModRevision(s.keys.format()), "=", 0)).
		Then(clientv3.OpPut(s.keys.format(), string(text))).Else(clientv3.OpGet(s.keys.format())).Commit()
	if refused := refusal(err); refused != nil {
		return refused
	}
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return fmt.Errorf("%w: %w", store.ErrClusterFull, err)
	}
	return s.readError(ctx, err)
}

func (s *Store) understand(text []byte, at int64) error {
	var f format
	if err := json.Unmarshal(text, &f); err != nil {
		return fmt.Errorf("%w: %s is not what was written: %w", store.ErrDamaged, s.keys.format(), err)
	}
	if f.Format > formatVersion {
		return fmt.Errorf("%w: its format is %d, and this release knows %d", store.ErrNewerFormat, f.Format, formatVersion)
	}
	if f.Rebased {
		s.offset = f.Base - store.Revision(at)
	}
	s.floor = s.revision(at)
	return nil
}

// revision is what a revision of etcd stands for, and mod the reverse. What is before the
// store is never 0, which etcd would take for something else.
func (s *Store) revision(mod int64) store.Revision { return store.Revision(mod) + s.offset }

func (s *Store) mod(rev store.Revision) int64 {
	if mod := int64(rev - s.offset); mod > 0 {
		return mod
	}
	return -1
}

// askCompacted asks up to which revision the cluster is compacted, which a watch from
// the beginning is told.
func (s *Store) askCompacted(ctx context.Context) (store.Revision, error) {
	if s.limited {
		return 0, nil // kine tells nothing
	}
	return attempt(ctx, s, func(ctx context.Context) (store.Revision, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for r := range s.client.Watch(ctx, s.keys.format(), clientv3.WithRev(1)) {
			switch {
			case r.CompactRevision > 0:
				return s.revision(r.CompactRevision), nil
			case r.Err() != nil:
				return 0, r.Err()
			case len(r.Events) > 0:
				return 0, nil
			}
		}
		return 0, cmp.Or(ctx.Err(), context.DeadlineExceeded)
	})
}

// Remote tells that reads of the present ask etcd. See store.Remote.
func (*Store) Remote() {}

// tell notes that somebody learns of a revision.
func (s *Store) tell(rev store.Revision) {
	for {
		told := s.told.Load()
		if int64(rev) <= told || s.told.CompareAndSwap(told, int64(rev)) {
			return
		}
	}
}

// State returns the current and the compacted revision. See store.Store.
func (s *Store) State() store.State {
	v := s.cache.state()
	current := max(v.Current, store.Revision(s.told.Load()))
	s.tell(current)
	return store.State{Current: current, Compacted: v.Compacted}
}

// begin admits a call; end must follow if it returns nil.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.ops.RLock()
	if s.closed.Load() {
		s.ops.RUnlock()
		return store.ErrClosed
	}
	return nil
}

func (s *Store) end() { s.ops.RUnlock() }

// attempts is how many times a request is sent within the bound, so that a member which
// stands still doesn't use up all of it: the next attempt goes to another one.
const attempts = 3

// patience is for how long the first attempts wait. It leaves most of the bound to the last:
// that none has answered may mean that all of them are slow.
func (s *Store) patience() time.Duration { return s.opts.Timeout / 5 }

// bounded is the context of requests to etcd on behalf of a caller. It ends with the store
// too.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// Close ends all watches, waits for what runs and leaves the cluster. See store.Store.
func (s *Store) Close() error {
	if !s.closed.CompareAndSwap(false, true) {
		return store.ErrClosed
	}
	s.stop()
	s.hub.Close(store.ErrClosed)
	s.ops.Lock() // every call that was running has ended
	defer s.ops.Unlock()
	s.workers.Wait()
	s.pins.Clear()
	if err := s.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("close the connections to etcd: %w", err)
	}
	return nil
}

func decimal(rev store.Revision) string { return strconv.FormatInt(int64(rev), 10) }
