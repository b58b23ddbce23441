package types

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Digest is the beginning of the SHA-256 of a value, in hexadecimal digits, where
// the value itself isn't known.
type Digest string

// How many bytes of a SHA-256 stand for a field's name and for its value. A name
// need only be told from the others of its object.
const (
	nameDigest  = 6
	valueDigest = 8
	digestEntry = nameDigest + valueDigest
)

// digestsVersion begins the text of Digests, and tells how to read the rest.
const digestsVersion = "v1:"

// Digests is a Base that takes 14 bytes a field, however long names and values
// are: a digest of the field's name and one of its value, sorted.
type Digests struct{ entries []string }

// DigestsOf is the record of that document being applied.
func DigestsOf(d Document) Digests {
	var r Digests
	for f, v := range d.Fields() {
		if !f.Bookkeeping() {
			r.entries = append(r.entries, entryOf(f, v))
		}
	}
	slices.Sort(r.entries)
	return r
}

// errDigests is a text that isn't one of Digests.
var errDigests = errors.New("not a list of digests that this release can read")

// ParseDigests reads what String wrote.
func ParseDigests(text string) (Digests, error) {
	encoded, ok := strings.CutPrefix(text, digestsVersion)
	if !ok {
		return Digests{}, errDigests
	}
	raw, err := base64.RawStdEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") || len(raw)%digestEntry != 0 {
		return Digests{}, errDigests
	}
	var r Digests
	for entry := range slices.Chunk(raw, digestEntry) {
		r.entries = append(r.entries, string(entry))
	}
	if !slices.IsSorted(r.entries) {
		return Digests{}, errDigests
	}
	return r, nil
}

// String is the record as an annotation holds it: "v1:", then the entries in
// base64.
func (r Digests) String() string {
	return digestsVersion + base64.RawStdEncoding.EncodeToString([]byte(strings.Join(r.entries, "")))
}

// Value is the Digest of what the field was applied with, nil if it was not.
func (r Digests) Value(f Field) any {
	for _, value := range []any{"", Binary("")} {
		prefix := nameOf(f, value)
		i, _ := slices.BinarySearch(r.entries, prefix)
		if i < len(r.entries) && strings.HasPrefix(r.entries[i], prefix) {
			return Digest(hex.EncodeToString([]byte(r.entries[i][nameDigest:])))
		}
	}
	return nil
}

// Same compares digests.
func (r Digests) Same(f Field, value any) bool {
	if value == nil {
		return r.Value(f) == nil
	}
	_, found := slices.BinarySearch(r.entries, entryOf(f, value))
	return found
}

func entryOf(f Field, value any) string {
	sum := sha256.Sum256(bytesOf(value))
	return nameOf(f, value) + string(sum[:valueDigest])
}

// nameOf is the digest of a field's name. Text and bytes of one key have
// different ones: they are not the same value even if their bytes are.
func nameOf(f Field, value any) string {
	section := f.Section
	if _, ok := value.(Binary); ok && section == dataSection.String() {
		section = binarySection.String()
	}
	sum := sha256.Sum256([]byte(section + "\x00" + f.Key))
	return string(sum[:nameDigest])
}

// bytesOf is what of a value is digested: text and bytes as they are, so that
// sha256sum gives the same, anything else as JSON.
func bytesOf(value any) []byte {
	if raw, ok := RawValue(value); ok {
		return raw
	}
	if v, ok := value.(Binary); ok {
		return []byte(v) // differs from every value that is base64 in nothing but luck
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return fmt.Append(nil, value) // no document that was parsed holds such a value
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
