package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// draft is the file in which a person edits an object. It is readable by its
// owner alone, and goes only when the server has taken what is in it.
type draft struct {
	path  string
	shown []byte
	left  bool // it stays whatever happens
}

func newDraft(name string, shown []byte) (*draft, error) {
	// A name may be as long as a file's may be.
	file, err := os.CreateTemp("", "cmctl-edit-"+name[:min(len(name), 60)]+"-*.yaml")
	if err != nil {
		return nil, fmt.Errorf("no file to edit in can be made: %w", err)
	}
	_, err = file.Write(shown)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		os.Remove(file.Name())
		return nil, fmt.Errorf("the file to edit in can't be written: %w", err)
	}
	return &draft{path: file.Name(), shown: shown}, nil
}

// read returns what the person made of it.
func (d *draft) read() ([]byte, error) {
	text, err := os.ReadFile(d.path)
	if err != nil {
		return nil, fmt.Errorf("what the editor left can't be read: %w", err)
	}
	return text, nil
}

// changed tells whether there may be work of the person in it. What can't be
// read just now may be.
func (d *draft) changed() bool {
	text, err := d.read()
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return !bytes.Equal(text, d.shown) && len(bytes.TrimSpace(text)) > 0
}

func (d *draft) remove() {
	if !d.left {
		os.Remove(d.path)
	}
}

// leave keeps the file for an editor that may still have it open.
func (d *draft) leave() { d.left = true }

// keptError adds to an error where the person's text is. report says it, after
// all that went wrong.
type keptError struct {
	path  string
	where string // the flags that name the same server and namespace
	err   error
}

func (e *keptError) Error() string { return e.err.Error() }
func (e *keptError) Unwrap() error { return e.err }

// settle is what becomes of the draft when the edit ends with err: it is kept
// and named if there is work in it that the server didn't take.
func (d *draft) settle(err error, where string) error {
	if err == nil || !d.changed() {
		d.remove()
		return err
	}
	return &keptError{path: d.path, where: where, err: err}
}
