package local

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
)

// damaged tells damage from trouble with the operating system: a checksum, a log that
// breaks off, a file that is missing or has another length. It keeps what a person
// needs of Pebble's errors, which have a stack and parts of no meaning with them.
func damaged(err error) error {
	var system syscall.Errno
	switch {
	case err == nil, errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrNewerFormat), errors.Is(err, errForeign),
		errors.Is(err, ErrUnfinished), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &system) && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return damageOf(err)
}

// tableError matches what Pebble says of a table: its number, and what is wrong.
var tableError = regexp.MustCompile(`^(.*?)pebble: (?:backing file \d+ error: pebble: )?file (\d{6,}): (.*)$`)

// invalidTable matches what it says of a table's last bytes, where all of it begins.
var invalidTable = regexp.MustCompile(`^(?:pebble: backing file \d+ error: )?pebble/table: invalid table \d+: \((.*)\)$`)

// damageOf finds out from an error what is damaged.
func damageOf(err error) *store.DamageError {
	var known *store.DamageError
	if errors.As(err, &known) {
		return known
	}
	d := &store.DamageError{What: line(err)}
	if found := tableError.FindStringSubmatch(d.What); found != nil {
		d.What = found[1] + found[3]
		if found[2] != unnumbered {
			d.File = found[2] + ".sst"
		}
	}
	d.What = invalidTable.ReplaceAllString(d.What, "$1")
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		d.File = path.Base(info.Path)
	}
	return d
}

// unnumbered is the number of a table that is read by itself.
const unnumbered = "000000"

// ofVersion names the version that could not be read, if that is what err tells.
func ofVersion(key store.Key, rev store.Revision, err error) error {
	if err == nil || !met(err) {
		return err
	}
	d := *damageOf(err)
	if errors.Is(err, pebble.ErrNotFound) && d.File == "" && d.Key == "" {
		d.What = "it is gone"
	}
	if d.Key == "" {
		d.Key, d.Revision = key, rev
	}
	return &d
}

// met says whether a read has met damage.
func met(err error) bool {
	return errors.Is(err, store.ErrDamaged) || errors.Is(err, pebble.ErrNotFound) || pebble.IsCorruptionError(err)
}

// noticed ends writing if a call has met damage, and says where that is as well as it
// can. key is what was read, if it was one key.
func (s *Store) noticed(key store.Key, err error) error {
	if err == nil || !met(err) {
		return err
	}
	err = ofVersion(key, 0, err)
	s.fail(err)
	return err
}

// ruins are the versions that are known to be damaged. Pebble would look again each
// time, and after a wrong checksum it tries out for seconds which bit it may be.
type ruins struct {
	all     sync.Map // of version to error
	some    atomic.Bool
	reports atomic.Int32 // by Pebble
}

type version struct {
	key store.Key
	rev store.Revision
}

func (r *ruins) find(it *index.Item) error {
	if !r.some.Load() {
		return nil
	}
	err, _ := r.all.Load(version{it.Record.Key, it.Record.Revision})
	if err == nil {
		return nil
	}
	return err.(error)
}

func (r *ruins) add(it *index.Item, err error) {
	r.all.Store(version{it.Record.Key, it.Record.Revision}, err)
	r.some.Store(true)
}

// afterDamage is the default of the shortest pause.
const afterDamage = 200 * time.Millisecond

// longestPause is how many times as long as the first one a pause may be.
const longestPause = 50

// reported is told by Pebble of damage, by whoever meets it: reads, compactions, and
// those that gather statistics. The latter two would try it again at once, and for
// ever. So it comes back later each time.
func (s *Store) reported(d *store.DamageError) {
	s.fail(d)
	before := s.ruins.reports.Add(1) - 1
	if before == 0 {
		return
	}
	pause := s.opts.afterDamage * time.Duration(min(1<<min(before-1, 16), longestPause))
	select {
	case <-time.After(pause):
	case <-s.closing:
	}
}
