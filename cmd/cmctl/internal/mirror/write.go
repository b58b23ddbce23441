package mirror

import (
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
}

func (e *EditedError) Error() string {
	return fmt.Sprintf("in the folder %s somebody changed %s since the last sync; nothing was written there", e.Path, strings.Join(e.Keys, ", "))
}

// Write brings the folder to the record's data, all files in one step, and
// tells whether any file changed. It returns an EditedError if files were
// changed in the folder since, and a ForeignError if what stands in the way is
// not the folder's own; nothing is changed then.
func (f *Folder) Write(r Record) (changed bool, err error) {
	if err := f.mayWrite(r.Data); err != nil {
		return false, err
	}
	return f.overwrite(r)
}

// Overwrite is Write that takes the record's side where files were changed in
// the folder.
func (f *Folder) Overwrite(r Record) (changed bool, err error) {
	if err := f.ours(); err != nil {
		return false, err
	}
	return f.overwrite(r)
}

func (f *Folder) overwrite(r Record) (bool, error) {
	mirrors, err := f.Mirrors()
	if err != nil {
		return false, err
	}
	files, _, err := f.Files()
	if err != nil {
		return false, err
	}
	if mirrors && len(ChangedKeys(files, r.Data)) == 0 {
		return false, f.Keep(r) // a version that changed other things than data
	}
	record, err := f.Record()
	if err != nil {
		return false, err
	}
	r.Untold = record.untoldAfter(f.changing(record, files, r.Data), f.tell)
	return true, f.switchTo(r)
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
		err = &ForeignError{f.path, "is a mirror that another program keeps"}
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
			return &EditedError{f.path, edited}
		}
		return nil
	}
	for key := range maps.Keys(data) {
		if _, ok := files[key]; ok {
			return &ForeignError{f.in(key), "is a file that no sync made"}
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

// switchTo writes a version beside the current one and makes it the current
// one. Links of new keys are made before the switch, and those of removed keys
// go after it: a key that is in either version can be opened all the time.
func (f *Folder) switchTo(r Record) error {
	old, err := f.current()
	if err != nil {
		return err
	}
	dir, err := newVersionFolder(f.path, time.Now())
	if err != nil {
		return err
	}
	if err := f.fill(dir, r); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err := f.linkNew(r.Data); err != nil {
		return err
	}
	if err := f.replaceLink(dataLink, filepath.Base(dir)); err != nil {
		return err
	}
	if err := f.settleLinks(r.Data); err != nil {
		return err
	}
	if old == "" {
		return nil
	}
	return os.RemoveAll(f.in(old))
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
func (f *Folder) settleLinks(data map[string][]byte) error {
	links, err := f.links()
	if err != nil {
		return err
	}
	for _, key := range links {
		if _, ok := data[key]; !ok {
			if err := os.Remove(f.in(key)); err != nil {
				return err
			}
		}
	}
	for key := range data {
		if !f.isLink(key) {
			if err := f.replaceLink(key, linkTo(key)); err != nil {
				return err
			}
		}
	}
	return syncFolder(f.path)
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
