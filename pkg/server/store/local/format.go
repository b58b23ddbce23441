package local

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"
	"unique"

	"example.com/cmctl/pkg/server/store"
)

// The on-disk format, version 1. All of it lives in one Pebble database whose
// keys begin with a byte that says what the row is. uvarint and varint are
// those of encoding/binary; u64 is eight bytes, big endian; str is a uvarint
// length and so many bytes.
//
//	'm' "format"           u64: the format version, 1
//	'm' "current"          u64: the revision of the newest commit
//	'm' "compacted"        u64: states before it are given up
//	'r' key 0x00 u64(^rev) a record, see below; 0x00 is never part of a key, and
//	                       the inverted revision puts the newest version first
//	'v' u64(rev)           the keys that the commit rev wrote: a uvarint count,
//	                       then a str each, in the order of the Txn
//
// A record:
//
//	byte      1: the encoding of this record
//	byte      flags: 1 deleted, 2 a time follows; other bits must be 0
//	varint    milliseconds since 1970, UTC (only with flag 2)
//	str       verb
//	str       manager
//	str       user
//	str       write id
//	uvarint   number of labels, then name and value of each as str, names ascending
//	uvarint   offset in the value at which resourceVersion goes (not if deleted)
//	str       the value (not if deleted)
//	u32       CRC-32C over the key and everything before, big endian
//
// The revision is not in the record: callers encode it before the commit that
// gives it one. Every commit writes its records, its 'v' row and "current" in
// one atomic Pebble batch. Compaction first writes "compacted" and then removes
// 'v' rows up to it, each together with the records that it gives up; 'v' rows
// at or below "compacted" are therefore the work that an interrupted compaction
// left to do.
const (
	formatVersion  = 1
	recordEncoding = 1

	flagDeleted = 1 << 0
	flagTime    = 1 << 1
	flagsKnown  = flagDeleted | flagTime

	rowMeta     = 'm'
	rowRecord   = 'r'
	rowRevision = 'v'
)

