package conformance

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// normalizer replaces what differs from run to run by symbols: <rv1> is the
// first version that the scenario shows, wherever it appears. It belongs to one
// replay of one scenario.
type normalizer struct {
	namespaces *strings.Replacer // real namespaces to their placeholders
	prefixes   []string          // of names that the server completes
	requests   string            // the scenario's text: uids in it are not the server's
	now        time.Time

	uids, versions, names symbols
}

// symbols numbers values in the order in which they come up.
type symbols struct {
	kind  string
	known map[string]string
}

func newSymbols(kind string) symbols { return symbols{kind, map[string]string{}} }

func (s symbols) of(value string) string {
	symbol, ok := s.known[value]
	if !ok {
		symbol = fmt.Sprintf("<%s%d>", s.kind, len(s.known)+1)
		s.known[value] = symbol
	}
	return symbol
}

// ifKnown leaves a value alone that has not come up.
func (s symbols) ifKnown(value string) string {
	return cmp.Or(s.known[value], value)
}

// newNormalizer takes the values for which the placeholders of the scenario's
// namespaces stand.
func newNormalizer(sc Scenario, namespaces values, now time.Time) *normalizer {
	var pairs []string
	for name, namespace := range namespaces {
		pairs = append(pairs, namespace, "{"+name+"}")
	}
	n := &normalizer{
		namespaces: strings.NewReplacer(pairs...),
		requests:   sc.text,
		now:        now,
		uids:       newSymbols("uid"),
		versions:   newSymbols("rv"),
		names:      newSymbols("gen"),
	}
	for step := range everyStep(sc.Steps) {
		if prefix := generateName(step, namespaces); prefix != "" {
			n.prefixes = append(n.prefixes, prefix)
		}
	}
	return n
}

// generateName is the prefix from which a step lets the server make a name.
func generateName(s Step, v values) string {
	const most = 58 // bytes that Kubernetes keeps of a prefix
	body, err := decodeJSON(s.Body)
	if err != nil {
		return ""
	}
	prefix, err := v.expand(dig(body, "metadata.generateName"))
	if err != nil {
		return ""
	}
	text, _ := prefix.(string)
	return text[:min(len(text), most)]
}

// value normalizes a JSON value.
func (n *normalizer) value(v any) any { return n.under(v, "", false) }

// bookmark normalizes the object of a bookmark, whose version is the store's.
func (n *normalizer) bookmark(v any) any { return n.under(v, "", true) }

// under normalizes a value that stands under a key; "" if under none.
func (n *normalizer) under(v any, key string, bookmark bool) any {
	switch v := v.(type) {
	case object:
		return n.object(v, bookmark)
	case array:
		out := array{}
		for _, item := range v {
			out = append(out, n.under(item, "", bookmark))
		}
		return out
	case string:
		switch key {
		case "creationTimestamp", "deletionTimestamp", "time":
			v = n.time(v)
		}
		return n.text(v)
	default:
		return v
	}
}

func (n *normalizer) object(o object, bookmark bool) object {
	ofStore := bookmark || showsStoreVersion(o.text("kind"))
	out := object{}
	for _, m := range o {
		var value any
		switch metadata, isObject := m.value.(object); {
		case m.key == "metadata" && isObject:
			value = n.metadata(metadata, ofStore)
		case m.key == "cells":
			value = n.cells(m.value)
		case m.key == "causes":
			value = sortConflicts(n.under(m.value, "", bookmark))
		default:
			value = n.under(m.value, m.key, bookmark)
		}
		out = out.with(n.text(m.key), value)
	}
	return out
}

// showsStoreVersion is whether the version of such an object is that of the
// whole store, which other writers move.
func showsStoreVersion(kind string) bool {
	return strings.HasSuffix(kind, "List") || kind == "Table" || kind == "Status"
}

var number = regexp.MustCompile(`^[0-9]+$`)

func (n *normalizer) metadata(o object, ofStore bool) object {
	out := object{}
	for _, m := range o {
		text, _ := m.value.(string)
		entries, isArray := m.value.(array)
		value := m.value
		switch {
		case m.key == "resourceVersion" && number.MatchString(text) && text != "0":
			value = "<listrv>"
			if !ofStore {
				value = n.versions.of(text)
			}
		case m.key == "continue" && text != "":
			value = "<continue>"
		case m.key == "managedFields" && isArray:
			value = n.managedFields(entries)
		default:
			value = n.under(m.value, m.key, false)
		}
		out = append(out, member{m.key, value})
	}
	return out
}

