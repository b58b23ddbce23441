package quota_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"example.com/cmctl/pkg/server/quota"
	"example.com/cmctl/pkg/server/store"
)

// folder makes one of files: name, content, name, content.
func folder(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// manifest is a ResourceQuota of team-a.
func manifest(name, spec string) string {
	return "apiVersion: v1\nkind: ResourceQuota\nmetadata:\n  name: " + name + "\n  namespace: team-a\nspec: " + spec + "\n"
}

var none = quota.Defaults{Objects: quota.None, Bytes: quota.None}

// Quotas are read as people have them: several in a file, lists, JSON, and with the
// status that another server gave them.
func TestManifests(t *testing.T) {
	small := quota.Quota{Name: "small", Hard: map[string]int64{quota.CountConfigMaps: 10}}
	for name, c := range map[string]struct {
		files []string
		want  []quota.Quota
	}{
		"an empty folder":  {nil, nil},
		"one":              {[]string{"q.yaml", manifest("small", "{hard: {count/configmaps: 10}}")}, []quota.Quota{small}},
		"without a bound":  {[]string{"q.yaml", manifest("small", "{}")}, []quota.Quota{{Name: "small", Hard: map[string]int64{}}}},
		"with a unit":      {[]string{"q.yml", manifest("b", "{hard: {"+quota.Bytes+": 10Mi, configmaps: 1k}}")}, []quota.Quota{{Name: "b", Hard: map[string]int64{quota.Bytes: 10 << 20, quota.ConfigMaps: 1000}}}},
		"several in files": {[]string{"a.yaml", "---\n---\n" + manifest("small", "{hard: {count/configmaps: '10'}}") + "---\n" + manifest("b", "{}"), "b.json", `{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"c","namespace":"team-a"}}`, ".hidden", "x"}, []quota.Quota{small, {Name: "b", Hard: map[string]int64{}}, {Name: "c", Hard: map[string]int64{}}}},
		"a list": {[]string{"l.yaml", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ResourceQuota, metadata: {name: small, namespace: team-a}, spec: {hard: {count/configmaps: 10}}, " +
			"status: {hard: {count/configmaps: 10}, used: {count/configmaps: 3}}}\n"}, []quota.Quota{small}},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := quota.Load(folder(t, c.files...), none)
			if err != nil {
				t.Fatal(err)
			}
			if got := rules.For("team-a"); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if got := rules.For("team-b"); len(got) != 0 {
				t.Errorf("another namespace has %v", got)
			}
		})
	}
}

