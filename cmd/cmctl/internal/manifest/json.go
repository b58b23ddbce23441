package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"example.com/cmctl/pkg/types"
)

// Format is what a text is meant to be.
type Format int

const (
	// Any is JSON if it begins so, else YAML.
	Any Format = iota
	// JSON is JSON and nothing else.
	JSON
)

// formatOf is the format that a file's name promises.
func formatOf(path string) Format {
	if strings.EqualFold(filepath.Ext(path), ".json") {
		return JSON
	}
	return Any
}

// ToJSON is a text with one JSON value or one YAML document as JSON. An error
// begins with "line N: " where the line is known.
func ToJSON(text []byte) ([]byte, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	values, isJSON, err := jsonValues(text, Any)
	switch {
	case err != nil:
		return nil, err
	case isJSON && len(values) == 1:
		return values[0].text, nil
	case isJSON:
		return nil, &lineError{values[1].line, "another JSON value begins here; one is taken"}
	}
	asJSON, err := types.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	return asJSON, checkFlow(text)
}

// lineError is something wrong at a line, in the words that a person reads.
type lineError struct {
	line    int
	message string
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.message) }

// jsonValue is one value of a text.
type jsonValue struct {
	text []byte
	line int // where it begins
}

// jsonValues takes a text apart if it is meant as JSON. That is read as what it
// is, or refused: as YAML its strings would mean something else (a raw line feed
// is a blank there, U+2028 breaks a line, \/ is unknown), and much that is broken
// JSON is YAML. Not meant as JSON is what can't be parsed as such and doesn't look
// like it either: a YAML flow map.
func jsonValues(text []byte, format Format) (values []jsonValue, isJSON bool, err error) {
	text = blankLead(text)
	inBrackets, likeJSON := opening(text)
	if format != JSON && !inBrackets {
		return nil, false, nil
	}
	values, err = splitJSON(text)
	var broken *lineError
	switch {
	case err == nil, errors.As(err, new(*repeatedKeyError)):
		return values, true, err
	case errors.As(err, &broken) && format == JSON:
		broken.message = "not valid JSON: " + broken.message
	case errors.As(err, &broken) && likeJSON:
		broken.message = "this looks like JSON, and is not valid: " + broken.message + "; if YAML is meant, write it without the brackets"
	default:
		return nil, false, nil
	}
	return nil, true, err
}

// repeatedKeyError is a key that a JSON object has twice.
type repeatedKeyError struct{ *lineError }

func (e *repeatedKeyError) Unwrap() error { return e.lineError }

func splitJSON(text []byte) (values []jsonValue, err error) {
	lineAt := func(offset int64) int { return 1 + bytes.Count(text[:min(offset, int64(len(text)))], []byte("\n")) }
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		var syntax *json.SyntaxError
		switch {
		case errors.Is(err, io.EOF):
			return values, nil
		case errors.As(err, &syntax):
			return nil, &lineError{lineAt(max(syntax.Offset-1, 0)), syntax.Error()}
		case err != nil: // it ends too soon
			return nil, &lineError{lineAt(int64(len(bytes.TrimRight(text, " \t\r\n")))), "it ends within a value"}
		}
		line := lineAt(dec.InputOffset() - int64(len(raw)))
		again, err := repeatedField(json.NewDecoder(bytes.NewReader(raw)), "")
		switch {
		case err != nil:
			return nil, &lineError{line, err.Error()}
		case again != "":
			return nil, &repeatedKeyError{&lineError{line, fmt.Sprintf("duplicate field %q", again)}}
		}
		values = append(values, jsonValue{raw, line})
	}
}

// repeatedField is the path of the first key that an object of the next value has
// twice, empty if there is none. Numbers are left as they are: JSON's may be
// larger than any that Go has.
func repeatedField(dec *json.Decoder, path string) (string, error) {
	dec.UseNumber()
	begin, err := dec.Token()
	if err != nil || begin != json.Delim('{') && begin != json.Delim('[') {
		return "", err
	}
	seen := map[string]bool{}
	for i := 0; dec.More(); i++ {
		at := fmt.Sprintf("%s[%d]", path, i)
		if begin == json.Delim('{') {
			key, err := dec.Token()
			if err != nil {
				return "", err
			}
			name := key.(string) // the decoder takes nothing else
			at = joined(path, name)
			if seen[name] {
				return at, nil
			}
			seen[name] = true
		}
		if again, err := repeatedField(dec, at); again != "" || err != nil {
			return again, err
		}
	}
	_, err = dec.Token()
	return "", err
}

// opening tells whether a text begins with a bracket, and whether a double quote
// follows as in JSON.
func opening(text []byte) (inBrackets, likeJSON bool) {
	text = bytes.TrimLeft(text, " \t\r\n")
	inside := bytes.TrimLeft(text, "{[ \t\r\n")
	return len(text) > 0 && (text[0] == '{' || text[0] == '['), len(inside) < len(text) && len(inside) > 0 && inside[0] == '"'
}

// blankLead puts blanks in the place of what may stand before the content of a
// document: comments, directives and its marker. Lines stay what they are.
func blankLead(text []byte) []byte {
	at := 0
	for line := range bytes.Lines(text) {
		bare := bytes.TrimSpace(line)
		if isMarker(bytes.TrimRight(line, "\r\n")) {
			at += len("---")
			bare = bytes.TrimSpace(line[len("---"):])
			line = line[len("---"):]
		}
		if len(bare) > 0 && bare[0] != '#' && bare[0] != '%' {
			break
		}
		at += len(line)
	}
	blank := bytes.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return ' '
	}, text[:at])
	return append(blank, text[at:]...)
}
