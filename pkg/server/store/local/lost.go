package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
)

// span is the revisions that a restore skipped. Some of them were handed out in a
// life of the store that is lost, so that nobody can say which keys they wrote.
type span struct {
	First store.Revision `json:"first,string"`
	Last  store.Revision `json:"last,string"`
}

// spans are those of all restores that a store came through, oldest first.
type spans []span

func (s spans) contain(rev store.Revision) bool {
	return slices.ContainsFunc(s, func(one span) bool { return one.First <= rev && rev <= one.Last })
}

func (s spans) encode() []byte {
	var b []byte
	for _, one := range s {
		b = binary.BigEndian.AppendUint64(b, uint64(one.First))
		b = binary.BigEndian.AppendUint64(b, uint64(one.Last))
	}
	return b
}

func decodeSpans(b []byte) (spans, error) {
	if len(b)%16 != 0 {
		return nil, fmt.Errorf("%w: the skipped revisions are %d bytes long", store.ErrDamaged, len(b))
	}
	var s spans
	for ; len(b) > 0; b = b[16:] {
		s = append(s, span{store.Revision(binary.BigEndian.Uint64(b)), store.Revision(binary.BigEndian.Uint64(b[8:]))})
	}
	return s, nil
}

// readLost reads which revisions restores have skipped.
func readLost(r reader) (spans, error) {
	data, closer, err := r.Get(metaLost)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the skipped revisions: %w", err)
	}
	defer closer.Close()
	return decodeSpans(data)
}
