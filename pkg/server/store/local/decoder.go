package local

import (
	"encoding/binary"
	"unique"
)

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
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

func (d *decoder) bytes() []byte { return d.take(d.uvarint()) }

func (d *decoder) u32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) take(n uint64) []byte {
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
