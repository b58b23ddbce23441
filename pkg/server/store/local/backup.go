package local

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/archive"
	"example.com/cmctl/pkg/server/store/record"
)

// BackupInfo tells what a backup holds. It is the header of the file, as JSON.
type BackupInfo struct {
	// Made is when it was begun, by the clock of the server.
	Made time.Time `json:"made"`
	// Revision is the state that it holds, and the highest revision in it.
	Revision store.Revision `json:"resourceVersion,string"`
	// Objects is how many live keys there are, Versions how many versions of them
	// and of deleted ones. A file's header has no Versions: they are counted by
	// whoever reads it.
	Objects  int `json:"objects"`
	Versions int `json:"-"`
	// Lost are the revisions that the restores before skipped.
	Lost spans `json:"lost,omitempty"`
}

// Backup writes one state of the store to w, whole or not at all: without the end
// of the file, which it writes last, ReadBackup takes none of it. Commits go on
// meanwhile; what they write is not in it. Every record is verified on the way, so
// that a damaged store fails with store.ErrDamaged and makes no damaged backup.
//
// The disk keeps what compaction would have freed until Backup returns, and Close
// waits for it. It ends early with ctx and with the store, but not while w blocks:
// that is for the caller to bound.
func (s *Store) Backup(ctx context.Context, w io.Writer) (BackupInfo, error) {
	if err := s.begin(ctx); err != nil {
		return BackupInfo{}, err
	}
	defer s.end()
	p, err := s.moment()
	if err != nil {
		return BackupInfo{}, s.noticed("", err)
	}
	defer p.close()
	info, err := p.backup(ctx, w)
	return info, s.noticed("", err)
}

func (p *past) backup(ctx context.Context, w io.Writer) (BackupInfo, error) {
	info := BackupInfo{Made: time.Now().UTC().Truncate(time.Millisecond), Revision: p.view.Current, Objects: p.view.Tree.Len(), Lost: p.s.lost}
	header, err := json.Marshal(info)
	if err != nil {
		return BackupInfo{}, err
	}
	a, err := archive.NewWriter(w, header)
	if err != nil {
		return BackupInfo{}, err
	}
	it, err := p.rows([]byte{rowRecord}, []byte{rowRecord + 1})
	if err != nil {
		return BackupInfo{}, err
	}
	info.Versions, err = p.backupRecords(ctx, it, a)
	if err = cmp.Or(err, it.Error(), it.Close()); err != nil {
		return BackupInfo{}, err
	}
	return info, a.Close()
}

func (p *past) backupRecords(ctx context.Context, it *pebble.Iterator, a *archive.Writer) (n int, err error) {
	var entry []byte
	for ok := it.First(); ok; ok = it.Next() {
		rec, err := recordAt(p, it)
		if err == nil && p.s.isClosing() {
			err = store.ErrClosed
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return n, err
		}
		if rec.Revision > p.view.Current {
			continue // not known to be durable
		}
		entry = appendEntry(entry[:0], &rec)
		if err := a.Add(entry); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// An entry of a backup is one version: its key as str, its revision as uvarint, and
// its record with the value in it, however long. Entries are in the order of the
// keys, of each key the newest first.
func appendEntry(b []byte, rec *store.Record) []byte {
	row, _ := record.Encode(rec, math.MaxInt)
	b = record.AppendString(b, string(rec.Key))
	b = binary.AppendUvarint(b, uint64(rec.Revision))
	return append(b, row...)
}

func decodeEntry(entry []byte) (store.Record, error) {
	d := record.Reader{Data: entry}
	key, rev := store.Key(d.Bytes()), d.Uvarint()
	if d.Bad || key.Check() != nil || rev == 0 || rev > maxRevision {
		return store.Record{}, errors.New("an entry has no key or no revision")
	}
	h, err := record.Decode(key, store.Revision(rev), d.Data)
	if err != nil {
		return store.Record{}, err
	}
	if h.Apart {
		return store.Record{}, fmt.Errorf("%s at revision %d has no value", key, rev)
	}
	return complete(nil, h) // nothing is left to read
}
