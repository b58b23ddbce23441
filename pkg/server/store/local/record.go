package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

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
	recordEncoding = 1

	flagDeleted = 1 << 0
	flagTime    = 1 << 1
	flagApart   = 1 << 2
	flagBrief   = 1 << 3 // since format 2
	flagsKnown  = flagDeleted | flagTime | flagApart | flagBrief

	// defaultApartAbove is the length beyond which a value gets its own row.
	// Below, a second row would cost more than reading past the value.
	defaultApartAbove = 4096
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeRecord is the record's row. Unless the value is longer than apartAbove it
// is part of it; else what follows its head goes into the row valueKey as it is,
// and is returned as apart.
func encodeRecord(r *store.Record, apartAbove int) (row, apart []byte) {
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
	b := append(make([]byte, 0, size), recordEncoding, flags)
	if flags&flagTime != 0 {
		b = binary.AppendVarint(b, r.Time.UnixMilli())
	}
	for _, s := range []string{r.Verb, r.Manager, r.User, r.WriteID, r.UID} {
		b = appendString(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Labels)))
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		b = appendString(b, name)
		b = appendString(b, r.Labels[name])
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
			b = binary.BigEndian.AppendUint32(b, crc32.Checksum(apart, castagnoli))
		}
	}
	return binary.BigEndian.AppendUint32(b, recordSum(r.Key, b)), apart
}

func recordSum(key store.Key, body []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(key), castagnoli), castagnoli, body)
}

// head is what a record's row tells without another row being read.
type head struct {
	store.Record        // Value is nil; shares no memory with the row
	size         int    // of the value
	here         []byte // the value, or its head if the rest is apart: part of the row's memory
	apart        bool
	sum          uint32 // of the rest
}

// decodeHead reads what encodeRecord wrote. All of the row is checked.
func decodeHead(key store.Key, rev store.Revision, data []byte) (head, error) {
	damaged := func(what string) (head, error) { return head{}, damagedRecord(key, rev, what) }
	if len(data) < 6 {
		return damaged("cut short")
	}
	body, sum := data[:len(data)-4], binary.BigEndian.Uint32(data[len(data)-4:])
	if recordSum(key, body) != sum {
		return damaged("checksum does not match")
	}
	if body[0] != recordEncoding {
		return damaged(fmt.Sprintf("unknown encoding %d", body[0]))
	}
	flags := body[1]
	if flags&^flagsKnown != 0 || flags&flagDeleted != 0 && flags&(flagApart|flagBrief) != 0 {
		return damaged(fmt.Sprintf("unknown flags %#x", flags))
	}
	h := head{Record: store.Record{Key: key, Revision: rev, Deleted: flags&flagDeleted != 0}, apart: flags&flagApart != 0}
	d := decoder{data: body[2:]}
	if flags&flagTime != 0 {
		h.Time = time.UnixMilli(d.varint()).UTC()
	}
	h.Verb, h.Manager, h.User = d.shared(), d.shared(), d.shared()
	h.WriteID, h.UID = string(d.bytes()), string(d.bytes())
	h.Labels = d.labels()
	if !h.Deleted {
		h.decodeValue(&d, flags&flagBrief != 0)
	}
	if d.bad || len(d.data) != 0 {
		return damaged("fields do not add up")
	}
	return h, nil
}

func (h *head) decodeValue(d *decoder, brief bool) {
	at, size := d.uvarint(), d.uvarint()
	if at > size || size > maxValue {
		d.bad = true
	}
	h.VersionAt, h.size = int(at), int(size)
	if brief {
		h.decodeBrief(d)
	}
	if h.apart {
		h.here, h.sum = d.take(uint64(h.Brief.Head)), d.u32()
	} else {
		h.here = d.take(size)
	}
}

