package types

import "strings"

// Where an object keeps what cmctl has to know of it. LastApplied is among them.
const (
	// LastAppliedDigest is the annotation with the Digests of what was last
	// applied, where LastApplied has no room for it.
	LastAppliedDigest = "cmctl/last-applied-digest"
	// AppliedBy begins the annotations with the Digests of what was last applied
	// through the server, one for each field manager.
	AppliedBy = "cmctl/applied-by."
	// SetLabel is the label that names the set which an object belongs to.
	SetLabel = "cmctl/set"
	// SetMember is the annotation that proves the label to be meant for this
	// object.
	SetMember = "cmctl/set-member"
	// SetNamespaces is the annotation that lists the namespaces which a set
	// reaches, where they are several.
	SetNamespaces = "cmctl/set-namespaces"
)

// Bookkeeping tells whether the field is kept by apply for its own use. It is
// nobody's content: it takes no part in comparisons of what people wrote.
func (f Field) Bookkeeping() bool {
	switch f.Section {
	case annotationSection.String():
		switch f.Key {
		case LastApplied, LastAppliedDigest, SetMember, SetNamespaces:
			return true
		}
		return strings.HasPrefix(f.Key, AppliedBy)
	case labelSection.String():
		return f.Key == SetLabel
	}
	return false
}

// Base is what was last applied to an object, as far as its record tells.
type Base interface {
	// Value is what the field was applied with: nil if it was not, a Digest where
	// the record holds no more of it.
	Value(f Field) any
	// Same tells whether the field was applied with that value, nil standing for
	// not at all.
	Same(f Field, value any) bool
}

// Record is a Base that holds what was applied whole.
type Record map[Field]any

// RecordOf is the record of that document being applied.
func RecordOf(d Document) Record { return d.Fields() }

// Value is what the field was applied with.
func (r Record) Value(f Field) any { return r[f] }

// Same compares as SameValue does.
func (r Record) Same(f Field, value any) bool { return SameValue(r[f], value) }
