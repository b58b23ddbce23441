package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"example.com/cmctl/pkg/types"
	kjson "sigs.k8s.io/json"
)

// Part is one of the documents of a stream. The text is preceded by as many
// empty lines as stand before it in the file, so that a parser's line numbers
// are the file's.
type Part struct {
	Line int // where its text begins, from 1
	Text []byte
}

// Split cuts a YAML stream at its document markers. A marker at the
// start of a line ends a block scalar too, so that no parsing is needed.
func Split(text []byte) []Part {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	var docs []Part
	begin, line := 0, 1
	cut := func(end, nextBegin, nextLine int) {
		if len(bytes.TrimSpace(text[begin:end])) > 0 {
			blank := bytes.Repeat([]byte("\n"), line-1)
			docs = append(docs, Part{Line: firstLine(text[begin:end], line), Text: append(blank, text[begin:end]...)})
		}
		begin, line = nextBegin, nextLine
	}
	at, n := 0, 0
	for l := range bytes.Lines(text) {
		n++
		bare := bytes.TrimRight(l, "\r\n")
		switch {
		case bytes.Equal(bare, []byte("...")):
			cut(at, at+len(l), n+1)
		case isMarker(bare) && !onlyDirectives(text[begin:at]):
			cut(at, at, n)
		}
		at += len(l)
	}
	cut(len(text), len(text), n)
	return docs
}

func isMarker(line []byte) bool {
	return bytes.HasPrefix(line, []byte("---")) && (len(line) == 3 || line[3] == ' ' || line[3] == '\t')
}

// onlyDirectives is true for lines that belong to the document after the next
// marker: a %YAML directive, with comments around it.
func onlyDirectives(text []byte) bool {
	directive := false
	for l := range bytes.Lines(text) {
		l = bytes.TrimSpace(l)
		switch {
		case len(l) == 0 || l[0] == '#':
		case l[0] == '%':
			directive = true
		default:
			return false
		}
	}
	return directive
}

// firstLine is the number of the first line that is neither blank, comment nor
// marker.
func firstLine(text []byte, line int) int {
	first := line
	for l := range bytes.Lines(text) {
		l = bytes.TrimSpace(l)
		if len(l) > 0 && l[0] != '#' && l[0] != '%' && !bytes.Equal(l, []byte("---")) {
			return first
		}
		first++
	}
	return line
}

// parsed is a document with the text that it came from.
type parsed struct {
	types.Document
	Source
	json bool // its values are as they were typed
}

// parseDocuments decodes one YAML document, or the JSON values one after the
// other that stand in its place; none if there is nothing in it. JSON is read as
// what it is: as YAML its strings would mean something else (U+2028 breaks a
// line there, \/ is unknown). A key given twice is an error.
func parseDocuments(part Part) ([]parsed, error) {
	if start := bytes.TrimLeft(part.Text, " \t\r\n"); len(start) > 0 && start[0] == '{' {
		if docs, err := parseJSON(part.Text); err == nil || errors.As(err, new(*repeatedKeyError)) {
			return docs, err
		}
		// A YAML flow map, or broken: YAML's parser tells the line.
	}
	doc, err := ParseYAML(part.Text)
	if doc == nil {
		return nil, err
	}
	return []parsed{{Document: doc, Source: Source{Text: part.Text, Begin: part.Line}}}, nil
}

// repeatedKeyError is a key that a JSON object has twice.
type repeatedKeyError struct {
	line    int // where the object begins
	message string
}

func (e *repeatedKeyError) Error() string { return e.message }

func parseJSON(text []byte) (docs []parsed, err error) {
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var raw json.RawMessage
		switch err := dec.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return docs, nil
		case err != nil:
			return nil, err
		}
		before := bytes.Count(text[:dec.InputOffset()-int64(len(raw))], []byte("\n"))
		var strict map[string]any
		repeated, err := kjson.UnmarshalStrict(raw, &strict)
		if err != nil {
			return nil, err
		}
		if len(repeated) > 0 {
			return nil, &repeatedKeyError{before + 1, repeated[0].Error()}
		}
		doc, err := types.ParseDocument(raw)
		if err != nil {
			return nil, err
		}
		alone := append(bytes.Repeat([]byte("\n"), before), raw...)
		docs = append(docs, parsed{Document: doc, Source: Source{Text: alone, Begin: before + 1}, json: true})
	}
}

// ParseYAML decodes one YAML document; nil without an error if there is nothing
// in it.
func ParseYAML(text []byte) (types.Document, error) {
	asJSON, err := types.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(bytes.TrimSpace(asJSON), []byte("null")) {
		return nil, nil
	}
	if asJSON[0] != '{' {
		return nil, errors.New("a manifest is a map with apiVersion, kind, metadata and data, and this is not a map")
	}
	return types.ParseDocument(asJSON)
}

// yamlFault takes the line out of an error of types.YAMLToJSON; a fault without
// a line is put where the document begins.
func yamlFault(file string, err error, begin int) *Fault {
	var repeated *repeatedKeyError
	if errors.As(err, &repeated) {
		return &Fault{File: file, Line: repeated.line, Message: err.Error()}
	}
	line, text := begin, err.Error()
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, message, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				line, text = n, message
			}
		}
	}
	return &Fault{File: file, Line: line, Message: "not valid YAML: " + text}
}
