// Package manifest reads the ConfigMaps that people write: files, folders and
// standard input, YAML and JSON, several documents and Lists. What the server
// would refuse, or drop without a word, is found here with its file and line.
//
//	found, faults := manifest.Read(ctx, []string{"cm.yaml"}, manifest.Options{Stdin: os.Stdin})
package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"example.com/cmctl/cmd/cmctl/internal/intake"
	"example.com/cmctl/pkg/types"
)

// Manifest is a ConfigMap that a person wrote, and where.
type Manifest struct {
	types.Document
	File string
	Line int // of its first line, from 1; 0 if it was not read from a file

	doc *parsed  // nil if it was not read from a file
	at  []string // leads to it inside doc
}

// Where is the place as messages name it: cm.yaml:12.
func (m Manifest) Where() string {
	if m.Line == 0 {
		return m.File
	}
	return fmt.Sprintf("%s:%d", m.File, m.Line)
}

// FaultAt is a problem of a manifest that was read, with its file and line.
func (m Manifest) FaultAt(p types.Problem) *Fault {
	return &Fault{File: m.File, Line: m.doc.LineOf(slices.Concat(m.at, p.Path)), Message: p.Message}
}

// Fault is something wrong in a file, with the line that holds it.
type Fault struct {
	File    string
	Line    int
	Message string
	// OtherKind: the object is no ConfigMap. Nothing may be wrong with it.
	OtherKind bool
}

func (e *Fault) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message) }

// HasOtherKinds tells whether one of the faults is an object of another kind.
func HasOtherKinds(faults []error) bool {
	return slices.ContainsFunc(faults, func(err error) bool {
		var fault *Fault
		return errors.As(err, &fault) && fault.OtherKind
	})
}

// Options say how Read reads. The zero value is usable, without standard input.
type Options struct {
	Stdin io.Reader
	// Recursive reads what lies below folders too.
	Recursive bool
	// Stringify takes values of data, labels and annotations that aren't strings
	// as they were typed.
	Stringify bool
	// Unnamed takes what has a generateName in the place of a name.
	Unnamed bool
	// SkipOtherKinds passes over objects that are no ConfigMaps. A path that names
	// nothing else is fine as long as another one holds a ConfigMap.
	SkipOtherKinds bool
	// Skipped is called with each object that was passed over, and why. Nil is
	// fine.
	Skipped func(what string)
	// SkippedFile is called with each file of a folder that wasn't read, and why.
	// Nil is fine.
	SkippedFile func(what string)
}

// Read reads every ConfigMap that the -f operands name: files, folders,
// patterns such as cm/*.yaml, or - for stdin. What is wrong is collected, so that
// a person sees all of it at once. The end of the context ends it, whatever a file
// waits for.
func Read(ctx context.Context, paths []string, o Options) (found []Manifest, faults []error) {
	var empty []error
	for _, path := range paths {
		files, errs := o.files(path)
		faults = append(faults, errs...)
		read, skipped := len(errs), 0
		for _, p := range o.parsers(ctx, files) {
			for _, what := range p.skipped {
				if o.Skipped != nil {
					o.Skipped(what)
				}
			}
			found, faults = append(found, p.found...), append(faults, p.faults...)
			read += len(p.found) + len(p.faults)
			skipped += p.others
		}
		switch err := fmt.Errorf("%s holds no ConfigMap", display(path)); {
		case read > 0:
		case skipped > 0:
			empty = append(empty, err)
		default:
			faults = append(faults, err)
		}
	}
	if len(found)+len(faults) == 0 {
		faults = empty
	}
	return found, faults
}

// parsers are the files taken apart, several at once.
func (o Options) parsers(ctx context.Context, files []string) []*parser {
	all := make([]*parser, len(files))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(len(files), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(files); i = int(next.Add(1)) - 1 {
				p := &parser{Options: o, file: display(files[i]), format: formatOf(files[i])}
				if text, err := o.text(ctx, files[i]); err != nil {
					p.faults = append(p.faults, err)
				} else {
					p.parse(text)
				}
				all[i] = p
			}
		})
	}
	workers.Wait()
	return all
}

func (o Options) text(ctx context.Context, path string) ([]byte, error) {
	if path != "-" {
		text, err := intake.File(ctx, path, intake.MaxManifests)
		if err != nil {
			return nil, intake.FileError(path, err)
		}
		return text, nil
	}
	text, err := intake.All(ctx, o.Stdin, intake.MaxManifests)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return text, nil
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
func Parse(file string, text []byte, format Format, known types.Document) (found []Manifest, faults []error) {
	p := parser{file: display(file), format: format, known: known}
	p.parse(text)
	return p.found, p.faults
}

// parser takes one text apart.
type parser struct {
	Options
	file   string
	format Format
	known  types.Document // what the person was shown, nil if they wrote it all

	found   []Manifest
	faults  []error
	others  int      // objects that were passed over
	skipped []string // what Options.Skipped is to be told of them
}

func (p *parser) parse(text []byte) {
	if err := intake.CheckText(p.file, text); err != nil {
		p.faults = append(p.faults, err)
		return
	}
	for _, d := range Split(text) {
		docs, err := parseDocuments(d, p.format)
		if err != nil {
			p.faults = append(p.faults, faultOf(p.file, err, d.Line))
		}
		for _, doc := range docs {
			p.document(doc)
		}
	}
}

// document takes the manifest that a document is, or those in a List.
func (p *parser) document(doc parsed) {
	if !strings.HasSuffix(doc.Kind(), "List") {
		p.object(doc.Document, &doc, nil)
		return
	}
	items, err := listItems(doc.Document)
	if err != nil {
		p.faults = append(p.faults, &Fault{File: p.file, Line: doc.Begin, Message: err.Error()})
	}
	for i, item := range items {
		p.object(item, &doc, []string{"items", strconv.Itoa(i)})
	}
}

// object takes what stands at a place of a document.
func (p *parser) object(item types.Document, doc *parsed, at []string) {
	c := checker{Manifest: Manifest{Document: item, File: p.file, doc: doc, at: at}, known: p.known, unnamed: p.Unnamed}
	c.Line = doc.LineOf(at)
	if p.SkipOtherKinds && c.otherKind() {
		p.others++
		if p.Skipped != nil {
			p.skipped = append(p.skipped, fmt.Sprintf("%s: %s passed over: it is no ConfigMap", c.Where(), c.title()))
		}
		return
	}
	if p.Stringify {
		c.stringify()
	}
	if errs := c.check(); len(errs) > 0 {
		p.faults = append(p.faults, errs...)
		return
	}
	p.found = append(p.found, c.Manifest)
}

func listItems(list types.Document) ([]types.Document, error) {
	raw, ok := list["items"].([]any)
	if !ok && list["items"] != nil {
		return nil, fmt.Errorf("the items of the %s are no list", list.Kind())
	}
	if _, there := list["items"]; !there {
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
