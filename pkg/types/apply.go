package types

// ApplySide says whose value stands where the file and the live object disagree.
type ApplySide int

const (
	// NeitherSide leaves each disagreement to a person: it is a conflict.
	NeitherSide ApplySide = iota
	// FileSide overwrites the live value.
	FileSide
	// LiveSide keeps the live value.
	LiveSide
)

// ApplyOptions adjust Apply. The zero value is ready to use.
type ApplyOptions struct {
	Side ApplySide
	// Exact removes the keys of data that nobody applied and the file lacks.
	Exact bool
}

// Drift is a field on which the file and the live object disagree, and where
// writing the file's value would undo somebody's change. A nil value means
// absent; of Base a Digest may be all that is known.
type Drift struct {
	Field Field
	Base  any
	File  any
	Live  any
	// Reverts: the file has what was last applied, so that only the live side
	// changed. Otherwise both did, or there is no record of what was applied.
	Reverts bool
}

// Applied is the end of an apply's three-way comparison.
type Applied struct {
	// Document is live with the file's changes made; it carries live's version.
	Document Document
	// Changes are what Document changes of live: From is live's value.
	Changes []Change
	// Drifts are the disagreements, whichever side was taken in Document; with
	// NeitherSide it has the live one.
	Drifts []Drift
	// Kept are fields that only the live object has: nobody applied them.
	Kept []Field
}

// Apply brings live to what the file says, by the table base/file/live of the
// contract: per key of data, label, annotation and other field, with base what
// was last applied (nil where there is no record). Bookkeeping takes no part.
//
// A null in a map of the file means that the key must not exist.
func Apply(base Base, file, live Document, o ApplyOptions) Applied {
	f, l, nulls := file.Fields(), live.Fields(), file.nulls()
	out := Applied{Document: live.Clone()}
	// What only the record has is in neither, and there is nothing to do.
	for _, field := range sortedFields(f, l, nulls) {
		if field.Bookkeeping() {
			continue
		}
		var was any
		if base != nil {
			was = base.Value(field)
		}
		_, mustGo := nulls[field]
		switch {
		case SameValue(f[field], l[field]):
		case f[field] == nil && was == nil && !mustGo && o.Exact && field.Section == dataSection.String():
			out.change(field, l[field], nil)
		case f[field] == nil && was == nil && !mustGo:
			out.Kept = append(out.Kept, field)
		case base != nil && base.Same(field, l[field]):
			out.change(field, l[field], f[field])
		default:
			out.Drifts = append(out.Drifts, Drift{
				Field: field, Base: was, File: f[field], Live: l[field],
				Reverts: base != nil && base.Same(field, f[field]),
			})
			if o.Side == FileSide {
				out.change(field, l[field], f[field])
			}
		}
	}
	return out
}

func (a *Applied) change(f Field, from, to any) {
	a.Changes = append(a.Changes, Change{Field: f, From: from, To: to})
	a.Document.Set(f, to)
}

// nulls are the entries of the maps that are there without a value.
func (d Document) nulls() map[Field]any {
	found := map[Field]any{}
	for _, s := range mapSections {
		name := s.String()
		if name == binarySection.String() {
			name = dataSection.String()
		}
		for key, v := range d.section(s) {
			if v == nil {
				found[Field{name, key}] = nil
			}
		}
	}
	return found
}
