package etcd

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/record"
)

// What lies where, below the prefix:
//
//	/live/o/KEY           the newest version of a live key
//	/live/t/KEY           the tombstone of a deleted one, until it is made anew or forgotten
//	/live/v/KEY\0NAME     what is too long of the value of the version NAME
//	/live/q/COLLECTION    nothing: each commit to the collection moves it along
//	/live/meta/format     the format, as JSON; what its own revision is worth is in it
//	/live/meta/compacted  the revision before which states were given up, decimal
//	/history/KEY\0NAME    each version that is kept, tombstones too: as in o or t
//	/void/NAME            this transaction is not to be made
//	/election/…           who cleans up
//
// What is in o, t and history is the name of the transaction that wrote it, and then a
// record (package record). All watches are of /live/.
type layout struct{ prefix string }

func (l layout) live() string                    { return l.prefix + "/live/" }
func (l layout) objects() string                 { return l.prefix + "/live/o/" }
func (l layout) tombstones() string              { return l.prefix + "/live/t/" }
func (l layout) collections() string             { return l.prefix + "/live/q/" }
func (l layout) format() string                  { return l.prefix + "/live/meta/format" }
func (l layout) compacted() string               { return l.prefix + "/live/meta/compacted" }
func (l layout) histories() string               { return l.prefix + "/history/" }
func (l layout) voids() string                   { return l.prefix + "/void/" }
func (l layout) election() string                { return l.prefix + "/election" }
func (l layout) object(k store.Key) string       { return l.objects() + string(k) }
func (l layout) tombstone(k store.Key) string    { return l.tombstones() + string(k) }
func (l layout) count(c store.Collection) string { return l.collections() + string(c) }
func (l layout) void(name string) string         { return l.voids() + name }
func (l layout) history(k store.Key) string      { return l.histories() + string(k) + "\x00" }
func (l layout) value(k store.Key, name string) string {
	return l.prefix + "/live/v/" + string(k) + "\x00" + name
}

// keyOf is the key of the object that lies in o.
func (l layout) keyOf(kv *mvccpb.KeyValue) store.Key {
	return store.Key(strings.TrimPrefix(string(kv.Key), l.objects()))
}

// kind is what a key below /live/ is about.
type kind byte

const (
	isObject    kind = 'o'
	isTombstone kind = 't'
	isValue     kind = 'v'
	isCount     kind = 'q'
	isMeta      kind = 'm'
)

// split takes a key below /live/ apart. The rest of a meta key is its name.
func (l layout) split(key string) (kind, string) {
	word, rest, _ := strings.Cut(strings.TrimPrefix(key, l.live()), "/")
	switch {
	case word == "meta":
		return isMeta, rest
	case len(word) == 1:
		return kind(word[0]), rest
	}
	return 0, ""
}

// nameLength is how long the name of a transaction is.
const nameLength = 24

func newName() string {
	var b [nameLength / 2]byte
	_, _ = rand.Read(b[:]) // which never fails
	return hex.EncodeToString(b[:])
}

// apartAbove is the length beyond which a value has a key of its own.
const apartAbove = 4096

// version is a record as it lies in etcd, and who wrote it.
type version struct {
	record.Head
	name string
}

// decodeVersion reads what lies in o, t and history.
func decodeVersion(key store.Key, rev store.Revision, data []byte) (version, error) {
	if len(data) < nameLength {
		return version{}, record.Damaged(key, rev, "cut short")
	}
	h, err := record.Decode(key, rev, data[nameLength:])
	return version{Head: h, name: string(data[:nameLength])}, err
}

// whole is the record of a version that has nothing apart.
func (v version) whole() (store.Record, error) { return v.complete(nil) }

// complete is the record of a version with what lies in v of its value, if that is apart.
func (v version) complete(lies []byte) (store.Record, error) {
	if v.Deleted {
		return v.Record, nil
	}
	var rest []byte
	if v.Apart {
		var err error
		if rest, err = decodeRest(v.Key, v.Revision, lies, v.Size-len(v.Here)); err != nil {
			return store.Record{}, err
		}
	}
	return v.With(append(make([]byte, 0, v.Size), v.Here...), rest)
}

// What comes first in a value that is apart: how the rest is written.
const (
	plain      = 0
	compressed = 1
)

// coder compresses long values: etcd takes 1.5 MiB at a time by default, and a ConfigMap
// of Kubernetes may be longer as JSON.
var coder = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
	// None of the options can be wrong.
	w, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2))
	r, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecodeAllCapLimit(true))
	return w, r
})

func encodeRest(rest []byte) []byte {
	w, _ := coder()
	if small := w.EncodeAll(rest, []byte{compressed}); len(small) <= len(rest) {
		return small
	}
	return append([]byte{plain}, rest...)
}

// decodeRest reads what encodeRest wrote. The length that it must have is known, and keeps
// what is damaged from becoming gigabytes.
func decodeRest(key store.Key, rev store.Revision, data []byte, length int) ([]byte, error) {
	switch {
	case len(data) > 0 && data[0] == plain:
		return data[1:], nil
	case len(data) > 0 && data[0] == compressed:
		_, r := coder()
		if rest, err := r.DecodeAll(data[1:], make([]byte, 0, length)); err == nil {
			return rest, nil
		}
	}
	return nil, record.Damaged(key, rev, "its value is not what was written")
}
