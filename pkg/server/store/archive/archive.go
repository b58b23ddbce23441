// Package archive is a file of entries, one after the other, in which damage, a
// missing piece and a missing end are noticed. It knows nothing of what the
// entries are.
//
//	w, err := archive.NewWriter(file, header)
//	err = w.Add(entry) // as often as needed
//	err = w.Close()    // writes the end; the file is the caller's to sync and close
//
//	r, err := archive.NewReader(file)
//	for {
//		entry, err := r.Next()
//		if err == io.EOF {
//			break // and only now is all of it known to be whole
//		}
//	}
//
// # The format, version 1
//
// A line of text, which a newer version will have otherwise, then blocks:
//
//	"cmserver backup 1\n"
//
//	byte      kind: 'H' header, 'E' entries, 'Z' end
//	u32       length of the content
//	bytes     content
//	u32       CRC-32C over u64(number of the block, from 0) and all of the block before
//
// The header comes first, the end last, and nothing follows it. A header's content
// is the caller's. That of entries is each one's length as uvarint and its bytes.
// The end holds u64(number of entries) and the SHA-256 of everything before the end
// block. Numbers are big endian, uvarint is that of encoding/binary.
package archive

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// What reading can meet.
var (
	// ErrForeign: these bytes do not begin as a backup does.
	ErrForeign = errors.New("this is no backup made by cmserver backup")
	// ErrNewer: a newer release wrote it.
	ErrNewer = errors.New("the backup was made by a newer release of cmserver, which can read it")
	// ErrDamaged: what was read is not what was written, or not all of it.
	ErrDamaged = errors.New("the backup is damaged")
)

const (
	family = "cmserver backup "
	magic  = family + "1\n"

	kindHeader  = 'H'
	kindEntries = 'E'
	kindEnd     = 'Z'

	blockSize = 1 << 20   // from which a block of entries is written
	maxBlock  = 256 << 20 // a longer one can only be a damaged length

	endSize = 8 + 32
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockSum is the checksum of a block. The number in it makes a block that was
// moved, doubled or left out as wrong as one with another content.
func blockSum(number uint64, head, content []byte) uint32 {
	sum := crc32.Checksum(binary.BigEndian.AppendUint64(nil, number), castagnoli)
	return crc32.Update(crc32.Update(sum, castagnoli, head), castagnoli, content)
}