func (h *head) decodeBrief(d *decoder) {
	created, keys, length := d.varint(), d.uvarint(), d.uvarint()
	if keys > maxValue || length > uint64(h.size) {
		d.bad = true
	}
	h.Brief = store.Brief{Created: time.Unix(created, 0).UTC(), Keys: int(keys), Head: int(length)}
	if h.Brief.IsZero() {
		d.bad = true // then there is no flag
	}
}

// maxValue is far beyond any value, and keeps a length within an int.
const maxValue = 1<<31 - 1

// with is the whole record. value begins with what the row has of it, and is the
// record's from now on; rest is what is apart, which is checked and copied.
func (h *head) with(value, rest []byte) (store.Record, error) {
	if len(value)+len(rest) != h.size || h.apart && crc32.Checksum(rest, castagnoli) != h.sum {
		return store.Record{}, damagedRecord(h.Key, h.Revision, "its value is not what was written")
	}
	rec := h.Record
	rec.Value = append(value, rest...)
	return rec, nil
}

// headOf is the head of a whole record.
func headOf(rec store.Record) head {
	h := head{Record: rec, size: len(rec.Value), here: rec.Value}
	h.Value = nil
	return h
}

// alone is the record with no more of its value than a copy of the head, and
// without that if it is longer.
func (h head) alone(longest int) store.Record {
	rec := h.Record
	if n := h.Brief.Head; 0 < n && n <= longest {
		rec.Value = bytes.Clone(h.here[:n])
	}
	return rec
}

// part is the record of a head that was read from r, with as much of its value as
// is needed.
func part(r reader, h head, p store.Part) (store.Record, error) {
	switch {
	case !p.Suffices(h.Brief):
		return complete(r, h)
	case p == store.BriefAlone:
		return h.Record, nil
	}
	return h.alone(h.size), nil
}

// complete is the whole record of a head that was read from r.
func complete(r reader, h head) (store.Record, error) {
	if h.Deleted {
		return h.Record, nil
	}
	value := append(make([]byte, 0, h.size), h.here...) // before r reads on, and the row is gone
	if !h.apart {
		return h.with(value, nil)
	}
	rest, closer, err := r.Get(valueKey(h.Key, h.Revision))
	if errors.Is(err, pebble.ErrNotFound) {
		err = fmt.Errorf("%w, %w", damagedRecord(h.Key, h.Revision, "its value is gone"), err)
	}
	if err != nil {
		if errors.Is(err, pebble.ErrNotFound) {
			return store.Record{}, err // as in readVersion
		}
		return store.Record{}, ofVersion(h.Key, h.Revision, err)
	}
	defer closer.Close()
	return h.with(value, rest)
}

func damagedRecord(key store.Key, rev store.Revision, what string) error {
	return &store.DamageError{Key: key, Revision: rev, What: what}
}

// readVersion is the record of the version rev, which is there.
func readVersion(r reader, key store.Key, rev store.Revision, p store.Part) (store.Record, error) {
	row, closer, err := r.Get(recordKey(key, rev))
	if err != nil {
		if errors.Is(err, pebble.ErrNotFound) {
			return store.Record{}, err // which its caller may know the reason of
		}
		return store.Record{}, ofVersion(key, rev, err)
	}
	defer closer.Close()
	h, err := decodeHead(key, rev, row)
	if err != nil {
		return store.Record{}, err
	}
	return part(r, h, p)
}

// headAt decodes the record that it stands on. What it returns is good until it
// moves.
func headAt(it *pebble.Iterator) (head, error) {
	key, rev, err := splitRecordKey(it.Key())
	if err != nil {
		return head{}, err
	}
	row, err := it.ValueAndErr()
	if err != nil {
		return head{}, ofVersion(key, rev, err)
	}
	return decodeHead(key, rev, row)
}

// recordAt is the whole record that it stands on, whose value r has.
func recordAt(r reader, it *pebble.Iterator) (store.Record, error) {
	h, err := headAt(it)
	if err != nil {
		return store.Record{}, err
	}
	return complete(r, h)
}
