package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// manifest is a ConfigMap that a person wrote, and where.
type manifest struct {
	types.Document
	file string
	line int
}

func (m manifest) where() string { return fmt.Sprintf("%s:%d", m.file, m.line) }

// faultError is something wrong in a file, with the line that holds it.
type faultError struct {
	file    string
	line    int
	message string
}

func (e *faultError) Error() string { return fmt.Sprintf("%s:%d: %s", e.file, e.line, e.message) }

// readManifests reads every ConfigMap that the -f operands name: files, folders
// (not what lies below them) or - for stdin. What is wrong is collected, so
// that a person sees all of it at once.
func readManifests(paths []string, stdin io.Reader) ([]manifest, []error) {
	var found []manifest
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
			ms, errs := parseManifests(file, text)
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
		return nil, fileError(path, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fileError(path, err)
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
		return nil, fileError(path, err)
	}
	return text, nil
}

// fileError says it in a person's words.
func fileError(path string, err error) error {
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

// parseManifests takes the ConfigMaps out of one text: YAML or JSON, several
// documents, Lists.
func parseManifests(file string, text []byte) (found []manifest, faults []error) {
	file = display(file)
	if !utf8.Valid(text) {
		return nil, []error{fmt.Errorf("%s is not UTF-8 text", file)}
	}
	for _, d := range splitDocuments(text) {
		doc, err := parseYAML(d.text)
		if err != nil {
			faults = append(faults, yamlFault(file, err, d.line))
			continue
		}
		if doc == nil {
			continue // comments alone, or null
		}
		items := []types.Document{doc}
		isList := strings.HasSuffix(doc.Kind(), "List")
		if isList {
			if items, err = listItems(doc); err != nil {
				faults = append(faults, &faultError{file, d.line, err.Error()})
				continue
			}
		}
		src := &source{text: d.text, begin: d.line}
		for i, item := range items {
			var at []string
			if isList {
				at = []string{"items", strconv.Itoa(i)}
			}
			m := manifest{Document: item, file: file, line: src.line(at)}
			errs := m.check(src, at)
			if len(errs) == 0 {
				found = append(found, m)
			}
			faults = append(faults, errs...)
		}
	}
	return found, faults
}

// document is one of the documents of a stream. The text is preceded by as many
// empty lines as stand before it in the file, so that a parser's line numbers
// are the file's.
type document struct {
	line int // where its text begins, from 1
	text []byte
}

// splitDocuments cuts a YAML stream at its document markers. A marker at the
// start of a line ends a block scalar too, so that no parsing is needed.
func splitDocuments(text []byte) []document {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	var docs []document
	begin, line := 0, 1
	cut := func(end, nextBegin, nextLine int) {
		if len(bytes.TrimSpace(text[begin:end])) > 0 {
			blank := bytes.Repeat([]byte("\n"), line-1)
			docs = append(docs, document{line: firstLine(text[begin:end], line), text: append(blank, text[begin:end]...)})
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

// parseYAML decodes one YAML or JSON document; nil without an error if there is
// nothing in it. A key given twice is an error.
func parseYAML(text []byte) (types.Document, error) {
	asJSON, err := yaml.YAMLToJSONStrict(text)
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

// yamlFault takes the line and the plain message out of the YAML library's
// error; a fault without a line is put where the document begins.
func yamlFault(file string, err error, begin int) *faultError {
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	text = strings.TrimSpace(strings.TrimPrefix(text, "yaml: "))
	text = strings.TrimSpace(strings.TrimPrefix(text, "unmarshal errors:"))
	line := begin
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, message, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				line, text = n, message
			}
		}
	}
	if strings.HasPrefix(text, "did not find expected") {
		line++ // the library counts these from 0, and all others from 1
	}
	return &faultError{file, line, "not valid YAML: " + text}
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

// check finds what the server would refuse, or silently drop, and names the
// lines. at leads to the manifest inside the text.
func (m manifest) check(src *source, at []string) []error {
	fault := func(path []string, format string, args ...any) error {
		return &faultError{m.file, src.line(slices.Concat(at, path)), fmt.Sprintf(format, args...)}
	}
	switch {
	case m.Kind() == "":
		return []error{fault(nil, "no kind: a manifest begins with apiVersion: v1 and kind: ConfigMap")}
	case m.Kind() != "ConfigMap" || m.APIVersion() != "v1":
		return []error{fault([]string{"kind"}, "%s %s: cmctl writes ConfigMaps of v1 only", m.APIVersion(), m.Kind())}
	}
	faults := m.checkKeys(src, at, fault)
	if len(faults) > 0 {
		return faults
	}
	for _, p := range m.Problems(true) {
		message := p.Message
		if typed := src.typed(slices.Concat(at, p.Path)); typed != "" && strings.Contains(message, "must be a string") {
			message += fmt.Sprintf("; write it in quotes: %q", typed)
		}
		faults = append(faults, fault(p.Path, "%s", message))
	}
	for _, key := range sortedKeys(m.Document) {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "data", "binaryData", "immutable", "status"}, key) {
			faults = append(faults, fault([]string{key}, "unknown field %q; does it belong under data?", key))
		}
	}
	if len(faults) > 0 {
		return faults
	}
	if m.Name() == "" {
		return []error{fault([]string{"metadata"}, "metadata.name is missing")}
	}
	return m.checkRules(fault)
}

// checkKeys finds keys that YAML does not read as they are written: n, no and
// off are booleans there, 0755 is 493.
func (m manifest) checkKeys(src *source, at []string, fault func([]string, string, ...any) error) []error {
	var faults []error
	for _, path := range [][]string{{"data"}, {"binaryData"}, {"metadata", "labels"}, {"metadata", "annotations"}} {
		n := src.node(slices.Concat(at, path))
		entries, ok := m.mapAt(path)
		if n == nil || n.Kind != yamlv3.MappingNode || !ok {
			continue
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if _, ok := entries[key.Value]; !ok && key.Kind == yamlv3.ScalarNode && key.Value != "<<" {
				faults = append(faults, fault(slices.Concat(path, []string{key.Value}),
					"the key %s is not read as text by YAML; write it in quotes: %q", key.Value, key.Value))
			}
		}
	}
	return faults
}

func (m manifest) mapAt(path []string) (map[string]any, bool) {
	at := map[string]any(m.Document)
	for _, part := range path {
		next, ok := at[part].(map[string]any)
		if !ok {
			return nil, false
		}
		at = next
	}
	return at, true
}

// checkRules runs Kubernetes' own validation before anything is sent.
func (m manifest) checkRules(fault func([]string, string, ...any) error) []error {
	cm, err := client.ToConfigMap(m.WithoutNulls())
	if err != nil {
		return []error{fault(nil, "%v", err)}
	}
	if cm.Namespace == "" {
		cm.Namespace = "default"
	}
	cm.ManagedFields = nil // the server's, and dropped before sending
	var faults []error
	for _, e := range types.ValidateConfigMap(cm) {
		path := strings.FieldsFunc(e.Field, func(r rune) bool { return r == '[' || r == ']' })
		if len(path) > 0 {
			path = append(strings.Split(path[0], "."), path[1:]...)
		}
		faults = append(faults, fault(path, "%s", e.Error()))
	}
	return faults
}

func sortedKeys(d types.Document) []string {
	keys := make([]string, 0, len(d))
	for k := range d {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
