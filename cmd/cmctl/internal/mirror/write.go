package mirror

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// EditedError says that files were changed in the folder since it was last in
// step: to write would lose that.
type EditedError struct {
	Path string
	Keys []string
	// Late: they were changed while the folder was being written. All other
	// files are of the new version; these were left as they are.
	Late bool
}

func (e *EditedError) Error() string {
	return fmt.Sprintf("in the folder %s %s", e.Path, e.What())
}

// What is what happened, for a message that names the folder itself.
func (e *EditedError) What() string {
	keys := strings.Join(e.Keys, ", ")
	if e.Late {
		return fmt.Sprintf("somebody changed %s while it was written; these files were left as they are", keys)
	}
	return fmt.Sprintf("somebody changed %s since the last sync; nothing was written there", keys)
}

// Write brings the folder to the record's data, all files in one step, and
// tells whether any file changed. It returns an EditedError if files were
// changed in the folder since, and a ForeignError if what stands in the way is
// not the folder's own; nothing is changed then, unless the error is Late.
func (f *Folder) Write(r Record) (changed bool, err error) {
	return f.write(r, f.mayWrite)
}

// Overwrite is Write that takes the record's side where files were changed in
// the folder before it was called.
func (f *Folder) Overwrite(r Record) (changed bool, err error) {
	return f.write(r, func(map[string][]byte) error { return f.ours() })
}

// write asks may twice: before, and when the new version stands beside the old
// one, which can take a while.
func (f *Folder) write(r Record, may func(map[string][]byte) error) (bool, error) {
	if err := may(r.Data); err != nil {
		return false, err
	}
	mirrors, err := f.Mirrors()
	if err != nil {
		return false, err
	}
	seen, _, err := f.Files()
	if err != nil {
		return false, err
	}
	if mirrors && len(ChangedKeys(seen, r.Data)) == 0 {
		return false, f.Keep(r) // a version that changed other things than data
	}
	was, err := f.Record()
	if err != nil {
		return false, err
	}
	c := &change{Folder: f, next: r, seen: seen}
	if c.was, err = f.version(); err != nil {
		return false, err
	}
	c.next.Untold = was.untoldAfter(f.changing(was, seen, r.Data), f.tell)
	return c.make(may)
}

// changing are the keys whose files a write changes. Other files of a plain
// folder stay as they are.
func (f *Folder) changing(record *Record, files, next map[string][]byte) []string {
	return slices.DeleteFunc(ChangedKeys(files, next), func(key string) bool {
		_, wanted := next[key]
		return !wanted && (record == nil || record.Data[key] == nil)
	})
}

// ours refuses a mirror that was not made here, such as a mount of the
// kubelet's.
func (f *Folder) ours() error {
	mirrors, err := f.Mirrors()
	if err != nil || !mirrors {
		return err
	}
	record, err := f.Record()
	if err == nil && record == nil {
		err = &ForeignError{Path: f.path, Why: "is a mirror that another program keeps"}
	}
	return err
}

// mayWrite refuses to overwrite what is not in the record of the last sync.
func (f *Folder) mayWrite(data map[string][]byte) error {
	if err := f.ours(); err != nil {
		return err
	}
	record, err := f.Record()
	if err != nil {
		return err
	}
	files, _, err := f.Files()
	if err != nil {
		return err
	}
	if mirrors, err := f.Mirrors(); err != nil {
		return err
	} else if mirrors {
		if edited := editedKeys(record.Data, files, data); len(edited) > 0 {
			return &EditedError{Path: f.path, Keys: edited}
		}
		return nil
	}
	for key := range maps.Keys(data) {
		if _, ok := files[key]; ok {
			return &ForeignError{Path: f.in(key), Why: "is a file that no sync made", Plain: true}
		}
	}
	return nil
}

// editedKeys are those whose file is neither as it was recorded nor as it is to
// become. A file that nobody asks for is left alone.
func editedKeys(recorded, files, next map[string][]byte) []string {
	changed := ChangedKeys(recorded, files)
	return slices.DeleteFunc(changed, func(key string) bool {
		_, was := recorded[key]
		want, wanted := next[key]
		have, there := files[key]
		return !was && !wanted || wanted == there && string(want) == string(have)
	})
}

