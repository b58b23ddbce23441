package conformance

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestTheRecordingsAreAllThere(t *testing.T) {
	scenarios, steps := recorded(t), 0
	names := map[string]bool{}
	for _, sc := range scenarios {
		steps += len(sc.Steps)
		names[sc.Name] = true
	}
	if len(scenarios) != 1790 || len(names) != 1790 || steps != 4482 {
		t.Errorf("%d scenarios, %d names, %d steps; want 1790, 1790, 4482", len(scenarios), len(names), steps)
	}
}

func TestARecordingThatIsNotUnderstoodIsRefused(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{`{"scenarios": [{"name": "a", "steps": [{"methud": "GET"}]}]}`, `scenario a: json: unknown field "methud"`},
		{`{"scenarios": [{"name": "a", "steps": [{"project": {"group": "apps"}}]}]}`, `unknown field "group"`},
		{`{"scenarios": [{"name": "a", "steps": [{"want": [1]}]}]}`, "not a JSON object"},
		{`[]`, "cannot unmarshal array"},
	} {
		if _, err := parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want an error that says %q", c.text, err, c.says)
		}
	}
	if _, err := Load(fstest.MapFS{}); err == nil {
		t.Error("an empty directory: no error")
	}
	if _, err := Load(fstest.MapFS{"a.json.gz": {Data: []byte("{}")}}); err == nil || !strings.Contains(err.Error(), "a.json.gz") {
		t.Errorf("a file that is not compressed: got %v", err)
	}
}

func TestValuesThatAreSavedAreUsedLater(t *testing.T) {
	r := &replay{values: values{}}
	step := Step{Save: map[string]string{"rv": "1.metadata.resourceVersion", "n": "0", "none": "2.x"}}
	r.save(step, mustDecode(t, `[5, {"metadata": {"resourceVersion": "7"}}]`))
	if got := r.values.fill("{rv} {n} {none}"); got != "7 5 {none}" {
		t.Errorf("got %s", got)
	}
}

func TestAProjectionCutsOutAPart(t *testing.T) {
	const answer = `{"kind": "L", "b": 1, "resources": [{"name": "pods"}, {"name": "configmaps"}]}`
	for _, c := range []struct {
		name string
		p    *Projection
		want string
	}{
		{"none", nil, answer},
		{"the names of the members", &Projection{Keys: true}, `["b", "kind", "resources"]`},
		{"some members", &Projection{Pick: []string{"kind"}}, `{"kind": "L"}`},
		{"some resources", &Projection{Resources: []string{"configmaps"}}, `{"kind": "L", "b": 1, "resources": [{"name": "configmaps"}]}`},
	} {
		for _, m := range Compare(mustDecode(t, c.want), c.p.of(mustDecode(t, answer))) {
			t.Errorf("%s: %s", c.name, m)
		}
	}
}
