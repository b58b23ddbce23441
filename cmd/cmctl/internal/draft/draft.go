// Package draft keeps on disk what a person edits, together with what they were
// shown, so that an edit which ended for whatever reason can be gone on from. Both
// are files in a folder of their own, which nobody else can read.
//
//	d, err := draft.New("flags.yaml", text, draft.Shown{Server: url, Document: live})
//	… the person edits d.Path() …
//	d.Remove() // the server has taken it
package draft

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"example.com/cmctl/pkg/types"
)

// Shown is what a draft was made from.
type Shown struct {
	Server    string // as messages name it, with the context
	Namespace string
	Name      string
	// Key is the only key that the text holds, empty if it is the whole object.
	Key string `json:",omitempty"`
	// Format is what a whole object is written in: yaml or json.
	Format string `json:",omitempty"`
	// Document is the version that the text was made from, as the server has it.
	Document types.Document
	// Markers is how long the conflict markers are that the text was given, 0 if
	// it was given none.
	Markers int `json:",omitempty"`
}

// Draft is a file that a person edits. It is for one goroutine.
type Draft struct {
	Shown Shown
	path  string
}

// The name can't be that of an object or of a key, which files are named for.
const shownFile = "~shown.json"

// New makes a folder with the two files in it. file is the name that the text
// gets there; a long one is shortened, but for its extension.
func New(file string, text []byte, shown Shown) (*Draft, error) {
	folder, err := os.MkdirTemp("", "cmctl-edit-"+shown.Name[:min(len(shown.Name), 60)]+"-*")
	if err != nil {
		return nil, fmt.Errorf("no folder to edit in can be made: %w", err)
	}
	d := &Draft{Shown: shown, path: filepath.Join(folder, shortened(file))}
	if err := d.fill(text); err != nil {
		d.Remove()
		return nil, fmt.Errorf("the file to edit in can't be written: %w", err)
	}
	return d, nil
}

func (d *Draft) fill(text []byte) error {
	shown, err := json.MarshalIndent(d.Shown, "", " ")
	if err != nil {
		return err
	}
	if err := replace(d.ShownPath(), shown); err != nil {
		return err
	}
	return replace(d.path, text)
}

// shortened leaves room in the 255 bytes that a file's name may have for what an
// editor adds to it.
func shortened(file string) string {
	const limit = 200
	if len(file) <= limit {
		return file
	}
	ext := filepath.Ext(file)
	if len(ext) > limit/2 {
		ext = ""
	}
	return file[:limit-len(ext)] + ext
}

// ErrAlone is a draft without the file that says what it was made from.
var ErrAlone = errors.New("what this text was made from is not kept beside it")

// Open finds a draft that was kept: path is its text.
func Open(path string) (*Draft, error) {
	// Absolute, for the person may go on from elsewhere when it is named again.
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	d := &Draft{path: path}
	if _, err := d.Read(); err != nil {
		return nil, err
	}
	shown, err := os.ReadFile(d.ShownPath())
	if errors.Is(err, fs.ErrNotExist) {
		return d, ErrAlone
	}
	if err != nil {
		return nil, fmt.Errorf("what the text was made from can't be read: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(shown))
	dec.UseNumber()
	if err := dec.Decode(&d.Shown); err != nil {
		return nil, fmt.Errorf("%s can't be read: %w", d.ShownPath(), err)
	}
	if d.Shown.Document.Name() == "" {
		return nil, fmt.Errorf("%s doesn't say what the text was made from", d.ShownPath())
	}
	return d, nil
}

// Path is the file that the person edits.
func (d *Draft) Path() string { return d.path }

// ShownPath is the file that says what the text was made from.
func (d *Draft) ShownPath() string { return filepath.Join(filepath.Dir(d.path), shownFile) }

// Read returns what the person made of it.
func (d *Draft) Read() ([]byte, error) {
	text, err := os.ReadFile(d.path)
	if err != nil {
		return nil, fmt.Errorf("the text can't be read: %w", err)
	}
	return text, nil
}

// Exists tells whether there is anything of the text's name, readable or not.
func (d *Draft) Exists() bool {
	_, err := os.Lstat(d.path)
	return !errors.Is(err, fs.ErrNotExist)
}

// Write puts another text in the place of the one there, in one step.
func (d *Draft) Write(text []byte) error {
	if err := replace(d.path, text); err != nil {
		return fmt.Errorf("the file to edit in can't be written: %w", err)
	}
	return nil
}

// Beside are the files in the draft's folder that are not its own: an editor that
// ended at once leaves its unsaved text there. A draft that stands alone has no
// folder of its own, and none.
func (d *Draft) Beside() []string {
	entries, err := os.ReadDir(filepath.Dir(d.path))
	if err != nil {
		return nil
	}
	var others []string
	alone := true
	for _, e := range entries {
		path := filepath.Join(filepath.Dir(d.path), e.Name())
		switch {
		case path == d.ShownPath():
			alone = false
		case path != d.path && path != d.path+"~":
			others = append(others, path)
		}
	}
	if alone {
		return nil
	}
	return others
}

// Remove removes the draft, and the copy that some editors leave. What else the
// person put into the folder stays.
func (d *Draft) Remove() {
	for _, path := range []string{d.path, d.path + "~", d.ShownPath(), filepath.Dir(d.path)} {
		// What can't be removed is a file too many, and nothing is lost.
		_ = os.Remove(path)
	}
}

// replace writes a file beside the old one and then renames it.
func replace(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "~new-*") // readable by its owner alone
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}