// managedFields must come sorted by operation, time and manager; what does not
// is marked. They are then compared without the time, since whether two writes
// fall into one second is chance.
func (n *normalizer) managedFields(entries array) array {
	sorted := slices.IsSortedFunc(entries, byMembers("operation", "time", "manager", "apiVersion"))
	out, _ := n.value(entries).(array)
	if !sorted {
		return append(array{"<not in the order operation, time, manager>"}, out...)
	}
	slices.SortStableFunc(out, byMembers("operation", "manager", "apiVersion"))
	return out
}

// sortConflicts sorts the causes of an apply's conflict, whose order varies.
func sortConflicts(causes any) any {
	list, ok := causes.(array)
	if !ok {
		return causes
	}
	for _, cause := range list {
		if o, ok := cause.(object); !ok || o.get("reason") != "FieldManagerConflict" {
			return causes
		}
	}
	slices.SortStableFunc(list, byMembers("message", "field"))
	return list
}

// byMembers orders objects by the texts of these members.
func byMembers(keys ...string) func(a, b any) int {
	return func(a, b any) int {
		left, _ := a.(object)
		right, _ := b.(object)
		for _, key := range keys {
			if c := strings.Compare(left.text(key), right.text(key)); c != 0 {
				return c
			}
		}
		return 0
	}
}

var age = regexp.MustCompile(`^(\d+(y|d|h|m|s|ms))+$`)

// cells normalizes a table's row.
func (n *normalizer) cells(v any) any {
	row, ok := v.(array)
	if !ok {
		return n.value(v)
	}
	out := array{}
	for _, cell := range row {
		if text, ok := cell.(string); ok && age.MatchString(text) {
			out = append(out, "<age>")
		} else {
			out = append(out, n.value(cell))
		}
	}
	return out
}

// time replaces a time that the server may have just set.
func (n *normalizer) time(text string) string {
	const (
		format = "2006-01-02T15:04:05Z"
		near   = 48 * time.Hour
	)
	t, err := time.Parse(format, text)
	// Parse also takes what is not quite of this format.
	if err != nil || t.Format(format) != text || t.Sub(n.now).Abs() >= near {
		return text
	}
	return "<time>"
}

var uuid = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)

// quote is a form in which a text names a value, by its second group. What lacks
// the hint has no such form: values may be long, and patterns take their time.
type quote struct {
	hint    string
	pattern *regexp.Regexp
}

var (
	// Where a message names the version that an object has.
	liveVersion = quote{"esourceVersion", regexp.MustCompile(
		`(does not match the ResourceVersion in record \(|ResourceVersion in object meta: |sent resourceVersion [^ ,]+, current )(\d+)`)}
	// Where it names the version that the request sent.
	sentVersion = quote{"esourceVersion", regexp.MustCompile(
		`(the ResourceVersion in the precondition \(|ResourceVersion in precondition: |sent resourceVersion )(\d+)`)}
	// Where it names the version of the store.
	storeVersion = quote{"resource version: ", regexp.MustCompile(
		`(too old resource version: \d+ \(|Too large resource version: \d+, current: )(\d+)`)}
	// Where it quotes an object.
	quotedVersion = quote{"resourceVersion", regexp.MustCompile(`(\\?"resourceVersion\\?":\\?")(\d+)`)}
	quotedCreated = quote{"creationTimestamp", regexp.MustCompile(`(\\?"creationTimestamp\\?":\\?")([^"\\]+)`)}
	quotedTime    = quote{"time", regexp.MustCompile(`(\\?"time\\?":\\?")([^"\\]+)`)}
	// Where it names a source file of the server.
	scheme = quote{"in scheme ", regexp.MustCompile(`(in scheme ")([^"]*)`)}
)