// What is not understood is refused whole, with the file, the object and all that is
// wrong.
func TestManifestsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		says  []string
	}{
		"another kind":                     {[]string{"q.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}"}, []string{"q.yaml: document 1", `"ConfigMap"`, "ResourceQuota"}},
		"another version":                  {[]string{"q.yaml", "apiVersion: v2\nkind: ResourceQuota"}, []string{`"v2"`}},
		"an unknown field":                 {[]string{"q.yaml", manifest("a", "{hrad: {configmaps: 1}}")}, []string{"q.yaml: document 1", "hrad"}},
		"a repeated key":                   {[]string{"q.yaml", manifest("a", "{hard: {configmaps: 1, configmaps: 2}}")}, []string{"configmaps"}},
		"an unknown resource":              {[]string{"q.yaml", manifest("a", "{hard: {configmap: 1}}")}, []string{"(team-a/a)", "spec.hard[configmap]", quota.Bytes}},
		"a resource that is not kept here": {[]string{"q.yaml", manifest("a", "{hard: {pods: 1}}")}, []string{"spec.hard[pods]"}},
		"a bound below 0":                  {[]string{"q.yaml", manifest("a", "{hard: {configmaps: -1}}")}, []string{"spec.hard[configmaps]", "-1"}},
		"half an object":                   {[]string{"q.yaml", manifest("a", "{hard: {configmaps: 1500m}}")}, []string{"whole number"}},
		"no number":                        {[]string{"q.yaml", manifest("a", "{hard: {configmaps: many}}")}, []string{"q.yaml: document 1"}},
		"scopes":                           {[]string{"q.yaml", manifest("a", "{scopes: [BestEffort]}")}, []string{"spec.scopes"}},
		"no namespace":                     {[]string{"q.yaml", "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: a}"}, []string{"metadata.namespace"}},
		"no name":                          {[]string{"q.yaml", "apiVersion: v1\nkind: ResourceQuota\nmetadata: {namespace: a}"}, []string{"metadata.name"}},
		"twice":                            {[]string{"q.yaml", manifest("a", "{}"), "r.yaml", manifest("a", "{}")}, []string{"r.yaml: document 1 (team-a/a)", "q.yaml: document 1"}},
		"another file":                     {[]string{"q.txt", "x"}, []string{"q.txt", ".yaml"}},
		"no YAML":                          {[]string{"q.yaml", "a: ["}, []string{"q.yaml: document 1"}},
		"several faults":                   {[]string{"q.yaml", manifest("a", "{hard: {pods: 1}}") + "---\n" + manifest("b", "{hard: {secrets: 1}}")}, []string{"document 1", "document 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := quota.Load(folder(t, c.files...), none)
			if err == nil {
				t.Fatal("it is taken")
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
		})
	}
	if _, err := quota.Load(filepath.Join(t.TempDir(), "none"), none); err == nil {
		t.Error("a folder that is not there is taken")
	}
}

// The defaults hold for what no manifest of the namespace bounds.
func TestDefaults(t *testing.T) {
	d := quota.Defaults{Objects: 5, Bytes: 100}
	for hard, want := range map[string][]store.Usage{
		"":                         {{Records: 5, Bytes: -1}, {Records: -1, Bytes: 100}},
		"{}":                       {{Records: -1, Bytes: -1}, {Records: 5, Bytes: -1}, {Records: -1, Bytes: 100}},
		"{configmaps: 9}":          {{Records: 9, Bytes: -1}, {Records: -1, Bytes: 100}},
		"{" + quota.Bytes + ": 9}": {{Records: -1, Bytes: 9}, {Records: 5, Bytes: -1}},
		"{configmaps: 9, " + quota.Bytes + ": 0, count/configmaps: 8}": {{Records: 8, Bytes: 0}},
	} {
		var files []string
		if hard != "" {
			files = []string{"q.yaml", manifest("q", "{hard: "+hard+"}")}
		}
		rules, err := quota.Load(folder(t, files...), d)
		if err != nil {
			t.Fatal(err)
		}
		var got []store.Usage
		for _, q := range rules.For("team-a") {
			got = append(got, q.Most())
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", hard, got, want)
		}
	}
}

// A refusal names what is exceeded, and nothing else.
func TestExceeded(t *testing.T) {
	q := quota.Quota{Name: "q", Hard: map[string]int64{quota.ConfigMaps: 2000, quota.Bytes: 10 << 20}}
	for _, c := range []struct {
		used, added store.Usage
		want        string
	}{
		{store.Usage{Records: 2000}, store.Usage{Records: 1, Bytes: 5}, "exceeded quota: q, requested: configmaps=1, used: configmaps=2k, limited: configmaps=2k"},
		{store.Usage{Records: 2001, Bytes: 10 << 20}, store.Usage{Bytes: 5}, "exceeded quota: q, requested: " + quota.Bytes + "=5, used: " + quota.Bytes + "=10Mi, limited: " + quota.Bytes + "=10Mi"},
		{store.Usage{Records: 2000, Bytes: 10 << 20}, store.Usage{Records: 1, Bytes: 1}, "exceeded quota: q, requested: " + quota.Bytes + "=1,configmaps=1, used: " +
			quota.Bytes + "=10Mi,configmaps=2k, limited: " + quota.Bytes + "=10Mi,configmaps=2k"},
	} {
		if got := q.Exceeded(c.used, c.added); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
