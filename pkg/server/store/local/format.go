package local

import (
	"encoding/binary"
	"fmt"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/record"
)

// The on-disk format, version 2. All of it lives in one Pebble database whose
// keys begin with a byte that says what the row is. uvarint and varint are
// those of encoding/binary; u64 is eight bytes, big endian; str is a uvarint
// length and so many bytes.
//
//	'm' "format"           u64: the format version, 2
//	'm' "current"          u64: the revision of the newest commit
//	'm' "compacted"        u64: states before it are given up
//	'm' "lost"             for each restore that made this store: u64(first), u64(last)
//	                       of the revisions that it skipped; missing if there was none
//	'r' key 0x00 u64(^rev) a record, see record.go; 0x00 is never part of a key, and
//	                       the inverted revision puts the newest version first
//	'd' key 0x00 u64(^rev) the value of that record, if it is a long one, but for the
//	                       head that is in the record: nothing but its bytes
//	'v' u64(rev)           the keys that the commit rev wrote: a uvarint count,
//	                       then a str each, in the order of the Txn
//
// Every commit writes its records with their values, its 'v' row and "current" in
// one atomic Pebble batch. Compaction first writes "compacted" and then removes
// 'v' rows up to it, each together with the records and values that it gives up;
// 'v' rows at or below "compacted" are therefore the work that an interrupted
// compaction left to do.
//
// Version 1 had no briefs in its records, and so no heads. Otherwise it is the same:
// its rows are read as they are, and opening a store of it makes it one of version 2.
const (
	formatVersion = 2

	rowMeta     = 'm'
	rowRecord   = 'r'
	rowValue    = 'd'
	rowRevision = 'v'
)

var (
	metaFormat    = []byte("mformat")
	metaCurrent   = []byte("mcurrent")
	metaCompacted = []byte("mcompacted")
	metaLost      = []byte("mlost")
)

// recordKey is where the version rev of key is kept.
func recordKey(key store.Key, rev store.Revision) []byte { return versionKey(rowRecord, key, rev) }

// valueKey is where the value of that version is, if it has a row of its own.
func valueKey(key store.Key, rev store.Revision) []byte { return versionKey(rowValue, key, rev) }

func versionKey(row byte, key store.Key, rev store.Revision) []byte {
	b := make([]byte, 0, len(key)+10)
	b = append(b, row)
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
func recordsEnd(key store.Key) []byte { return versionsEnd(rowRecord, key) }

func valuesEnd(key store.Key) []byte { return versionsEnd(rowValue, key) }

func versionsEnd(row byte, key store.Key) []byte {
	return append(append([]byte{row}, key...), 1)
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
		b = record.AppendString(b, string(writes[i].rec.Key))
	}
	return b
}

func decodeRevisionKeys(rev store.Revision, data []byte) ([]store.Key, error) {
	d := record.Reader{Data: data}
	n := d.Uvarint()
	if n > uint64(len(data)) {
		d.Bad = true
	}
	var keys []store.Key
	for i := uint64(0); i < n && !d.Bad; i++ {
		keys = append(keys, store.Key(d.Bytes()))
	}
	if d.Bad || len(d.Data) != 0 || n == 0 {
		return nil, fmt.Errorf("%w: keys of revision %d", store.ErrDamaged, rev)
	}
	return keys, nil
}

func encodeU64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

func decodeU64(what, b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("%w: %s is %d bytes long", store.ErrDamaged, what, len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}
