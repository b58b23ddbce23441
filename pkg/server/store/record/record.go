// Package record is how stores write a version of a key down: its bytes, with a checksum
// over all of them.
package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"

	"example.com/cmctl/pkg/server/store"
)

// A record's row:
//
//	byte      1: the encoding of this record
//	byte      flags: 1 deleted, 2 a time follows, 4 the value has a row of its
//	          own, 8 a brief follows; other bits must be 0
//	varint    milliseconds since 1970, UTC (only with flag 2)
//	str       verb
//	str       manager
//	str       user
//	str       write id
//	str       uid
//	uvarint   number of labels, then name and value of each as str, names ascending
//	uvarint   offset in the value at which resourceVersion goes (not if deleted)
//	uvarint   length of the value (not if deleted)
//	varint    when the object was made, in seconds since 1970, UTC (only with flag 8)
//	uvarint   its number of keys (only with flag 8)
//	uvarint   length of the head (only with flag 8)
//	bytes     the value (not if deleted); with flag 4 its head alone, if it has one
//	u32       CRC-32C of the rest of the value, big endian (only with flag 4)
//	u32       CRC-32C over the key and everything before, big endian
//
// A long value is elsewhere so that a history, a compaction and a start, which
// need none, read none. Its length and checksum are under the record's own. Its
// head stays here, for lists that show no more.
//
// The revision is not in the record: callers encode it before the commit that
// gives it one.
const (
	encoding = 1

	flagDeleted = 1 << 0
	flagTime    = 1 << 1
	flagApart   = 1 << 2
	flagBrief   = 1 << 3 // since format 2
	flagsKnown  = flagDeleted | flagTime | flagApart | flagBrief
)

// Castagnoli is the polynomial of the checksums.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode is the record's row. Unless the value is longer than apartAbove it is part of
// it; else what follows its head is to be kept elsewhere as it is, and is returned as
// apart.
func Encode(r *store.Record, apartAbove int) (row, apart []byte) {
	here := r.Value
	if len(r.Value) > apartAbove {
		here, apart = r.Value[:r.Brief.Head], r.Value[r.Brief.Head:]
	}
	size := 96 + len(here) + len(r.Verb) + len(r.Manager) + len(r.User) + len(r.WriteID) + len(r.UID)
	for name, value := range r.Labels {
		size += len(name) + len(value) + 4
	}
	var flags byte
	if r.Deleted {
		flags |= flagDeleted
	}
	if !r.Time.IsZero() {
		flags |= flagTime
	}
	if apart != nil {
		flags |= flagApart
	}
	if !r.Brief.IsZero() {
		flags |= flagBrief
	}
	b := append(make([]byte, 0, size), encoding, flags)
	if flags&flagTime != 0 {
		b = binary.AppendVarint(b, r.Time.UnixMilli())
	}
	for _, s := range []string{r.Verb, r.Manager, r.User, r.WriteID, r.UID} {
		b = AppendString(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Labels)))
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		b = AppendString(b, name)
		b = AppendString(b, r.Labels[name])
	}
	if !r.Deleted {
		b = binary.AppendUvarint(b, uint64(r.VersionAt))
		b = binary.AppendUvarint(b, uint64(len(r.Value)))
		if flags&flagBrief != 0 {
			b = binary.AppendVarint(b, r.Brief.Created.Unix())
			b = binary.AppendUvarint(b, uint64(r.Brief.Keys))
			b = binary.AppendUvarint(b, uint64(r.Brief.Head))
		}
		b = append(b, here...)
		if apart != nil {
			b = binary.BigEndian.AppendUint32(b, crc32.Checksum(apart, Castagnoli))
		}
	}
	return binary.BigEndian.AppendUint32(b, sum(r.Key, b)), apart
}

func sum(key store.Key, body []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(key), Castagnoli), Castagnoli, body)
}