// version are the files of the current version, whatever stands in their links'
// stead; nil if there is none.
func (f *Folder) version() (map[string][]byte, error) {
	current, err := f.current()
	if err != nil || current == "" {
		return nil, err
	}
	entries, err := os.ReadDir(f.in(current))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		if files[e.Name()], err = os.ReadFile(f.in(current, e.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// change is the way from one version of the folder to the next. Links of new
// keys are made before the switch, and those of removed keys go after it: a key
// that is in either version can be opened all the time.
type change struct {
	*Folder
	next  Record
	was   map[string][]byte // the files of the version before, which others may stand in front of
	seen  map[string][]byte // the files before, with what was made of them
	taken int               // names files that are looked at aside
	late  []string          // keys that somebody changed meanwhile
}

func (c *change) make(may func(map[string][]byte) error) (changed bool, err error) {
	old, err := c.current()
	if err != nil {
		return false, err
	}
	dir, err := newVersionFolder(c.path, time.Now())
	if err != nil {
		return false, err
	}
	if err := c.fill(dir, c.next); err != nil {
		return false, errors.Join(err, os.RemoveAll(dir))
	}
	if err := may(c.next.Data); err != nil {
		return false, errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.linkNew(c.next.Data); err != nil {
		return false, err
	}
	if err := c.replaceLink(dataLink, filepath.Base(dir)); err != nil {
		return false, err
	}
	if err := c.settle(old); err != nil {
		return true, err
	}
	if len(c.late) > 0 {
		slices.Sort(c.late)
		return true, &EditedError{Path: c.path, Keys: slices.Compact(c.late), Late: true}
	}
	return true, nil
}

// settle leaves nothing of the old version but what somebody made of its files
// since they were looked at.
func (c *change) settle(old string) error {
	if err := c.settleLinks(); err != nil {
		return err
	}
	if old == "" {
		return nil
	}
	if err := c.rescue(old); err != nil {
		return err
	}
	return os.RemoveAll(c.in(old))
}

// known tells whether a file's content is nobody's late work: it is as it was
// written or seen, or as it is to be.
func (c *change) known(key string, value []byte) bool {
	for _, data := range []map[string][]byte{c.was, c.seen, c.next.Data} {
		if v, ok := data[key]; ok && bytes.Equal(value, v) {
			return true
		}
	}
	return false
}

// rescue puts files of the old version that were written in place since into
// their links' stead.
func (c *change) rescue(old string) error {
	for key := range c.was {
		value, err := os.ReadFile(c.in(old, key))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if c.known(key, value) || !c.isLink(key) && exists(c.in(key)) {
			continue
		}
		if err := os.Rename(c.in(old, key), c.in(key)); err != nil {
			return err
		}
		c.late = append(c.late, key)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// fill writes all files of a version, on the disk when it returns: after a
// power failure, too, the link leads to whole files.
func (f *Folder) fill(dir string, r Record) error {
	for key, value := range r.Data {
		if err := writeFile(filepath.Join(dir, key), value, f.mode); err != nil {
			return err
		}
	}
	if err := writeRecord(dir, r); err != nil {
		return err
	}
	return syncFolder(dir)
}

// linkNew makes the links that are not there yet. A file in a link's place is
// left until the switch is made.
func (f *Folder) linkNew(data map[string][]byte) error {
	for key := range data {
		err := os.Symlink(linkTo(key), f.in(key))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// settleLinks removes the links of keys that are gone, and puts links where an
// editor had put files.
func (c *change) settleLinks() error {
	links, err := c.links()
	if err != nil {
		return err
	}
	for _, key := range links {
		if _, ok := c.next.Data[key]; !ok {
			if _, err := c.clear(key); err != nil {
				return err
			}
		}
	}
	for key := range c.next.Data {
		if c.isLink(key) {
			continue
		}
		cleared, err := c.clear(key)
		if err != nil {
			return err
		}
		if cleared {
			if err := os.Symlink(linkTo(key), c.in(key)); err != nil {
				return err
			}
		}
	}
	return syncFolder(c.path)
}

// clear removes what stands in a key's place, unless it is somebody's late work.
// It is looked at aside, so that nothing can come in between look and removal.
func (c *change) clear(key string) (cleared bool, err error) {
	c.taken++
	aside := c.in(fmt.Sprintf("%staken.%d", versionPrefix, c.taken))
	if err := os.Rename(c.in(key), aside); errors.Is(err, fs.ErrNotExist) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	if target, err := os.Readlink(aside); err == nil && target == linkTo(key) {
		return true, os.Remove(aside)
	}
	value, err := os.ReadFile(aside)
	if err != nil {
		return false, err
	}
	if c.known(key, value) {
		return true, os.Remove(aside)
	}
	c.late = append(c.late, key)
	// A link, unlike a renaming, replaces nothing that was put there since.
	if err := os.Link(aside, c.in(key)); err != nil {
		return false, fmt.Errorf("what somebody wrote to %s is kept in %s: %w", c.in(key), aside, err)
	}
	return false, os.Remove(aside)
}

// replaceLink makes a link, or puts it in the place of what has its name, in one
// step.
func (f *Folder) replaceLink(name, target string) error {
	tmp := f.in(dataLink + "_tmp")
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, f.in(name)); err != nil {
		return err
	}
	return syncFolder(f.path)
}

func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
