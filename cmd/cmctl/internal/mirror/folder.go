package mirror

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	dataLink = "..data"
	lockName = "..cmctl.lock"
)

// Options adjust a Folder. The zero value is ready to use.
type Options struct {
	// Mode is the mode of the files; 0 means 0644.
	Mode fs.FileMode
	// Tell notes changes of the files as untold, until Told is called.
	Tell bool
}

// Folder is a folder whose files are a ConfigMap's keys. One Folder at a time
// may be open for a path, over all processes. It is used by one goroutine.
type Folder struct {
	path string
	mode fs.FileMode
	tell bool
	lock *os.File
}

// BusyError says that another process keeps the folder in step.
type BusyError struct{ Path string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("the folder %s is being synced by another process; end that one first", e.Path)
}

// ForeignError says that something stands in the folder where a key's link
// would have to be, or that the folder is somebody else's mirror.
type ForeignError struct {
	Path, Why string
	Plain     bool // a plain file, which Overwrite replaces
}

func (e *ForeignError) Error() string {
	next := "give another folder, or move it away"
	if e.Plain {
		next = "give another folder, move it away, or overwrite it with --force"
	}
	return fmt.Sprintf("%s %s; nothing was changed: %s", e.Path, e.Why, next)
}

// Open takes the folder, made if it isn't there, and removes what a process that
// was killed half-way left behind. It returns a BusyError while another has it.
func Open(dir string, o Options) (*Folder, error) {
	if o.Mode == 0 {
		o.Mode = 0o644
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &BusyError{dir}
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	f := &Folder{path: dir, mode: o.Mode, tell: o.Tell, lock: lock}
	if err := f.tidy(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close lets others take the folder. Its files stay.
func (f *Folder) Close() error { return f.lock.Close() }

// Path is the folder's absolute path.
func (f *Folder) Path() string { return f.path }

// current is the folder of the version that ..data leads to, empty if there is
// no such link.
func (f *Folder) current() (string, error) {
	target, err := os.Readlink(f.in(dataLink))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case errors.Is(err, syscall.EINVAL):
		return "", &ForeignError{Path: f.in(dataLink), Why: "is not a link"}
	}
	return target, err
}

func (f *Folder) in(parts ...string) string {
	return filepath.Join(append([]string{f.path}, parts...)...)
}

// Mirrors tells whether the folder is laid out as a mirror, which Write does,
// or is a plain folder of files.
func (f *Folder) Mirrors() (bool, error) {
	current, err := f.current()
	return current != "", err
}

// Record is what the folder was last synced with, nil if it never was.
func (f *Folder) Record() (*Record, error) {
	current, err := f.current()
	if err != nil {
		return nil, err
	}
	return readRecord(f.in(current))
}

// Keep records what a plain folder is in step with, without touching its files.
// What is untold stays so.
func (f *Folder) Keep(r Record) error {
	before, err := f.Record()
	if err != nil {
		return err
	}
	r.Untold = nil
	if before != nil {
		r.Untold = before.Untold
	}
	return f.keep(r)
}

func (f *Folder) keep(r Record) error {
	current, err := f.current()
	if err != nil {
		return err
	}
	return writeRecord(f.in(current), r)
}

// Told records that a program knows of all changes of the files.
func (f *Folder) Told() error {
	r, err := f.Record()
	if err != nil || r == nil || r.Untold == nil {
		return err
	}
	r.Untold = nil
	return f.keep(*r)
}

// Skipped is an entry of the folder that is not taken for a key, and why.
type Skipped struct{ Name, Why string }

// Files are the folder's files as they are now: what was edited in place, and
// what an editor put in a link's stead.
func (f *Folder) Files() (files map[string][]byte, skipped []Skipped, err error) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, nil, err
	}
	files = map[string][]byte{}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, "..") {
			continue
		}
		info, err := os.Stat(f.in(name))
		if err != nil {
			return nil, nil, err
		}
		switch {
		case !info.Mode().IsRegular():
			skipped = append(skipped, Skipped{name, "it is not a file"})
			continue
		case leftover(name):
			skipped = append(skipped, Skipped{name, "editors leave such files behind"})
			continue
		}
		if files[name], err = os.ReadFile(f.in(name)); err != nil {
			return nil, nil, err
		}
	}
	return files, skipped, nil
}

// leftover tells names of files that vi and Emacs make beside what they edit.
func leftover(name string) bool {
	swap, err := path.Match(".*.sw[a-p]", name)
	return err == nil && swap || strings.HasSuffix(name, "~") || strings.HasPrefix(name, ".#") || strings.HasPrefix(name, "#")
}

// versionPrefix begins the names of the folders that hold one version each.
const versionPrefix = "..cmctl-"

func newVersionFolder(parent string, now time.Time) (string, error) {
	dir, err := os.MkdirTemp(parent, versionPrefix+now.UTC().Format("2006_01_02_15_04_05.*"))
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// tidy removes versions that are not the current one, and links that lead
// nowhere. A key's link is made before the switch and removed after it: one
// that is missing was removed by a person.
func (f *Folder) tidy() error {
	current, err := f.current()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case strings.HasPrefix(name, versionPrefix) && name != current && e.IsDir():
			err = os.RemoveAll(f.in(name))
		case f.leadsNowhere(name):
			err = os.Remove(f.in(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// linkTo is where a key's link leads.
func linkTo(key string) string { return dataLink + "/" + key }

func (f *Folder) isLink(key string) bool {
	target, err := os.Readlink(f.in(key))
	return err == nil && target == linkTo(key)
}

func (f *Folder) leadsNowhere(name string) bool {
	if strings.HasPrefix(name, "..") || !f.isLink(name) {
		return false
	}
	_, err := os.Stat(f.in(name))
	return errors.Is(err, fs.ErrNotExist)
}

// links are the keys that have a link.
func (f *Folder) links() ([]string, error) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "..") && f.isLink(e.Name()) {
			keys = append(keys, e.Name())
		}
	}
	slices.Sort(keys)
	return keys, nil
}
