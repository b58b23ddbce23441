package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
)

// Finding is one thing in a store that is not what was written.
type Finding struct {
	// Key and Revision name the version that can't be read, if it is known.
	Key      store.Key
	Revision store.Revision
	// File is the damaged file in the store's directory, if it is one.
	File string
	// What is wrong.
	What string
}

func (f Finding) String() string {
	switch {
	case f.Key != "":
		return fmt.Sprintf("%s at version %d: %s", f.Key, f.Revision, f.What)
	case f.File != "":
		return fmt.Sprintf("file %s: %s", f.File, f.What)
	}
	return f.What
}

// CheckReport tells what a check has read.
type CheckReport struct {
	Findings []Finding // none: it is whole
	Objects  int
	Versions int
	State    store.State // zero with findings
}

// CheckDir reads all of the store in o.Dir, which nobody has open, and changes
// nothing there. It goes on behind what is damaged, so that it names as much of it
// as can be told. An error means that the check could not be made: store.ErrNoStore,
// ErrUnfinished, store.ErrLocked and store.ErrNewerFormat among others.
func CheckDir(ctx context.Context, o Options) (CheckReport, error) {
	s, err := lockToRead(o)
	if err != nil {
		return CheckReport{}, err
	}
	c := dirCheck{s: s, ctx: ctx}
	err = errors.Join(c.run(), s.release())
	return c.report, err
}

type dirCheck struct {
	s      *Store
	ctx    context.Context
	report CheckReport
}

// found notes damage, and returns what is none.
func (c *dirCheck) found(err error) error {
	if !isDamage(err) {
		return err
	}
	c.add(findingOf(err))
	return nil
}

// findingOf names the file, if it is known, so that the same damage that is met twice
// is the same finding.
func findingOf(err error) Finding {
	if errors.Is(err, syscall.EIO) {
		return Finding{What: line(err)}
	}
	d := damageOf(err)
	return Finding{File: d.File, What: strings.TrimPrefix(d.What, store.ErrDamaged.Error()+": ")}
}

// isDamage takes a sector that the disk can't read for damage too.
func isDamage(err error) bool {
	return errors.Is(damaged(err), store.ErrDamaged) || errors.Is(err, syscall.EIO) || errors.Is(err, pebble.ErrNotFound)
}

func (c *dirCheck) add(f Finding) {
	if !slices.Contains(c.report.Findings, f) {
		c.report.Findings = append(c.report.Findings, f)
	}
}

