package mirror

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// recordName is the file that holds a Record. No key can be called so: keys
// don't begin with two dots.
const recordName = "..cmctl.json"

// Record says which version of which object a folder was last synced with, and
// what its files were then: what differs from it was changed in the folder.
type Record struct {
	Server          string            `json:"server"`
	Namespace       string            `json:"namespace"`
	Name            string            `json:"name"`
	UID             string            `json:"uid"`
	ResourceVersion string            `json:"resourceVersion"`
	Data            map[string][]byte `json:"data"`
	// Untold are the keys whose files changed without a program having been told
	// of it; nil if nothing is left to tell. The Folder keeps it.
	Untold []string `json:"untold"`
}

// untoldAfter is what is left to tell of once keys have changed too.
func (r *Record) untoldAfter(keys []string, tell bool) []string {
	switch {
	case r != nil && r.Untold != nil:
		keys = slices.Concat(r.Untold, keys)
	case !tell:
		return nil
	}
	slices.Sort(keys)
	return append([]string{}, slices.Compact(keys)...) // not nil
}

// SameObject tells whether both are about the same name on the same server.
func (r Record) SameObject(o Record) bool {
	return r.Server == o.Server && r.Namespace == o.Namespace && r.Name == o.Name
}

// ChangedKeys are the keys that differ between two contents, sorted.
func ChangedKeys(a, b map[string][]byte) []string {
	var changed []string
	for key, value := range a {
		if other, ok := b[key]; !ok || !bytes.Equal(value, other) {
			changed = append(changed, key)
		}
	}
	for key := range maps.Keys(b) {
		if _, ok := a[key]; !ok {
			changed = append(changed, key)
		}
	}
	slices.Sort(changed)
	return changed
}

// readRecord reads the record in dir, nil if there is none.
func readRecord(dir string) (*Record, error) {
	path := filepath.Join(dir, recordName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of the last sync: %w", err)
	}
	r := &Record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s, the record of the last sync, can't be read: %w", path, err)
	}
	return r, nil
}

// writeRecord puts the record into dir in one step. It holds values that others
// may have no right to read, whatever the mode of the files is.
func writeRecord(dir string, r Record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	tmp := filepath.Join(dir, recordName+".tmp")
	if err := writeFile(tmp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, recordName))
}

// writeFile makes or overwrites a file, on the disk when it returns.
func writeFile(path string, value []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(value)
	if err == nil {
		err = file.Chmod(mode) // whatever the umask
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
