package main

import (
	"strings"
	"testing"
)

func TestNamesAreTakenFromOperands(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // names, or the start of the error
	}{
		{"", ""},
		{"flags", "flags"},
		{"cm/flags", "flags"},
		{"cm flags", "flags"},
		{"configmap flags limits", "flags limits"},
		{"configmaps", ""},
		{"cm cm", "cm"},
		{"cm/a configmap/b c", "a b c"},
		{"deploy/x", `error: "deploy/x"`},
		{"cm/", `error: "cm/"`},
	} {
		t.Run(c.args, func(t *testing.T) {
			names, err := parseNames(strings.Fields(c.args))
			got := strings.Join(names, " ")
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