func (c *dirCheck) run() error {
	if err := c.s.openPebble(true); err != nil {
		if err := c.found(err); err != nil {
			return err
		}
		return c.files(nil)
	}
	for _, step := range []func() error{c.format, c.tables, c.records, c.revisions, c.mark, c.whole} {
		if err := errors.Join(step(), c.ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// format keeps rows of a newer release from being taken for damaged ones.
func (c *dirCheck) format() error {
	format, err := c.s.readMeta(c.s.db, metaFormat)
	if err == nil {
		err = checkFormat(format)
	}
	if errors.Is(err, store.ErrNewerFormat) {
		return fmt.Errorf("open store %s: %w", c.s.opts.Dir, err)
	}
	return c.missing("format", err)
}

// tables verifies the checksum of every block of every file that is in use.
func (c *dirCheck) tables() error {
	inUse, err := c.s.tables()
	if err != nil {
		return c.found(err)
	}
	return c.files(inUse)
}

// files verifies the tables in the directory: those in use, or all of them.
func (c *dirCheck) files(inUse map[string]int64) error {
	names, err := c.s.opts.FS.List(c.s.opts.Dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") || inUse != nil && inUse[name] == 0 {
			continue
		}
		err := errors.Join(c.s.validateTable(c.ctx, name, nil), c.ctx.Err())
		switch {
		case isDamage(err):
			f := findingOf(err)
			f.File = name
			c.add(f)
		case err != nil:
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	return nil
}

// records reads every version with its value. Where a part of the records can't be
// read at all it goes on behind it.
func (c *dirCheck) records() error {
	return c.rows(rowRecord, func(p *past, it *pebble.Iterator) error {
		key, rev, err := splitRecordKey(it.Key())
		if err != nil {
			return err
		}
		if _, err := recordAt(p, it); err != nil {
			return c.version(key, rev, err)
		}
		c.report.Versions++
		return nil
	})
}

// revisions looks up what each commit says that it wrote: of what lies in a part
// that can't be read it has the names.
func (c *dirCheck) revisions() error {
	compacted, err := c.s.readMeta(c.s.db, metaCompacted)
	if err != nil {
		return c.missing("compacted", err)
	}
	return c.rows(rowRevision, func(p *past, it *pebble.Iterator) error {
		rev, err := splitRevisionKey(it.Key())
		if err != nil || rev <= store.Revision(compacted) {
			return err
		}
		data, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		keys, err := decodeRevisionKeys(rev, data)
		for _, key := range keys {
			_, closer, err := p.Get(recordKey(key, rev))
			if err == nil {
				err = closer.Close()
			}
			if err := c.version(key, rev, err); err != nil {
				return err
			}
		}
		return err
	})
}

// mark looks whether the file is whole that tells of a log which lost its end.
func (c *dirCheck) mark() error {
	_, err := readMark(c.s.opts.FS, c.s.opts.FS.PathJoin(c.s.opts.Dir, markFile))
	if errors.Is(err, errMark) {
		c.add(Finding{File: markFile, What: err.Error()})
		return nil
	}
	return err
}

// rows hands the rows of a kind to f, whose damage it notes. Where rows can't be
// read at all it comes from the other end, and says between which they lie.
func (c *dirCheck) rows(kind byte, f func(*past, *pebble.Iterator) error) error {
	all, err := c.s.db.NewIter(nil)
	if err != nil {
		return err
	}
	p := &past{s: c.s, it: all}
	defer p.close()
	it, err := p.rows([]byte{kind}, []byte{kind + 1})
	if err != nil {
		return err
	}
	var before, after []byte
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		before = append(before[:0], it.Key()...)
		err = errors.Join(c.found(f(p, it)), c.ctx.Err())
	}
	unread := it.Error()
	if unread != nil {
		for ok := it.Last(); ok && err == nil && bytes.Compare(it.Key(), before) > 0; ok = it.Prev() {
			after = append(after[:0], it.Key()...)
			err = errors.Join(c.found(f(p, it)), c.ctx.Err())
		}
	}
	// What it met is in unread; closing says it again.
	_ = it.Close()
	return errors.Join(err, c.unread(before, after, unread))
}

// unread notes that rows between two could not be read.
func (c *dirCheck) unread(before, after []byte, err error) error {
	if !isDamage(err) {
		return err
	}
	c.add(Finding{What: fmt.Sprintf("what lies between %s and %s can't be read: %s", rowName(before, "the begin"), rowName(after, "the end"), plain(err))})
	return nil
}

// rowName is a row as a person would name it.
func rowName(row []byte, none string) string {
	if key, rev, err := splitRecordKey(row); err == nil {
		return fmt.Sprintf("%s at version %d", key, rev)
	}
	if rev, err := splitRevisionKey(row); err == nil {
		return fmt.Sprintf("the keys of revision %d", rev)
	}
	return none
}

func (c *dirCheck) version(key store.Key, rev store.Revision, err error) error {
	if errors.Is(err, pebble.ErrNotFound) && !errors.Is(err, store.ErrDamaged) {
		err = fmt.Errorf("%w: it is gone", store.ErrDamaged)
	}
	if !isDamage(err) {
		return err
	}
	c.add(Finding{Key: key, Revision: rev, What: plain(err)})
	return nil
}

func (c *dirCheck) missing(row string, err error) error {
	if errors.Is(err, pebble.ErrNotFound) {
		err = fmt.Errorf("%w: the row %q is gone", store.ErrDamaged, row)
	}
	return c.found(err)
}

// whole opens the store, and holds everything in it against everything else. With
// damage found before, that would only say the same in other words.
func (c *dirCheck) whole() error {
	if len(c.report.Findings) > 0 {
		return nil
	}
	v, err := c.s.load()
	if err == nil {
		c.s.view.Store(v)
		err = c.s.Check(c.ctx)
	}
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case err != nil:
		c.add(Finding{What: plain(err)})
	default:
		c.report.Objects, c.report.State = v.Tree.Len(), c.s.State()
	}
	return nil
}

// plain is an error without the words that all findings have in common.
func plain(err error) string {
	f := findingOf(err)
	return f.String()
}
