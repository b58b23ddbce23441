// Package content knows the formats in which people keep configuration inside
// the values of a ConfigMap: it tells whether a text is sound, and whether a text
// that two sides' changes were put together in says what each of them meant.
//
//	if format := content.FormatOf("app.yaml"); format != "" {
//		tree, err := content.Parse(format, text)
//	}
//
// Texts come from anybody: parsing is bounded in depth, and aliases are not
// followed. All functions may be called at the same time.
package content

import (
	"fmt"
	"path"
	"strings"
)

// Format is one of the formats that Parse reads; empty stands for any other.
type Format string

// The formats.
const (
	YAML       Format = "YAML"
	JSON       Format = "JSON"
	TOML       Format = "TOML"
	INI        Format = "INI"
	Properties Format = "properties"
)

var extensions = map[string]Format{
	".yaml": YAML, ".yml": YAML, ".json": JSON, ".toml": TOML, ".ini": INI, ".properties": Properties,
}

// FormatOf is the format of the value under a key, by the key's ending.
func FormatOf(key string) Format { return extensions[strings.ToLower(path.Ext(key))] }

// Error says what is wrong with a text. Line counts from 1; 0 is a fault that
// has no place.
type Error struct {
	Line    int
	Message string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Message)
}

func faultf(line int, format string, args ...any) *Error {
	return &Error{Line: line, Message: fmt.Sprintf(format, args...)}
}

// repeated is the fault of a key that is there twice.
func repeated(line int, key string, first int) *Error {
	return faultf(line, "key %q is already set on line %d", key, first)
}

// Parse reads a text. Repeated keys are an error, although some programs take
// the last of them. A text without content is sound in every format. The error is
// a *Error.
func Parse(format Format, text string) (tree *Tree, err error) {
	defer func() {
		// Some parsers panic on broken texts, which is no reason to end.
		if cause := recover(); cause != nil {
			tree, err = nil, faultf(0, "the %s parser failed: %v", format, cause)
		}
	}()
	text = strings.TrimPrefix(text, "\ufeff")
	if strings.TrimSpace(text) == "" {
		return newLeaf(""), nil
	}
	parse, known := parsers[format]
	if !known {
		return nil, faultf(0, "format %q is not known", format)
	}
	return parse(text)
}

// parsers read texts that are not blank.
var parsers = map[Format]func(text string) (*Tree, error){
	YAML: parseYAML, JSON: parseJSON, TOML: parseTOML, INI: parseINI, Properties: parseProperties,
}

// maxDepth is how deep values may lie inside each other.
const maxDepth = 10_000

// lineAt is the line on which a byte of the text is.
func lineAt(text string, offset int) int {
	return 1 + strings.Count(text[:min(max(offset, 0), len(text))], "\n")
}
