package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
)

// Writer writes an archive. It is for one goroutine. After an error every call
// returns that error.
type Writer struct {
	w       io.Writer
	whole   hash.Hash // of all that was written
	block   []byte    // entries that wait
	blocks  uint64
	entries uint64
	err     error
}

// NewWriter begins an archive with a header, whose bytes are the caller's.
func NewWriter(w io.Writer, header []byte) (*Writer, error) {
	a := &Writer{w: w, whole: sha256.New()}
	a.write([]byte(magic))
	a.writeBlock(kindHeader, header)
	return a, a.err
}

// Add appends an entry, and keeps none of its memory.
func (a *Writer) Add(entry []byte) error {
	if len(entry) > maxBlock/2 {
		return fmt.Errorf("an entry of %d bytes is too long for a backup", len(entry))
	}
	a.block = binary.AppendUvarint(a.block, uint64(len(entry)))
	a.block = append(a.block, entry...)
	a.entries++
	if len(a.block) >= blockSize {
		a.flush()
	}
	return a.err
}

// Close writes what waits, and the end.
func (a *Writer) Close() error {
	a.flush()
	end := binary.BigEndian.AppendUint64(nil, a.entries)
	a.writeBlock(kindEnd, a.whole.Sum(end))
	return a.err
}

func (a *Writer) flush() {
	if len(a.block) > 0 {
		a.writeBlock(kindEntries, a.block)
		a.block = a.block[:0]
	}
}

func (a *Writer) writeBlock(kind byte, content []byte) {
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(content)))
	sum := blockSum(a.blocks, head, content)
	a.blocks++
	a.write(head)
	a.write(content)
	a.write(binary.BigEndian.AppendUint32(nil, sum))
}

func (a *Writer) write(b []byte) {
	if a.err != nil {
		return
	}
	if _, a.err = a.w.Write(b); a.err == nil {
		a.whole.Write(b) // a hash never fails
	}
}
