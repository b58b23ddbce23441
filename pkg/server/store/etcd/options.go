package etcd

import (
	"crypto/tls"
	"log/slog"
	"time"

	"example.com/cmctl/pkg/server/store"
)

// Options say where a store is and how it works. Every field but Endpoints and Prefix may be
// left zero.
type Options struct {
	// Endpoints are the members of the cluster, HOST:PORT.
	Endpoints []string
	// Prefix is what all keys begin with, without a slash at the end.
	Prefix string
	// TLS encrypts the connections; nil: they are not.
	TLS *tls.Config
	// Username and Password are those of an etcd user.
	Username, Password string
	// Timeout is how long a request to etcd may take. 0 means 5 seconds.
	Timeout time.Duration
	// InitialVersion is the first revision that a new store may hand out. 0 means that
	// its revisions are etcd's.
	InitialVersion store.Revision
	// MustExist refuses a prefix under which there is no store, with store.ErrNoStore, and
	// writes nothing.
	MustExist bool
	// InlineValueSize is the size in bytes up to which values are held in memory; larger
	// ones are read from etcd. 0 means 4096.
	InlineValueSize int
	// HistoryLimit, DeletedRetention and DeletedLimit are those of local.Options.
	HistoryLimit     int
	DeletedRetention time.Duration
	DeletedLimit     int
	// WatchBuffer is how many events a watcher may be behind before it is closed. 0 means
	// 8192.
	WatchBuffer int
	// CacheBytes bounds the memory for large values. 0 means 64 MiB.
	CacheBytes int
	// CompactCluster makes Compact compact the whole cluster, for everybody on it. Else
	// it only notes the revision, by a write of its own.
	CompactCluster bool
	// Logger gets what the store has to say; nil discards it.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	setDefault(&o.Timeout, 5*time.Second)
	setDefault(&o.InlineValueSize, 4096)
	setDefault(&o.HistoryLimit, 10)
	setDefault(&o.DeletedRetention, 24*time.Hour)
	setDefault(&o.DeletedLimit, 10_000)
	setDefault(&o.WatchBuffer, 8192)
	setDefault(&o.CacheBytes, 64<<20)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// watchBytes is what a watcher's buffer may hold on to.
const watchBytes = 64 << 20