// text normalizes any text: names, uids, and what messages quote.
func (n *normalizer) text(s string) string {
	s = n.generatedNames(n.namespaces.Replace(shortenRuns(s)))
	if strings.Contains(s, "-") {
		s = uuid.ReplaceAllStringFunc(s, n.uid)
	}
	s = liveVersion.replace(s, n.versions.of)
	s = sentVersion.replace(s, n.versions.ifKnown)
	s = quotedVersion.replace(s, n.versions.of)
	s = quotedCreated.replace(s, n.time)
	s = quotedTime.replace(s, n.time)
	s = scheme.replace(s, func(string) string { return "<scheme>" })
	return storeVersion.replace(s, func(string) string { return "<listrv>" })
}

func (q quote) replace(s string, with func(string) string) string {
	if !strings.Contains(s, q.hint) {
		return s
	}
	var out strings.Builder
	end := 0
	for _, groups := range q.pattern.FindAllStringSubmatchIndex(s, -1) {
		start := groups[4]
		out.WriteString(s[end:start])
		end = groups[5]
		out.WriteString(with(s[start:end]))
	}
	out.WriteString(s[end:])
	return out.String()
}

func (n *normalizer) uid(s string) string {
	if strings.Contains(n.requests, s) {
		return s
	}
	return n.uids.of(s)
}

// generatedNames replaces each name that is a prefix with five characters of
// the server's behind it.
func (n *normalizer) generatedNames(s string) string {
	const suffix = 5
	for _, prefix := range n.prefixes {
		var out strings.Builder
		for from := 0; ; {
			i := strings.Index(s[from:], prefix)
			if i < 0 {
				out.WriteString(s[from:])
				break
			}
			start := from + i
			end := start + len(prefix) + suffix
			if !isName(s, start, end, len(prefix)) {
				out.WriteString(s[from : start+1])
				from = start + 1
				continue
			}
			out.WriteString(s[from:start] + n.names.of(s[start:end]))
			from = end
		}
		s = out.String()
	}
	return s
}

// isName is whether s[start:end] ends in characters that the server adds to a
// prefix of this length, and goes on on neither side.
func isName(s string, start, end, prefix int) bool {
	if end > len(s) || start > 0 && isNameByte(s[start-1]) || end < len(s) && isNameByte(s[end]) {
		return false
	}
	for _, b := range []byte(s[start+prefix : end]) {
		if b == '-' || !isNameByte(b) {
			return false
		}
	}
	return true
}

func isNameByte(b byte) bool {
	return b == '-' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z'
}

var (
	yamlTable        = regexp.MustCompile(`(?m)^kind: Table$`)
	yamlAge          = quote{"cells:", regexp.MustCompile(`(?m)^(\s*- )((?:\d+(?:y|d|h|m|s|ms))+)$`)}
	yamlList         = regexp.MustCompile(`(?m)^kind: (\w+List|Table)$`)
	yamlStoreVersion = quote{"resourceVersion", regexp.MustCompile(`(?m)^(  resourceVersion: ")(\d+)`)}
	yamlVersion      = quote{"resourceVersion", regexp.MustCompile(`(?m)^(\s*resourceVersion: ")(\d+)`)}
	yamlTime         = quote{"time", regexp.MustCompile(`(?m)^(\s*(?:- )?time: ")([^"]*)`)}
	yamlCreated      = quote{"creationTimestamp", regexp.MustCompile(`(?m)^(\s*(?:- )?creationTimestamp: ")([^"]*)`)}
)

// yaml normalizes a YAML body, which is compared as a text.
func (n *normalizer) yaml(s string) string {
	if yamlList.MatchString(s) {
		s = yamlStoreVersion.replace(s, func(string) string { return "<listrv>" })
	}
	if yamlTable.MatchString(s) {
		s = yamlAge.replace(s, func(string) string { return "<age>" })
	}
	s = yamlVersion.replace(s, n.versions.of)
	s = yamlCreated.replace(s, n.time)
	s = yamlTime.replace(s, n.time)
	return n.text(s)
}

// shortenRuns writes 40 or more repetitions of a character as x<x40>.
func shortenRuns(s string) string {
	const long = 40
	var out strings.Builder
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		run := size
		for strings.HasPrefix(s[run:], s[:size]) {
			run += size
		}
		if count := run / size; count >= long {
			fmt.Fprintf(&out, "%c<x%d>", r, count)
		} else {
			out.WriteString(s[:run])
		}
		s = s[run:]
	}
	return out.String()
}
