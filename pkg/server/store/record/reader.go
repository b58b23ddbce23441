package record

import (
	"encoding/binary"
	"unique"
)

// AppendString appends a text with its length.
func AppendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Reader takes fields off Data. After the first that does not fit it is Bad, and
// everything it returns is zero.
type Reader struct {
	Data []byte
	Bad  bool
}

// Uvarint takes a number off.
func (d *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(d.Data)
	if d.Bad = d.Bad || n <= 0; d.Bad {
		return 0
	}
	d.Data = d.Data[n:]
	return v
}

// Varint takes a number with a sign off.
func (d *Reader) Varint() int64 {
	v, n := binary.Varint(d.Data)
	if d.Bad = d.Bad || n <= 0; d.Bad {
		return 0
	}
	d.Data = d.Data[n:]
	return v
}

// Bytes takes bytes with their length off. They are part of Data.
func (d *Reader) Bytes() []byte { return d.take(d.Uvarint()) }

func (d *Reader) u32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *Reader) take(n uint64) []byte {
	if d.Bad = d.Bad || n > uint64(len(d.Data)); d.Bad {
		return nil
	}
	b := d.Data[:n]
	d.Data = d.Data[n:]
	return b
}

// shared is a string of which many records have the same: one copy is kept.
func (d *Reader) shared() string { return unique.Make(string(d.Bytes())).Value() }

func (d *Reader) labels() map[string]string {
	n := d.Uvarint()
	if n > uint64(len(d.Data)) {
		d.Bad = true
	}
	if d.Bad || n == 0 {
		return nil
	}
	labels := make(map[string]string, n)
	for i := uint64(0); i < n && !d.Bad; i++ {
		name := string(d.Bytes())
		labels[name] = string(d.Bytes())
	}
	return labels
}
