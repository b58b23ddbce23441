// Package manifests reads a folder of Kubernetes' manifests that say how the server is
// to behave: rules of access, quotas. Nothing is guessed, and nothing passed over
// without a word.
package manifests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"

	"example.com/cmctl/pkg/server/reload"
	"example.com/cmctl/pkg/types"
)

// endings are those of files that are read.
var endings = []string{".yaml", ".yml", ".json"}

// maxFileBytes is how large a file may be.
const maxFileBytes = 8 << 20

// Document is one object of a manifest. That its text fits its kind is for Decode to
// find out.
type Document struct {
	Origin string // where it is: the file, and the place in it
	metav1.TypeMeta
	text []byte // JSON
}

// Decode reads what is wholly understood: fields that there are not, or that are given
// twice, are refused.
func (d Document) Decode(into any) error { return strictly(d.text, into) }

func strictly(text []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(text, into)
	return errors.Join(append([]error{err}, strict...)...)
}

// Folder is what a folder holds.
type Folder struct {
	// Documents are in the order of the files' names. Lists have been taken apart.
	Documents []Document
	// Passed says of what is no manifest by its name that it was passed over.
	Passed []string
	// Exposed are files that everybody on this machine can write.
	Exposed []string
	// Errs are what could not be read; each names its file.
	Errs []error
}

// Read reads the files of a folder, not those of folders in it. Hidden ones are passed
// over silently: editors and mounted volumes have such.
func Read(dir string) Folder {
	var f Folder
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.Errs = append(f.Errs, err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			f.entry(filepath.Join(dir, entry.Name()))
		}
	}
	return f
}

func (f *Folder) entry(path string) {
	info, err := os.Stat(path) // follows links
	switch {
	case err != nil:
		f.Errs = append(f.Errs, err)
	case info.IsDir():
		f.Passed = append(f.Passed, path+" is a folder: manifests are read from the folder itself only")
	case !slices.Contains(endings, filepath.Ext(path)):
		f.Passed = append(f.Passed, fmt.Sprintf("%s is not read: the names of manifests end in %s", path, strings.Join(endings, ", ")))
	case info.Size() > maxFileBytes:
		f.refuse(path, fmt.Errorf("it is no file of at most %d MiB", maxFileBytes>>20))
	default:
		if info.Mode().Perm()&0o002 != 0 {
			f.Exposed = append(f.Exposed, path)
		}
		f.file(path)
	}
}

func (f *Folder) file(path string) {
	text, err := reload.ReadFile(path)
	if err != nil {
		f.Errs = append(f.Errs, err)
		return
	}
	documents, err := split(text, filepath.Ext(path) == ".json")
	for i, d := range documents {
		f.add(fmt.Sprintf("%s: document %d", path, i+1), d)
	}
	if err != nil {
		f.refuse(fmt.Sprintf("%s: document %d", path, len(documents)+1), err)
	}
}

func (f *Folder) refuse(origin string, err error) {
	f.Errs = append(f.Errs, fmt.Errorf("%s: %w", origin, err))
}

// split parts a file into the JSON of its documents, as far as it can be read.
// Empty documents of YAML are null.
func split(text []byte, isJSON bool) (documents []json.RawMessage, err error) {
	if isJSON {
		for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
			var d json.RawMessage
			if err := decoder.Decode(&d); errors.Is(err, io.EOF) {
				return documents, nil
			} else if err != nil {
				return documents, err
			}
			documents = append(documents, d)
		}
	}
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		chunk, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		} else if err != nil {
			return documents, err
		}
		d, err := types.YAMLToJSON(chunk) // which refuses repeated keys
		if err != nil {
			return documents, fmt.Errorf("it is no YAML: %w", err)
		}
		documents = append(documents, d)
	}
}

// list is Kubernetes' List of anything.
type list struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []json.RawMessage `json:"items"`
}

// add takes one document, or the items of one that is a list.
func (f *Folder) add(origin string, text json.RawMessage) {
	if string(bytes.TrimSpace(text)) == "null" {
		return
	}
	d := Document{Origin: origin, text: text}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &d.TypeMeta); err != nil {
		f.refuse(origin, err)
		return
	}
	if d.Kind != "List" || d.APIVersion != "v1" {
		f.Documents = append(f.Documents, d)
		return
	}
	var l list
	if err := d.Decode(&l); err != nil {
		f.refuse(origin+" (List)", err)
	}
	for i, item := range l.Items {
		f.add(fmt.Sprintf("%s, items[%d]", origin, i), item)
	}
}
