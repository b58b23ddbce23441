package etcd

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/record"
)

func TestKeysAreTakenApartAsTheyWereMade(t *testing.T) {
	l := layout{"/cm/live"} // which has a word of the layout in it
	for key, want := range map[string]struct {
		kind kind
		rest string
	}{
		l.object("configmaps/a/b"):          {isObject, "configmaps/a/b"},
		l.tombstone("configmaps/a/b"):       {isTombstone, "configmaps/a/b"},
		l.value("configmaps/a/b", "n"):      {isValue, "configmaps/a/b\x00n"},
		l.count("configmaps/a/"):            {isCount, "configmaps/a/"},
		l.count(""):                         {isCount, ""},
		l.object("/live/o/"):                {isObject, "/live/o/"},
		l.compacted():                       {isMeta, "compacted"},
		l.live() + "later/release":          {0, ""},
		l.live() + "x/what/a/later/one/has": {'x', "what/a/later/one/has"},
	} {
		if kind, rest := l.split(key); kind != want.kind || rest != want.rest {
			t.Errorf("%q is %c of %q, want %c of %q", key, kind, rest, want.kind, want.rest)
		}
	}
}

// version writes a value as a commit does, and returns what lies where.
func written(key store.Key, value string, head int) (row, rest []byte) {
	rec := store.Record{Key: key, Value: []byte(value), Brief: store.Brief{Keys: 1, Head: head}, UID: "u"}
	b, apart := record.Encode(&rec, apartAbove)
	row = append([]byte(newName()), b...)
	if apart != nil {
		rest = encodeRest(apart)
	}
	return row, rest
}

func noise(n int) string {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{})
	_, _ = r.Read(b) // which never fails
	return string(b)
}

func TestAValueComesBackAsItWasWritten(t *testing.T) {
	for name, value := range map[string]string{
		"none":                    "",
		"short":                   "x",
		"as long as fits":         strings.Repeat("x", apartAbove),
		"longer":                  strings.Repeat("x", apartAbove+1),
		"long, and not to shrink": noise(300_000),
		"very long":               strings.Repeat("abcdefgh", 1<<20),
	} {
		row, rest := written("k", value, len(value)/100)
		v, err := decodeVersion("k", 7, row)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if v.Apart != (len(value) > apartAbove) {
			t.Errorf("%s: apart is %t", name, v.Apart)
		}
		rec, err := v.complete(rest)
		if err != nil || string(rec.Value) != value || rec.Revision != 7 || v.name != string(row[:nameLength]) {
			t.Errorf("%s: %d bytes of version %d, %v", name, len(rec.Value), rec.Revision, err)
		}
		if len(rest) > len(value)+1 {
			t.Errorf("%s: %d bytes were made of %d", name, len(rest), len(value))
		}
	}
}

func TestHoweverLittleIsApartComesBack(t *testing.T) {
	value := strings.Repeat("xy", apartAbove)
	for rest := range 600 {
		row, lies := written("k", value, len(value)-rest)
		v, err := decodeVersion("k", 7, row)
		if err != nil {
			t.Fatal(err)
		}
		if rec, err := v.complete(lies); err != nil || string(rec.Value) != value {
			t.Fatalf("with %d bytes apart: %d bytes, %v", rest, len(rec.Value), err)
		}
	}
}

func TestDamageNamesTheKeyWhereverItIs(t *testing.T) {
	for _, value := range []string{"short", strings.Repeat("abc", 10_000), noise(10_000)} {
		row, rest := written("k", value, 2)
		for i := range len(row) + len(rest) {
			r, v := bytes.Clone(row), bytes.Clone(rest)
			if i < nameLength {
				continue // the name is no part of the record: it is looked up, or not found
			}
			if i < len(row) {
				r[i] ^= 0x20
			} else {
				v[i-len(row)] ^= 0x20
			}
			what, err := decodeVersion("k", 7, r)
			if err == nil {
				_, err = what.complete(v)
			}
			if damage := (*store.DamageError)(nil); !errors.As(err, &damage) || damage.Key != "k" || damage.Revision != 7 {
				t.Fatalf("byte %d of %d and %d was changed: %v", i, len(row), len(rest), err)
			}
		}
		for n := range nameLength + 2 {
			if _, err := decodeVersion("k", 7, row[:n]); !errors.Is(err, store.ErrDamaged) {
				t.Fatalf("cut after %d bytes: %v", n, err)
			}
		}
	}
}

func TestDamageDoesNotBecomeGigabytes(t *testing.T) {
	bomb := encodeRest(make([]byte, 64<<20))
	if rest, err := decodeRest("k", 7, bomb, 100); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("%d bytes came of it, %v", len(rest), err)
	}
}

func FuzzDecodeVersion(f *testing.F) {
	for _, value := range []string{"", "x", strings.Repeat("long", 2000)} {
		row, rest := written("k", value, 0)
		f.Add(row, rest)
	}
	f.Fuzz(func(t *testing.T, row, rest []byte) {
		v, err := decodeVersion("k", 7, row)
		if err == nil {
			_, err = v.complete(rest)
		}
		if damage := (*store.DamageError)(nil); err != nil && (!errors.As(err, &damage) || damage.Key != "k") {
			t.Errorf("%v is not damage that names the key", err)
		}
	})
}

// Whatever a watch tells, the changes have its revisions in order, and nothing panics.
func FuzzChanges(f *testing.F) {
	row, rest := written("k", strings.Repeat("long", 2000), 0)
	f.Add("o/k", row, "v/k\x00n", rest, false)
	f.Add("o/k", []byte{}, "t/k", row, true)
	f.Add("q/k", []byte{}, "meta/compacted", []byte("7"), false)
	f.Fuzz(func(t *testing.T, key1 string, value1 []byte, key2 string, value2 []byte, deleted bool) {
		s := &Store{keys: layout{"/p"}, opts: Options{}.withDefaults()}
		first := &clientv3.Event{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte("/p/live/" + key1), Value: value1, ModRevision: 8}}
		if deleted {
			first.Type, first.Kv.Value = clientv3.EventTypeDelete, nil
		}
		events := []*clientv3.Event{first,
			{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte("/p/live/" + key2), Value: value2, ModRevision: 8}},
			{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte("/p/live/q/k"), ModRevision: 9}},
		}
		changes, err := s.changesOf(events)
		if err != nil {
			if !errors.Is(err, store.ErrDamaged) {
				t.Errorf("%v is not damage", err)
			}
			return
		}
		for i, c := range changes {
			if c.rev != 8 && c.rev != 9 || i > 0 && c.rev < changes[i-1].rev {
				t.Errorf("change %d is at %d", i, c.rev)
			}
		}
		if changes[len(changes)-1].rev != 9 {
			t.Error("the last transaction is missing")
		}
	})
}