// Head is what a record's row tells without another row being read.
type Head struct {
	store.Record        // Value is nil; shares no memory with the row
	Size         int    // of the value, in bytes
	Here         []byte // the value, or its head if the rest is apart: part of the row's memory
	Apart        bool
	sum          uint32 // of the rest
}

// Decode reads what Encode wrote. All of the row is checked; the error is a
// *store.DamageError.
func Decode(key store.Key, rev store.Revision, data []byte) (Head, error) {
	damaged := func(what string) (Head, error) { return Head{}, Damaged(key, rev, what) }
	if len(data) < 6 {
		return damaged("cut short")
	}
	body, want := data[:len(data)-4], binary.BigEndian.Uint32(data[len(data)-4:])
	if sum(key, body) != want {
		return damaged("checksum does not match")
	}
	if body[0] != encoding {
		return damaged(fmt.Sprintf("unknown encoding %d", body[0]))
	}
	flags := body[1]
	if flags&^flagsKnown != 0 || flags&flagDeleted != 0 && flags&(flagApart|flagBrief) != 0 {
		return damaged(fmt.Sprintf("unknown flags %#x", flags))
	}
	h := Head{Record: store.Record{Key: key, Revision: rev, Deleted: flags&flagDeleted != 0}, Apart: flags&flagApart != 0}
	d := Reader{Data: body[2:]}
	if flags&flagTime != 0 {
		h.Time = time.UnixMilli(d.Varint()).UTC()
	}
	h.Verb, h.Manager, h.User = d.shared(), d.shared(), d.shared()
	h.WriteID, h.UID = string(d.Bytes()), string(d.Bytes())
	h.Labels = d.labels()
	if !h.Deleted {
		h.decodeValue(&d, flags&flagBrief != 0)
	}
	if d.Bad || len(d.Data) != 0 {
		return damaged("fields do not add up")
	}
	return h, nil
}

func (h *Head) decodeValue(d *Reader, brief bool) {
	at, size := d.Uvarint(), d.Uvarint()
	if at > size || size > MaxValue {
		d.Bad = true
	}
	h.VersionAt, h.Size = int(at), int(size)
	if brief {
		h.decodeBrief(d)
	}
	if h.Apart {
		h.Here, h.sum = d.take(uint64(h.Brief.Head)), d.u32()
	} else {
		h.Here = d.take(size)
	}
}

func (h *Head) decodeBrief(d *Reader) {
	created, keys, length := d.Varint(), d.Uvarint(), d.Uvarint()
	if keys > MaxValue || length > uint64(h.Size) {
		d.Bad = true
	}
	h.Brief = store.Brief{Created: time.Unix(created, 0).UTC(), Keys: int(keys), Head: int(length)}
	if h.Brief.IsZero() {
		d.Bad = true // then there is no flag
	}
}

// MaxValue is far beyond any value, and keeps a length within an int.
const MaxValue = 1<<31 - 1

// With is the whole record. value begins with what the row has of it, and is the
// record's from now on; rest is what is apart, which is checked and copied.
func (h *Head) With(value, rest []byte) (store.Record, error) {
	if len(value)+len(rest) != h.Size || h.Apart && crc32.Checksum(rest, Castagnoli) != h.sum {
		return store.Record{}, Damaged(h.Key, h.Revision, "its value is not what was written")
	}
	rec := h.Record
	rec.Value = append(value, rest...)
	return rec, nil
}

// HeadOf is the head of a whole record.
func HeadOf(rec store.Record) Head {
	h := Head{Record: rec, Size: len(rec.Value), Here: rec.Value}
	h.Value = nil
	return h
}

// Alone is the record with no more of its value than a copy of the head, and
// without that if it is longer.
func (h Head) Alone(longest int) store.Record {
	rec := h.Record
	if n := h.Brief.Head; 0 < n && n <= longest {
		rec.Value = bytes.Clone(h.Here[:n])
	}
	return rec
}

// Damaged is that a version is not what was written.
func Damaged(key store.Key, rev store.Revision, what string) error {
	return &store.DamageError{Key: key, Revision: rev, What: what}
}
