package storetest

import (
	"bytes"
	"strings"
	"time"

	"example.com/cmctl/pkg/server/store"
)

// Samples are records of every kind, without a revision, as a store gives them back.
func Samples() []store.Record {
	return []store.Record{
		{Key: "a", Value: []byte{}},
		{Key: "a", Deleted: true},
		{Key: "configmaps/a/b", UID: "u-1", Value: []byte(`{"metadata":{}}`), VersionAt: 13, Labels: map[string]string{"x": "y", "": "", "a": "b"},
			Meta: store.Meta{Verb: "update", Manager: "m", User: "u", WriteID: "w", Time: time.UnixMilli(-5).UTC()}},
		{Key: "gone", Deleted: true, UID: "u-1", Meta: store.Meta{Verb: "delete", Time: time.UnixMilli(1 << 42).UTC()}},
		{Key: "big", Value: bytes.Repeat([]byte("x"), 70_000), VersionAt: 70_000},
		{Key: "brief", Value: []byte(strings.Repeat("head", 10) + strings.Repeat("contents", 1000)), VersionAt: 4,
			Brief: store.Brief{Created: time.Unix(1<<31, 0).UTC(), Keys: 300, Head: 40}},
		{Key: "nothing but a head", Value: []byte("head"), Brief: store.Brief{Head: 4}},
		{Key: "no head", Value: []byte("contents"), Brief: store.Brief{Created: time.Unix(-1, 0).UTC()}},
	}
}
