package local

import (
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
//	          own; other bits must be 0
//	varint    milliseconds since 1970, UTC (only with flag 2)
//	str       verb
//	str       manager
//	str       user
//	str       write id
//	str       uid
//	uvarint   number of labels, then name and value of each as str, names ascending
//	uvarint   offset in the value at which resourceVersion goes (not if deleted)
//	uvarint   length of the value (not if deleted)
//	bytes     the value (not if deleted, nor with flag 4)
//	u32       CRC-32C of the value, big endian (only with flag 4)
//	u32       CRC-32C over the key and everything before, big endian
//
// A long value is elsewhere so that a history, a compaction and a start, which
// need none, read none. Its length and checksum are under the record's own.
//
// The revision is not in the record: callers encode it before the commit that
// gives it one.
const (
	recordEncoding = 1

	flagDeleted = 1 << 0
	flagTime    = 1 << 1
	flagApart   = 1 << 2
	flagsKnown  = flagDeleted | flagTime | flagApart

	// defaultApartAbove is the length beyond which a value gets its own row.
	// Below, a second row would cost more than reading past the value.
	defaultApartAbove = 4096
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeRecord is the record's row. Unless the value is longer than apartAbove it
// is part of it; else apart is true, and it goes into the row valueKey as it is.
func encodeRecord(r *store.Record, apartAbove int) (row []byte, apart bool) {
	apart = len(r.Value) > apartAbove
	size := 64 + len(r.Verb) + len(r.Manager) + len(r.User) + len(r.WriteID) + len(r.UID)
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
	if apart {
		flags |= flagApart
	} else {
		size += len(r.Value)
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
		if apart {
			b = binary.BigEndian.AppendUint32(b, crc32.Checksum(r.Value, castagnoli))
		} else {
			b = append(b, r.Value...)
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
	inline       []byte // the value, if it is in the row: part of the row's memory
	apart        bool   // it is not
	sum          uint32 // of a value that is apart
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
	if flags&^flagsKnown != 0 || flags&flagDeleted != 0 && flags&flagApart != 0 {
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
		h.decodeValue(&d)
	}
	if d.bad || len(d.data) != 0 {
		return damaged("fields do not add up")
	}
	return h, nil
}

func (h *head) decodeValue(d *decoder) {
	at, size := d.uvarint(), d.uvarint()
	if at > size || size > maxValue {
		d.bad = true
	}
	h.VersionAt, h.size = int(at), int(size)
	if h.apart {
		h.sum = d.u32()
	} else {
		h.inline = d.take(size)
	}
}

// maxValue is far beyond any value, and keeps a length within an int.
const maxValue = 1<<31 - 1

// with is the whole record: value is checked and copied.
func (h *head) with(value []byte) (store.Record, error) {
	if h.Deleted {
		return h.Record, nil
	}
	if len(value) != h.size || h.apart && crc32.Checksum(value, castagnoli) != h.sum {
		return store.Record{}, damagedRecord(h.Key, h.Revision, "its value is not what was written")
	}
	rec := h.Record
	rec.Value = append(make([]byte, 0, len(value)), value...)
	return rec, nil
}

// complete is the whole record of a head that was read from r.
func complete(r reader, h head) (store.Record, error) {
	if !h.apart {
		return h.with(h.inline)
	}
	value, closer, err := r.Get(valueKey(h.Key, h.Revision))
	if errors.Is(err, pebble.ErrNotFound) {
		err = fmt.Errorf("%w, %w", damagedRecord(h.Key, h.Revision, "its value is gone"), err)
	}
	if err != nil {
		return store.Record{}, err
	}
	defer closer.Close()
	return h.with(value)
}

func damagedRecord(key store.Key, rev store.Revision, what string) error {
	return fmt.Errorf("%w: %s at revision %d: %s", store.ErrDamaged, key, rev, what)
}

// readVersion is the whole record of the version rev, which is there.
func readVersion(r reader, key store.Key, rev store.Revision) (store.Record, error) {
	row, closer, err := r.Get(recordKey(key, rev))
	if err != nil {
		return store.Record{}, fmt.Errorf("read %s at revision %d: %w", key, rev, err)
	}
	defer closer.Close()
	h, err := decodeHead(key, rev, row)
	if err != nil {
		return store.Record{}, err
	}
	return complete(r, h)
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
		return head{}, fmt.Errorf("read %s at revision %d: %w", key, rev, err)
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
