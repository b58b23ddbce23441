// Package lines compares texts line by line and merges the changes of two
// sides. A value of a ConfigMap is often a whole file, in which people change
// different places.
//
//	merged := lines.Merge(base, mine, theirs)
//	if merged.Clean() {
//		return merged.Text()
//	}
//
// Texts are taken as they are: a line keeps its terminator, so that CRLF and LF
// are different and a missing last line feed stays missing. All functions are
// pure and may be called at the same time.
package lines
