package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// maxRounds is how often an edit begins anew because the file changed meanwhile.
const maxRounds = 10

// Edit changes a settings file, or makes it. Programs that use Edit wait for
// each other; of what another one writes meanwhile, an editor say, nothing is
// lost: the edit is made again to what is there then. So edit may be called more
// than once. The file is swapped whole, and only its owner may read it
// afterwards.
func Edit(path string, edit func(*Document) error) error {
	// A link stays one, and the file that it leads to is edited.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	unlock, err := lockedfile.MutexAt(path + ".lock").Lock()
	if err != nil {
		return fmt.Errorf("lock the settings file: %w", err)
	}
	defer unlock()
	if err := removeLeftovers(path); err != nil {
		return err
	}
	for range maxRounds {
		if done, err := round(path, edit); done || err != nil {
			return err
		}
	}
	return errors.New("another program keeps writing the file; nothing was changed")
}

// round makes the edit to the file as it is now. It is not done if the file
// changed before it could be swapped.
func round(path string, edit func(*Document) error) (done bool, err error) {
	before, err := read(path)
	if err != nil {
		return false, err
	}
	d, err := Parse(before, filepath.Dir(path))
	if err != nil {
		return false, err
	}
	if err := edit(d); err != nil {
		return false, err
	}
	after, err := d.Text()
	if err != nil {
		return false, err
	}
	if _, err := parse(after, filepath.Dir(path)); err != nil {
		return false, err
	}
	temp, err := writeBeside(path, after)
	if err != nil {
		return false, err
	}
	if now, err := read(path); err != nil || !bytes.Equal(now, before) {
		return false, errors.Join(err, os.Remove(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return false, errors.Join(err, os.Remove(temp))
	}
	return true, nil
}

// read is the file's text, none if it isn't there.
func read(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// newMark stands in the names of files that are to take the place of another.
const newMark = ".new-"

// removeLeftovers removes what a program left that was killed before the swap, for
// it may hold tokens. The caller has the lock: nobody else has such a file.
func removeLeftovers(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, e := range entries {
		number, ours := strings.CutPrefix(e.Name(), filepath.Base(path)+newMark)
		if !ours || strings.Trim(number, "0123456789") != "" || !e.Type().IsRegular() {
			continue
		}
		if err := os.Remove(filepath.Join(filepath.Dir(path), e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// writeBeside makes a file, readable by its owner alone, to be put in the place
// of the one at path.
func writeBeside(path string, text []byte) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+newMark+"*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
