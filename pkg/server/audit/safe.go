package audit

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf8"
)

// How long what a client chooses may be in the log. A header, and so a URL, has at
// most 64 KiB; names that can exist are shorter than these.
const (
	maxURI       = 4 << 10
	maxUserAgent = 1 << 10
	maxName      = 512
	maxMethod    = 32
	maxMessage   = 4 << 10
	maxCauses    = 100
	maxBody      = 4 << 20
)

// mark ends what was cut, as in Kubernetes.
const mark = "...TRUNCATED"

// CutMethod is a request's method, or what became of it, as a log has it: clients may
// send any word.
func CutMethod(method string) string { return cut(method, maxMethod) }

// cut shortens what is too long, and says so.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + mark
}

// hidden stands for what may be a secret.
const hidden = "REDACTED"

// shown are the parameters whose values are logged: those that the API has.
var shown = map[string]bool{
	"allowWatchBookmarks": true, "continue": true, "dryRun": true, "exclude": true, "fieldManager": true, "fieldSelector": true,
	"fieldValidation": true, "force": true, "gracePeriodSeconds": true, "includeObject": true, "labelSelector": true,
	"limit": true, "orphanDependents": true, "pretty": true, "propagationPolicy": true, "resourceVersion": true,
	"resourceVersionMatch": true, "sendInitialEvents": true, "timeout": true, "timeoutSeconds": true, "uid": true,
	"verbose": true, "watch": true,
}

// safeURI is a URL as it was asked for, but for the values of parameters that the
// API does not have: people put tokens there.
func safeURI(u *url.URL) string {
	path := u.EscapedPath()
	if u.RawQuery == "" {
		return path
	}
	parts := strings.FieldsFunc(u.RawQuery, func(c rune) bool { return c == '&' || c == ';' })
	for i, part := range parts {
		escaped, _, valued := strings.Cut(part, "=")
		name, err := url.QueryUnescape(escaped)
		switch {
		case err == nil && shown[name]:
		case valued && len(name) <= 32 && isWord(name):
			parts[i] = name + "=" + hidden
		default:
			parts[i] = hidden
		}
	}
	return path + "?" + strings.Join(parts, "&")
}

// isWord tells a name from what may be a secret itself.
func isWord(s string) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != '-' }) < 0
}

// withoutManagedFields drops metadata.managedFields from an object, or from each
// item of a list. What is no object is left as it is.
func withoutManagedFields(text []byte) []byte {
	if !bytes.Contains(text, []byte(`"managedFields"`)) {
		return text
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var o map[string]any
	if decoder.Decode(&o) != nil {
		return text
	}
	dropManagedFields(o)
	items, _ := o["items"].([]any)
	for _, item := range items {
		if item, ok := item.(map[string]any); ok {
			dropManagedFields(item)
		}
	}
	out, err := json.Marshal(o)
	if err != nil {
		return text
	}
	return out
}

func dropManagedFields(o map[string]any) {
	if meta, ok := o["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
}
