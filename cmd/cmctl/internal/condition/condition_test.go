package condition_test

import (
	"strings"
	"testing"

	"example.com/cmctl/cmd/cmctl/internal/condition"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
)

// object is a ConfigMap with some of everything.
func object(t *testing.T, version string) types.Document {
	t.Helper()
	d, err := types.ParseDocument([]byte(`{"apiVersion":"v1","kind":"ConfigMap",
		"metadata":{"name":"flags","namespace":"team-a","uid":"u","labels":{"tier":"web"},"finalizers":["a","b"],"generation":3},
		"data":{"mode":"green","expr":"a=b","empty":"","app.yaml":"x"},"binaryData":{"bin":"aGk="}}`))
	if err != nil {
		t.Fatal(err)
	}
	d.SetMeta("resourceVersion", version)
	return d
}

func TestConditionsOnWhatIsThere(t *testing.T) {
	for text, unmet := range map[string]string{
		"create":                                "",
		"delete":                                "still there",
		"change":                                "still at version 7",
		"key=mode":                              "",
		"key=bin":                               "",
		"key=empty":                             "",
		"key=app.yaml":                          "",
		"key=other":                             `no key "other"`,
		"key=mode=green":                        "",
		"key=mode=blue":                         `mode is "green", not "blue"`,
		"key=mode=":                             `mode is "green", not ""`,
		"key=empty=":                            "",
		"key=other=":                            `no key "other"`,
		"key=expr=a=b":                          "",
		"key=bin=hi":                            "",
		"key=bin=aGk=":                          `bin is "hi"`,
		"jsonpath={.data.mode}":                 "",
		"jsonpath={.data.mode}=green":           "",
		"jsonpath={.data.mode}=blue":            `is "green", not "blue"`,
		"jsonpath=.data.mode=green":             "",
		"jsonpath={.data.expr}=a=b":             "",
		"jsonpath={.data['app.yaml']}=x":        "",
		"jsonpath={.data.other}":                "finds nothing",
		"jsonpath={.data.other}=":               "finds nothing",
		"jsonpath={.data.empty}=":               "",
		"jsonpath={.metadata.generation}=3":     "",
		"jsonpath={.metadata.labels}":           "",
		"jsonpath={.metadata.finalizers[*]}":    "",
		"jsonpath={.metadata.finalizers[*]}=a":  "finds 2 values",
		"jsonpath={.metadata.finalizers[0]}=a":  "",
		"jsonpath={.metadata.labels.tier}=web ": `is "web", not "web "`,
	} {
		t.Run(text, func(t *testing.T) {
			c, err := condition.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			o := &condition.Object{}
			o.Take(client.Event{Type: client.Added, Object: object(t, "7")}, false)
			o.Sync()
			got := strings.Join(o.Unmet([]condition.Condition{c}), "; ")
			if (got == "") != (unmet == "") || !strings.Contains(got, unmet) {
				t.Errorf("got %q, want %q", got, unmet)
			}
		})
	}
}

