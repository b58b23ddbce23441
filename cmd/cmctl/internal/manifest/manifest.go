// Package manifest reads the ConfigMaps that people write: files, folders and
// standard input, YAML and JSON, several documents and Lists. What the server
// would refuse, or drop without a word, is found here with its file and line.
//
//	found, faults := manifest.Read([]string{"cm.yaml"}, os.Stdin)
package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"example.com/cmctl/pkg/types"
)

// Manifest is a ConfigMap that a person wrote, and where.
type Manifest struct {
	types.Document
	File string
	Line int // of its first line, from 1; 0 if it was not read from a file
}

// Where is the place as messages name it: cm.yaml:12.
func (m Manifest) Where() string {
	if m.Line == 0 {
		return m.File
	}
	return fmt.Sprintf("%s:%d", m.File, m.Line)
}

// Fault is something wrong in a file, with the line that holds it.
type Fault struct {
	File    string
	Line    int
	Message string
}

func (e *Fault) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message) }

// Read reads every ConfigMap that the -f operands name: files, folders
// (not what lies below them) or - for stdin. What is wrong is collected, so
// that a person sees all of it at once.
func Read(paths []string, stdin io.Reader) ([]Manifest, []error) {
	var found []Manifest
	var faults []error
	for _, path := range paths {
		files, err := manifestFiles(path)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		before := len(found) + len(faults)
		for _, file := range files {
			text, err := readSource(file, stdin)
			if err != nil {
				faults = append(faults, err)
				continue
			}
			ms, errs := Parse(file, text, nil)
			found, faults = append(found, ms...), append(faults, errs...)
		}
		if len(found)+len(faults) == before {
			faults = append(faults, fmt.Errorf("%s holds no ConfigMap", display(path)))
		}
	}
	return found, faults
}

func manifestFiles(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, FileError(path, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, FileError(path, err)
	}
	var files []string
	for _, e := range entries {
		ext := strings.ToLower(filepath.Ext(e.Name()))
		if !strings.HasPrefix(e.Name(), ".") && (ext == ".yaml" || ext == ".yml" || ext == ".json") {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("the folder %s holds no manifest: no file in it ends in .yaml, .yml or .json", path)
	}
	return files, nil
}

func readSource(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		text, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return text, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, FileError(path, err)
	}
	return text, nil
}

// FileError says in a person's words why a file can't be used: path: no such file or
// directory.
func FileError(path string, err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

func display(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// Parse takes the ConfigMaps out of one text: YAML or JSON, several
// documents, Lists. Fields that this release doesn't know are refused, for a
// misspelt one would be dropped by the server; those that known has are kept.
func Parse(file string, text []byte, known types.Document) (found []Manifest, faults []error) {
	file = display(file)
	if !utf8.Valid(text) {
		return nil, []error{fmt.Errorf("%s is not UTF-8 text", file)}
	}
	for _, d := range Split(text) {
		docs, err := parseDocuments(d.Text)
		if err != nil {
			faults = append(faults, yamlFault(file, err, d.Line))
			continue
		}
		for _, doc := range docs {
			ms, errs := manifestsIn(file, doc, &Source{Text: d.Text, Begin: d.Line}, known)
			found, faults = append(found, ms...), append(faults, errs...)
		}
	}
	return found, faults
}

// manifestsIn is the manifest that a document is, or those in a List.
func manifestsIn(file string, doc types.Document, src *Source, known types.Document) (found []Manifest, faults []error) {
	items := []types.Document{doc}
	isList := strings.HasSuffix(doc.Kind(), "List")
	if isList {
		var err error
		if items, err = listItems(doc); err != nil {
			return nil, []error{&Fault{file, src.Begin, err.Error()}}
		}
	}
	for i, item := range items {
		c := checker{Manifest: Manifest{Document: item, File: file}, src: src, known: known}
		if isList {
			c.at = []string{"items", strconv.Itoa(i)}
		}
		c.Line = src.LineOf(c.at)
		if errs := c.check(); len(errs) > 0 {
			faults = append(faults, errs...)
			continue
		}
		found = append(found, c.Manifest)
	}
	return found, faults
}

func listItems(list types.Document) ([]types.Document, error) {
	raw, ok := list["items"].([]any)
	if !ok {
		return nil, fmt.Errorf("%s has no items", list.Kind())
	}
	items := make([]types.Document, 0, len(raw))
	for i, e := range raw {
		item, ok := e.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("item %d of the %s is not an object", i, list.Kind())
		}
		if list.Kind() == "ConfigMapList" && item["kind"] == nil {
			item["kind"], item["apiVersion"] = "ConfigMap", "v1"
		}
		items = append(items, item)
	}
	return items, nil
}
