package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
)

// Reader reads an archive. It is for one goroutine. After an error every call
// returns that error.
type Reader struct {
	r       *bufio.Reader
	whole   hash.Hash // of the blocks before the one being read
	header  []byte
	block   []byte // entries that are left of the block
	buf     bytes.Buffer
	blocks  uint64
	entries uint64
	err     error
}

// NewReader reads the begin of an archive. ErrForeign, ErrNewer or ErrDamaged say
// why it can't be read; other errors are r's.
func NewReader(r io.Reader) (*Reader, error) {
	a := &Reader{r: bufio.NewReaderSize(r, 64<<10), whole: sha256.New()}
	if err := a.readMagic(); err != nil {
		return nil, err
	}
	kind, content, err := a.readBlock()
	if err != nil {
		return nil, err
	}
	if kind != kindHeader {
		return nil, a.damaged("it has no header")
	}
	a.header = bytes.Clone(content)
	return a, nil
}

// Header is what the archive was begun with.
func (a *Reader) Header() []byte { return a.header }

// Next returns the next entry, which is good until the next call, and at last
// io.EOF. ErrDamaged says where and what; other errors are those of the source.
// What it returned before may be used, but all of it is known to be whole, and to
// be all, only with io.EOF.
func (a *Reader) Next() ([]byte, error) {
	for len(a.block) == 0 && a.err == nil {
		a.err = a.nextBlock()
	}
	if a.err != nil {
		return nil, a.err
	}
	size, n := binary.Uvarint(a.block)
	if n <= 0 || size > uint64(len(a.block)-n) {
		a.err = a.damaged("its entries do not add up")
		return nil, a.err
	}
	entry := a.block[n : n+int(size)]
	a.block = a.block[n+int(size):]
	a.entries++
	return entry, nil
}

func (a *Reader) nextBlock() error {
	before := a.whole.Sum(nil)
	kind, content, err := a.readBlock()
	switch {
	case err != nil:
		return err
	case kind == kindEntries:
		a.block = content
		return nil
	case kind != kindEnd:
		return a.damaged(fmt.Sprintf("it is of an unknown kind %q", kind))
	case len(content) != endSize || !bytes.Equal(content[8:], before):
		return a.damaged("the checksum over the whole does not match")
	case binary.BigEndian.Uint64(content) != a.entries:
		return a.damaged("entries are missing")
	}
	if _, err := a.r.ReadByte(); !errors.Is(err, io.EOF) {
		return cmp.Or(err, a.damaged("something follows the end"))
	}
	return io.EOF
}

func (a *Reader) readMagic() error {
	line := make([]byte, len(magic))
	n, err := io.ReadFull(a.r, line)
	if err != nil && !ended(err) {
		return err
	}
	a.whole.Write(line[:n])
	switch got := string(line[:n]); {
	case got == magic:
		return nil
	case n < len(magic) && strings.HasPrefix(magic, got) && n > 0:
		return fmt.Errorf("%w: it is cut short after %d bytes", ErrDamaged, n)
	case strings.HasPrefix(got, family):
		return ErrNewer
	}
	return ErrForeign
}

// readBlock reads and verifies a block. The content is good until the next call.
func (a *Reader) readBlock() (kind byte, content []byte, err error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(a.r, head); err != nil {
		return 0, nil, a.cut(err)
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > maxBlock {
		return 0, nil, a.damaged("its length can't be right")
	}
	a.buf.Reset()
	// Grows with what comes, not with what the length promises.
	if _, err := io.CopyN(&a.buf, a.r, int64(size)+4); err != nil {
		return 0, nil, a.cut(err)
	}
	content, sum := a.buf.Bytes()[:size], a.buf.Bytes()[size:]
	if binary.BigEndian.Uint32(sum) != blockSum(a.blocks, head, content) {
		return 0, nil, a.damaged("its checksum does not match")
	}
	a.whole.Write(head)
	a.whole.Write(a.buf.Bytes())
	a.blocks++
	return head[0], content, nil
}

func (a *Reader) damaged(what string) error {
	return fmt.Errorf("%w in block %d: %s", ErrDamaged, a.blocks, what)
}

// cut tells the end of the file in the midst of it from a failure to read.
func (a *Reader) cut(err error) error {
	if ended(err) {
		return a.damaged("the file ends there")
	}
	return err
}

func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
