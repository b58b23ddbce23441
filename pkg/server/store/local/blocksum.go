package local

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/record"
)

// A block of a table is read with the five bytes behind it: its compression, and the
// checksum of all before. What else is read of a table is shorter than surelyBlock.
const (
	blockTrailer = 5
	surelyBlock  = 4 << 10
)

// summedFile is a table whose blocks are verified as they are read. Pebble does it
// too, but on a wrong checksum it tries out which bit may be flipped: over a large
// block that takes ten seconds and more of a processor, and tells nobody anything.
type summedFile struct {
	vfs.File
	name string // without its directory
}

func (f summedFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	if err != nil || n < surelyBlock {
		return n, err
	}
	body, written := b[:n-4], binary.LittleEndian.Uint32(b[n-4:n])
	if sum := blockSum(body); sum != written {
		what := fmt.Sprintf("block %d/%d: crc32c checksum mismatch %x != %x", at, n-blockTrailer, written, sum)
		return n, fmt.Errorf("%w: %w", pebble.ErrCorruption, &store.DamageError{File: f.name, What: what})
	}
	return n, nil
}

// blockSum is the checksum as Pebble and RocksDB write it.
func blockSum(body []byte) uint32 {
	return bits.RotateLeft32(crc32.Checksum(body, record.Castagnoli), 17) + 0xa282ead8
}