var (
	metaFormat    = []byte("mformat")
	metaCurrent   = []byte("mcurrent")
	metaCompacted = []byte("mcompacted")

	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// recordKey is where the version rev of key is kept.
func recordKey(key store.Key, rev store.Revision) []byte {
	b := make([]byte, 0, len(key)+10)
	b = append(b, rowRecord)
	b = append(b, key...)
	b = append(b, 0)
	return binary.BigEndian.AppendUint64(b, ^uint64(rev))
}

// recordsFrom is the first place at which a record of key, or of a key that
// sorts after it, can be.
func recordsFrom(key store.Key) []byte {
	return append([]byte{rowRecord}, key...)
}

// recordsEnd is the place after the last version of key.
func recordsEnd(key store.Key) []byte {
	return append(recordsFrom(key), 1)
}

// splitRecordKey takes apart what recordKey made.
func splitRecordKey(b []byte) (store.Key, store.Revision, error) {
	n := len(b) - 9
	if n < 1 || b[0] != rowRecord || b[n] != 0 {
		return "", 0, fmt.Errorf("%w: record key %q", store.ErrDamaged, b)
	}
	rev := ^binary.BigEndian.Uint64(b[n+1:])
	if rev == 0 || rev > maxRevision {
		return "", 0, fmt.Errorf("%w: record key %q has revision %d", store.ErrDamaged, b, rev)
	}
	return store.Key(b[1:n]), store.Revision(rev), nil
}

const maxRevision = 1<<63 - 2

// revisionKey is where the keys that the commit rev wrote are kept.
func revisionKey(rev store.Revision) []byte {
	return binary.BigEndian.AppendUint64([]byte{rowRevision}, uint64(rev))
}

func splitRevisionKey(b []byte) (store.Revision, error) {
	if len(b) != 9 || b[0] != rowRevision {
		return 0, fmt.Errorf("%w: revision key %q", store.ErrDamaged, b)
	}
	return store.Revision(binary.BigEndian.Uint64(b[1:])), nil
}

func appendRevisionKeys(b []byte, writes []prepared) []byte {
	b = binary.AppendUvarint(b, uint64(len(writes)))
	for i := range writes {
		b = appendString(b, string(writes[i].rec.Key))
	}
	return b
}

func decodeRevisionKeys(rev store.Revision, data []byte) ([]store.Key, error) {
	d := decoder{data: data}
	n := d.uvarint()
	if n > uint64(len(data)) {
		d.bad = true
	}
	var keys []store.Key
	for i := uint64(0); i < n && !d.bad; i++ {
		keys = append(keys, store.Key(d.bytes()))
	}
	if d.bad || len(d.data) != 0 || n == 0 {
		return nil, fmt.Errorf("%w: keys of revision %d", store.ErrDamaged, rev)
	}
	return keys, nil
}

// encodeRecord is the record's row. Its revision is not part of it.
func encodeRecord(r *store.Record) []byte {
	size := 64 + len(r.Value) + len(r.Verb) + len(r.Manager) + len(r.User) + len(r.WriteID)
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
	b := append(make([]byte, 0, size), recordEncoding, flags)
	if flags&flagTime != 0 {
		b = binary.AppendVarint(b, r.Time.UnixMilli())
	}
	for _, s := range []string{r.Verb, r.Manager, r.User, r.WriteID} {
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
		b = append(b, r.Value...)
	}
	return binary.BigEndian.AppendUint32(b, recordSum(r.Key, b))
}

func recordSum(key store.Key, body []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(key), castagnoli), castagnoli, body)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decodeRecord reads what encodeRecord wrote; nothing in the result shares
// memory with data. A value longer than keep is checked but left out, and its
// Value is nil then; keep < 0 keeps all.
func decodeRecord(key store.Key, rev store.Revision, data []byte, keep int) (store.Record, error) {
	damaged := func(what string) (store.Record, error) {
		return store.Record{}, fmt.Errorf("%w: %s at revision %d: %s", store.ErrDamaged, key, rev, what)
	}
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
	if body[1]&^flagsKnown != 0 {
		return damaged(fmt.Sprintf("unknown flags %#x", body[1]))
	}
	r := store.Record{Key: key, Revision: rev, Deleted: body[1]&flagDeleted != 0}
	d := decoder{data: body[2:]}
	if body[1]&flagTime != 0 {
		r.Time = time.UnixMilli(d.varint()).UTC()
	}
	r.Verb, r.Manager, r.User = d.shared(), d.shared(), d.shared()
	r.WriteID = string(d.bytes())
	r.Labels = d.labels()
	if !r.Deleted {
		at := d.uvarint()
		value := d.bytes()
		if at > uint64(len(value)) {
			return damaged("offset outside the value")
		}
		r.VersionAt = int(at)
		if keep < 0 || len(value) <= keep {
			r.Value = append(make([]byte, 0, len(value)), value...)
		}
	}
	if d.bad || len(d.data) != 0 {
		return damaged("fields do not add up")
	}
	return r, nil
}

// decoder takes fields off data. After the first that does not fit it is bad,
// and everything it returns is zero.
type decoder struct {
	data []byte
	bad  bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.data)
	if d.bad = d.bad || n <= 0; d.bad {
		return 0
	}
	d.data = d.data[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.data)
	if d.bad = d.bad || n <= 0; d.bad {
		return 0
	}
	d.data = d.data[n:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if d.bad = d.bad || n > uint64(len(d.data)); d.bad {
		return nil
	}
	b := d.data[:n]
	d.data = d.data[n:]
	return b
}

// shared is a string of which many records have the same: one copy is kept.
func (d *decoder) shared() string { return unique.Make(string(d.bytes())).Value() }

func (d *decoder) labels() map[string]string {
	n := d.uvarint()
	if n > uint64(len(d.data)) {
		d.bad = true
	}
	if d.bad || n == 0 {
		return nil
	}
	labels := make(map[string]string, n)
	for i := uint64(0); i < n && !d.bad; i++ {
		name := string(d.bytes())
		labels[name] = string(d.bytes())
	}
	return labels
}

func encodeU64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

func decodeU64(what, b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("%w: %s is %d bytes long", store.ErrDamaged, what, len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}
