package manifest

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"example.com/cmctl/pkg/types"
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
// other that stand in its place; none if there is nothing in it.
func parseDocuments(part Part, format Format) ([]parsed, error) {
	if values, isJSON, err := jsonValues(part.Text, format); isJSON {
		return fromJSON(values, err)
	}
	doc, err := ParseYAML(part.Text)
	if err != nil {
		doc, err = parseInfinite(part.Text, err)
	}
	if err == nil {
		err = checkFlow(part.Text)
	}
	if doc == nil || err != nil {
		return nil, err
	}
	return []parsed{{Document: doc, Source: Source{Text: part.Text, Begin: part.Line}}}, nil
}

func fromJSON(values []jsonValue, err error) ([]parsed, error) {
	if err != nil {
		return nil, err
	}
	var docs []parsed
	for _, v := range values {
		if v.text[0] != '{' {
			return nil, &lineError{v.line, errNoMap.Error()}
		}
		doc, err := types.ParseDocument(v.text)
		if err != nil {
			return nil, &lineError{v.line, err.Error()}
		}
		alone := append(bytes.Repeat([]byte("\n"), v.line-1), v.text...)
		docs = append(docs, parsed{Document: doc, Source: Source{Text: alone, Begin: v.line}, json: true})
	}
	return docs, nil
}

var errNoMap = errors.New("a manifest is a map with apiVersion, kind, metadata and data, and this is not a map")

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
		return nil, errNoMap
	}
	return types.ParseDocument(asJSON)
}

// faultOf takes the line out of an error of parseDocuments; a fault without
// a line is put where the document begins.
func faultOf(file string, err error, begin int) *Fault {
	var broken *lineError
	if errors.As(err, &broken) {
		return &Fault{File: file, Line: broken.line, Message: broken.message}
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
