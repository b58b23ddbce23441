package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"

	"example.com/cmctl/pkg/types"
)

// The annotations that hold what was last applied: whole, or as digests where
// there is no room for it.
var (
	lastApplied       = annotation(types.LastApplied)
	lastAppliedDigest = annotation(types.LastAppliedDigest)
)

func annotation(key string) types.Field {
	return types.Field{Section: "metadata.annotations", Key: key}
}

// maxAnnotations is how many bytes all annotations of an object may have
// together, keys included.
const maxAnnotations = 256 << 10

func annotationSize(d types.Document) int {
	size := 0
	annotations, _ := d.Value("metadata", "annotations")
	all, _ := annotations.(map[string]any)
	for key, v := range all {
		if text, ok := v.(string); ok {
			size += len(key) + len(text)
		}
	}
	return size
}

// record is what an apply notes on the object of the file that it applied.
type record struct {
	file  types.Document
	whole string
}

func recordOf(file types.Document) (record, error) {
	whole, err := wholeRecord(file)
	return record{file: file, whole: whole}, err
}

func (r record) digests() string { return types.DigestsOf(r.file).String() }

// wholeRecord is the manifest in the form that kubectl records it in, byte for
// byte, so that both tools can be used in turn: JSON with sorted keys, an
// annotations map even if it is empty, and a line feed at the end.
func wholeRecord(file types.Document) (string, error) {
	doc := maps.Clone(file)
	meta, _ := doc["metadata"].(map[string]any)
	if _, ok := meta["annotations"].(map[string]any); !ok {
		if meta != nil {
			doc["metadata"] = maps.Clone(meta)
		}
		doc.SetMeta("annotations", map[string]any{})
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(map[string]any(doc)); err != nil {
		return "", err
	}
	return b.String(), nil
}

// errNoRoom says that not even digests fit.
var errNoRoom = errors.New("no room for a record of what was applied")

// on notes the record on the next version of an object, in place of all that was
// noted before: whole if the annotations have room for it, else as digests.
// manager is the field manager of this apply.
func (r record) on(next types.Document, manager string) error {
	for _, f := range []types.Field{lastApplied, lastAppliedDigest, appliedBy(manager)} {
		next.Set(f, nil)
	}
	others := annotationSize(next)
	if others+len(lastApplied.Key)+len(r.whole) <= maxAnnotations {
		next.Set(lastApplied, r.whole)
		return nil
	}
	digests := r.digests()
	if others+len(lastAppliedDigest.Key)+len(digests) > maxAnnotations {
		return errNoRoom
	}
	next.Set(lastAppliedDigest, digests)
	return nil
}

// recordIn is what was last applied to a live object, nil if there is no record
// that can be read. The one that kubectl reads comes first: an apply of ours
// leaves one record, so kubectl's beside it means that kubectl applied later.
func recordIn(live types.Document, manager string) types.Base {
	if text, ok := live.Annotation(types.LastApplied); ok {
		base, err := types.ParseDocument([]byte(text))
		if err != nil {
			return nil
		}
		return types.RecordOf(base)
	}
	for _, f := range []types.Field{lastAppliedDigest, appliedBy(manager)} {
		if text, ok := live.Annotation(f.Key); ok {
			base, err := types.ParseDigests(text)
			if err != nil {
				return nil
			}
			return base
		}
	}
	return nil
}

// hasRecord tells whether anything is noted, readable or not.
func hasRecord(live types.Document, manager string) bool {
	for _, f := range []types.Field{lastApplied, lastAppliedDigest, appliedBy(manager)} {
		if _, ok := live.Annotation(f.Key); ok {
			return true
		}
	}
	return false
}

// withoutRecord is the object without what apply keeps on it, and a function
// that puts this back.
func withoutRecord(d types.Document) (bare types.Document, restore func(types.Document)) {
	bare = d.Clone()
	kept := map[types.Field]any{}
	for _, section := range []string{"labels", "annotations"} {
		all, _ := d.Value("metadata", section)
		entries, _ := all.(map[string]any)
		for key, v := range entries {
			if f := (types.Field{Section: "metadata." + section, Key: key}); v != nil && f.Bookkeeping() {
				kept[f] = v
				bare.Set(f, nil)
			}
		}
	}
	return bare, func(to types.Document) {
		for f, v := range kept {
			to.Set(f, v)
		}
	}
}
