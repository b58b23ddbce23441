package types

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MisreadUpdate picks, from the problems that Decode tells, those for which an
// update must be refused and not only warned about: what could be the version or
// the uid that it was made from. To drop them would be to overwrite what others
// wrote.
func MisreadUpdate(problems []string) []string {
	var found []string
	for _, p := range problems {
		path, repeated := problemPath(p)
		guard := strings.EqualFold(path, "metadata.resourceVersion") || strings.EqualFold(path, "metadata.uid")
		if guard || repeated && path == "metadata" {
			found = append(found, p)
		}
	}
	return found
}

// MisreadDeletion picks those for which a deletion must be refused: what is
// repeated, what is close to the name of a known field, and what is inside the
// preconditions. To drop a precondition or a dry run would be to delete for
// real. Only plainly unknown fields are left, which kube-apiserver passes over.
func MisreadDeletion(problems []string) []string {
	var found []string
	for _, p := range problems {
		path, repeated := problemPath(p)
		if repeated || strings.Contains(path, ".") || misspelt(reflect.TypeFor[metav1.DeleteOptions](), path, 2) ||
			// Preconditions that are not inside preconditions.
			misspelt(reflect.TypeFor[metav1.Preconditions](), path, 0) || strings.EqualFold(path, "metadata") {
			found = append(found, p)
		}
	}
	return found
}

// problemPath reads a problem as the JSON decoder words it.
func problemPath(problem string) (path string, repeated bool) {
	quoted, repeated := strings.CutPrefix(problem, "duplicate field ")
	quoted = strings.TrimPrefix(quoted, "unknown field ")
	if path, err := strconv.Unquote(quoted); err == nil {
		return path, repeated
	}
	return quoted, repeated
}

// misspelt tells whether name is a field of t but for its case and as many
// letters, or fewer where the field's name is short.
func misspelt(t reflect.Type, name string, letters int) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(fieldNames(t), func(known string) bool {
		allowed := min(letters, len(known)/4)
		return distance(name, strings.ToLower(known), allowed) <= allowed
	})
}

// Nearest is the one of the names that was probably meant by what was typed: the
// same but for case and two letters at most, fewer where it is short. It is empty
// if there is none.
func Nearest(typed string, names []string) string {
	best, least := "", 3
	for _, name := range names {
		allowed := min(2, len(name)/4)
		if d := distance(strings.ToLower(typed), strings.ToLower(name), allowed); d <= allowed && d < least {
			best, least = name, d
		}
	}
	return best
}

// fieldNames are the names on the wire, those of embedded structs included.
func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		switch name, options, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case name != "" && name != "-":
			names = append(names, name)
		case f.Anonymous || options == "inline":
			names = append(names, fieldNames(f.Type)...)
		}
	}
	return names
}

// distance is how many letters must be added, removed or changed to turn a into
// b; anything above limit stands for more than that.
func distance(a, b string, limit int) int {
	if gap := len(a) - len(b); gap > limit || -gap > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}