func TestConditionsOverTime(t *testing.T) {
	added := client.Event{Type: client.Added, Object: object(t, "7")}
	modified := client.Event{Type: client.Modified, Object: object(t, "8")}
	deleted := client.Event{Type: client.Deleted, Object: object(t, "8")}
	for name, c := range map[string]struct {
		text  string
		since string
		first []client.Event
		later []client.Event
		holds bool
	}{
		"nothing was there to delete":            {"delete", "", nil, nil, true},
		"it is gone":                             {"delete", "", []client.Event{added}, []client.Event{deleted}, true},
		"it is gone, and another is there":       {"delete", "", []client.Event{added}, []client.Event{deleted, added}, true},
		"it was only changed":                    {"delete", "", []client.Event{added}, []client.Event{modified}, false},
		"it was made after the command began":    {"delete", "", nil, []client.Event{added}, false},
		"nothing is there":                       {"create", "", nil, nil, false},
		"it was made":                            {"create", "", nil, []client.Event{added}, true},
		"it was made and deleted":                {"create", "", nil, []client.Event{added, deleted}, false},
		"it is as it was":                        {"change", "", []client.Event{added}, nil, false},
		"it was written":                         {"change", "", []client.Event{added}, []client.Event{modified}, true},
		"it was deleted":                         {"change", "", []client.Event{added}, []client.Event{deleted}, true},
		"making it is a change":                  {"change", "", nil, []client.Event{added}, true},
		"it still has the version":               {"change", "7", []client.Event{added}, nil, false},
		"it had another version before":          {"change", "6", []client.Event{added}, nil, true},
		"it was deleted since that version":      {"change", "6", nil, nil, true},
		"it was written after it was looked at":  {"change", "7", []client.Event{added}, []client.Event{modified}, true},
		"a key of an object that isn't there":    {"key=mode", "", nil, nil, false},
		"a key of an object that is gone":        {"key=mode", "", []client.Event{added}, []client.Event{deleted}, false},
		"a path into an object that isn't there": {"jsonpath=.data.mode", "", nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := condition.Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			o := &condition.Object{Since: c.since}
			for _, e := range c.first {
				o.Take(e, false)
			}
			o.Sync()
			for _, e := range c.later {
				o.Take(e, true)
			}
			if unmet := o.Unmet([]condition.Condition{parsed}); (len(unmet) == 0) != c.holds {
				t.Errorf("unmet is %q, want that it holds: %v", unmet, c.holds)
			}
		})
	}
}

// What happens between finding the objects and watching them counts too.
func TestConditionsOnAnObjectThatWasKnownBefore(t *testing.T) {
	conditions := map[string]condition.Condition{}
	for _, text := range []string{"change", "delete"} {
		c, err := condition.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		conditions[text] = c
	}
	for name, c := range map[string]struct {
		known condition.Object
		there bool
		holds map[string]bool
	}{
		"it is as it was":           {condition.Object{Since: "7", UID: "u"}, true, map[string]bool{}},
		"it was written since":      {condition.Object{Since: "6", UID: "u"}, true, map[string]bool{"change": true}},
		"it was deleted since":      {condition.Object{Since: "7", UID: "u"}, false, map[string]bool{"change": true, "delete": true}},
		"another took its name":     {condition.Object{Since: "6", UID: "v"}, true, map[string]bool{"change": true, "delete": true}},
		"nothing was known, or is":  {condition.Object{}, false, map[string]bool{"delete": true}},
		"nothing was known, but is": {condition.Object{}, true, map[string]bool{}},
	} {
		o := c.known
		if c.there {
			o.Take(client.Event{Type: client.Added, Object: object(t, "7")}, false)
		}
		o.Sync()
		for text, parsed := range conditions {
			if holds := len(o.Unmet([]condition.Condition{parsed})) == 0; holds != c.holds[text] {
				t.Errorf("%s: %s holds: %v", name, text, holds)
			}
		}
	}
}

func TestConditionsThatAreRefused(t *testing.T) {
	for _, text := range []string{"", "ready", "condition=Ready", "create=1", "delete=", "key", "key=", "key==x", "jsonpath", "jsonpath=", "jsonpath={.a", "jsonpath={.a}b{"} {
		if _, err := condition.Parse(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestWhatHoldsForNothing(t *testing.T) {
	for text, want := range map[string]bool{"delete": true, "create": false, "change": false, "key=a": false, "delete create": false} {
		var all []condition.Condition
		for _, one := range strings.Fields(text) {
			c, err := condition.Parse(one)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		if got := condition.HoldForNothing(all); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

// Whatever is asked for, it is refused or says of any object how it is.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"create", "key=a=b=c", "jsonpath={.data.a}=x", "jsonpath={range .a[*]}{.b}{end}=", "jsonpath={.a[?(@.b==1)]}=1", "jsonpath=.a['b=c']"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := condition.Parse(text)
		if err != nil {
			return
		}
		o := &condition.Object{}
		o.Unmet([]condition.Condition{c})
		o.Take(client.Event{Type: client.Added, Object: object(t, "7")}, false)
		o.Sync()
		o.Unmet([]condition.Condition{c})
	})
}
