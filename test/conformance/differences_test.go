package conformance

import (
	"strings"
	"testing"
)

func TestDifferenceChangesThePartsThatItNames(t *testing.T) {
	const recorded = `{"code": 500, "body": {"message": "no", "details": {}, "causes": [{"field": "a"}]}}`
	for _, c := range []struct{ name, mark, want string }{
		{"a value", `answer: {code: 400}`,
			`{"code": 400, "body": {"message": "no", "details": {}, "causes": [{"field": "a"}]}}`},
		{"a value that was not there", `answer: {body.reason: BadRequest}`,
			`{"code": 500, "body": {"message": "no", "details": {}, "causes": [{"field": "a"}], "reason": "BadRequest"}}`},
		{"a value in a list", `answer: {"body.causes[0].field": b}`,
			`{"code": 500, "body": {"message": "no", "details": {}, "causes": [{"field": "b"}]}}`},
		{"a whole body", `answer: {body: {kind: Status}}`,
			`{"code": 500, "body": {"kind": "Status"}}`},
		{"less than was there", `without: [body.details]`,
			`{"code": 500, "body": {"message": "no", "causes": [{"field": "a"}]}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := mustDecode(t, recorded)
			got, err := parseMark(t, c.mark).Apply(before)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range Compare(mustDecode(t, c.want), got) {
				t.Error(m)
			}
			if len(Compare(mustDecode(t, recorded), before)) > 0 {
				t.Errorf("the recorded answer was changed: %s", encodeJSON(before))
			}
		})
	}
}

func TestDifferenceFromNothingIsRefused(t *testing.T) {
	const recorded = `{"code": 400, "body": {"causes": []}}`
	for _, c := range []struct{ name, mark, says string }{
		{"no part", `why: x`, "names no part"},
		{"what is recorded", `answer: {code: 400}`, "code is recorded so"},
		{"the lack of what is not there", `without: [body.reason]`, "body.reason is recorded so"},
		{"a part of what is not there", `answer: {body.details.name: a}`, "body.details.name: nothing there"},
		{"an item that is not there", `answer: {"body.causes[0]": a}`, "body.causes[0]: no item 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseMark(t, c.mark).Apply(mustDecode(t, recorded))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %q", err, c.says)
			}
		})
	}
}

func parseMark(t *testing.T, text string) Difference {
	t.Helper()
	list, err := ParseDifferences([]byte("- {scenario: a, step: 1}\n- " + text))
	if err != nil {
		t.Fatal(err)
	}
	return list[1]
}

func TestDifferencesThatAreMisspeltAreRefused(t *testing.T) {
	for _, text := range []string{"- {scenario: a, anser: {}}", "- {scenario: a, scenario: b}", "scenario: a", "- ["} {
		if _, err := ParseDifferences([]byte(text)); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}
