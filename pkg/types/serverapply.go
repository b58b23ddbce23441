package types

// Owners says which field managers applied or updated a field last.
type Owners struct {
	Ours   bool // the manager that is about to apply, by an earlier apply of its
	Others bool
}

// AppliedByServer is what a server-side apply would do to an object.
type AppliedByServer struct {
	Applied
	// Contested are fields that other managers own, with another value than the
	// file's. The server refuses them, unless the apply takes them by force.
	Contested []Drift
}

// ServerApplyOptions adjust ApplyByServer. The zero value is ready to use.
type ServerApplyOptions struct {
	Side ApplySide
	// TakeContested gives the file's side to what other managers own, as FileSide
	// does.
	TakeContested bool
}

// ApplyByServer tells what the server would make of live if the manager that
// owns what owners says applied the file, and finds what it would undo without a
// word, since it is all the same manager's: a value or a key that base, the
// record of what that manager applied last (nil where there is none), does not
// account for.
//
// Labels, annotations, data and fields at the top take part; lists of metadata
// are merged item by item, which is left to the server.
func ApplyByServer(base Base, file, live Document, owners func(Field) Owners, o ServerApplyOptions) AppliedByServer {
	f, l := file.Fields(), live.Fields()
	out := AppliedByServer{Applied: Applied{Document: live.Clone()}}
	for _, field := range sortedFields(f, l) {
		if field.Bookkeeping() || field.Section == "metadata" || SameValue(f[field], l[field]) {
			continue
		}
		var was any
		if base != nil {
			was = base.Value(field)
		}
		applied := base != nil && base.Same(field, l[field])
		who := owners(field)
		drift := Drift{
			Field: field, Base: was, File: f[field], Live: l[field],
			Reverts: base != nil && base.Same(field, f[field]),
		}
		switch {
		case f[field] == nil && (!who.Ours || who.Others):
			out.Kept = append(out.Kept, field)
		case f[field] != nil && l[field] != nil && who.Others:
			out.Contested = append(out.Contested, drift)
			if o.Side == FileSide || o.TakeContested {
				out.change(field, l[field], f[field])
			}
		case applied, base == nil && l[field] == nil:
			out.change(field, l[field], f[field])
		default:
			out.Drifts = append(out.Drifts, drift)
			if o.Side == FileSide {
				out.change(field, l[field], f[field])
			}
		}
	}
	return out
}
