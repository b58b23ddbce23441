package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"

// What is not wholly understood is refused, and what is wrong is named.
func TestPoliciesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":                      {"", "kind: Policy"},
		"another kind":               {"apiVersion: audit.k8s.io/v1\nkind: Event\n", "kind: Policy"},
		"another version":            {"apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]", "apiVersion: audit.k8s.io/v1"},
		"no rules":                   {head, "no rules"},
		"an unknown field":           {head + "rules: [{level: None, user: [a]}]", `unknown field "rules[0].user"`},
		"a field in other letters":   {head + "Rules: [{level: None}]", `unknown field "Rules"`},
		"a repeated field":           {head + "rules: [{level: None}]\nrules: [{level: Metadata}]", "rules"},
		"a second document":          {head + "rules: [{level: None}]\n---\n" + head, "document"},
		"no level":                   {head + "rules: [{users: [a]}]", "rules[0].level"},
		"a level that there is not":  {head + "rules: [{level: metadata}]", "rules[0].level"},
		"a stage that there is not":  {head + "rules: [{level: None}]\nomitStages: [Received]", "omitStages[0]"},
		"a stage in a rule":          {head + "rules: [{level: None, omitStages: [x]}]", "rules[0].omitStages[0]"},
		"a path without a slash":     {head + "rules: [{level: None, nonResourceURLs: [healthz]}]", "begin with a '/'"},
		"a star inside":              {head + "rules: [{level: None, nonResourceURLs: [/a*b]}]", "final character"},
		"paths and resources":        {head + "rules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]", "both regular resources and non-resource URLs"},
		"a group with its version":   {head + "rules: [{level: None, resources: [{group: a/v1}]}]", "group"},
		"names without resources":    {head + "rules: [{level: None, resources: [{group: a, resourceNames: [b]}]}]", "at least one resource"},
		"a value of another type":    {head + "rules: {level: None}", "rules"},
		"no YAML":                    {"a: b: c", "line 1"},
		"a strict policy's omission": {head + "omitStages: [RequestReceived]\nrules: [{level: Metadata}]", "rules[0] leaves out the stage RequestReceived"},
	} {
		if p, err := Parse([]byte(c.text), true); err == nil || p != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := Parse([]byte(head+"omitStages: [RequestReceived]\nrules: [{level: None}, {level: Metadata}]"), false); err != nil {
		t.Error(err)
	}
}

func TestAPolicyIsLoadedFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(path, []byte(`{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Loud"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, false); err == nil || !strings.HasPrefix(err.Error(), path+": ") {
		t.Errorf("got %v", err)
	}
	if _, err := Load(filepath.Dir(path), false); err == nil {
		t.Error("a folder is a policy")
	}
}

// The first rule that matches says how much is logged.
func TestRulesOfAPolicy(t *testing.T) {
	p, err := Parse([]byte(head+`
omitManagedFields: true
omitStages: [ResponseStarted]
rules:
- {level: None, users: [robot], verbs: [get]}
- {level: RequestResponse, userGroups: [devs, ops], omitManagedFields: false, omitStages: [Panic]}
- {level: Request, resources: [{resources: [configmaps], resourceNames: [flags]}]}
- {level: None, namespaces: [noise]}
- {level: Metadata, resources: [{group: "", resources: [configmaps/history, "*/status"]}, {group: authorization.k8s.io}]}
- {level: Metadata, nonResourceURLs: [/version, /openapi*]}
`), false)
	if err != nil {
		t.Fatal(err)
	}
	object := authorizer.AttributesRecord{Verb: "update", Namespace: "a", Resource: "configmaps", Name: "x", ResourceRequest: true}
	for name, c := range map[string]struct {
		who    string
		change func(*authorizer.AttributesRecord)
		want   auditv1.Level
	}{
		"nothing matches":       {"", func(*authorizer.AttributesRecord) {}, auditv1.LevelNone},
		"a user and a verb":     {"robot devs", func(a *authorizer.AttributesRecord) { a.Verb = "get" }, auditv1.LevelNone},
		"a user, another verb":  {"robot devs", func(*authorizer.AttributesRecord) {}, auditv1.LevelRequestResponse},
		"a group":               {"jane x ops", func(*authorizer.AttributesRecord) {}, auditv1.LevelRequestResponse},
		"a name":                {"", func(a *authorizer.AttributesRecord) { a.Name, a.Namespace = "flags", "noise" }, auditv1.LevelRequest},
		"a namespace":           {"", func(a *authorizer.AttributesRecord) { a.Namespace = "noise"; a.Subresource = "history" }, auditv1.LevelNone},
		"a subresource":         {"", func(a *authorizer.AttributesRecord) { a.Subresource = "history" }, auditv1.LevelMetadata},
		"a subresource of any":  {"", func(a *authorizer.AttributesRecord) { a.Resource, a.Subresource = "secrets", "status" }, auditv1.LevelMetadata},
		"another subresource":   {"", func(a *authorizer.AttributesRecord) { a.Subresource = "scale" }, auditv1.LevelNone},
		"a group of resources":  {"", func(a *authorizer.AttributesRecord) { a.APIGroup = "authorization.k8s.io" }, auditv1.LevelMetadata},
		"a path":                {"", func(a *authorizer.AttributesRecord) { *a = authorizer.AttributesRecord{Path: "/version"} }, auditv1.LevelMetadata},
		"a path's beginning":    {"", func(a *authorizer.AttributesRecord) { *a = authorizer.AttributesRecord{Path: "/openapi/v3"} }, auditv1.LevelMetadata},
		"another path":          {"", func(a *authorizer.AttributesRecord) { *a = authorizer.AttributesRecord{Path: "/version/x"} }, auditv1.LevelNone},
		"a resource, by a path": {"", func(a *authorizer.AttributesRecord) { a.Path = "/version" }, auditv1.LevelNone},
	} {
		a := object
		if all := strings.Fields(c.who); len(all) > 0 {
			a.User = &user.DefaultInfo{Name: all[0], Groups: all[1:]}
		}
		c.change(&a)
		got := p.ruleFor(&a)
		if got.level != c.want {
			t.Errorf("%s: %s, want %s", name, got.level, c.want)
		}
		if c.want == auditv1.LevelNone {
			continue
		}
		slices.Sort(got.omitStages)
		stages := fmt.Sprint(got.omitStages)
		ofGroup := c.want == auditv1.LevelRequestResponse
		if wantStages := map[bool]string{true: "[Panic ResponseStarted]", false: "[ResponseStarted]"}[ofGroup]; stages != wantStages || got.omitManagedFields == ofGroup {
			t.Errorf("%s: omits %s and managedFields %t", name, stages, got.omitManagedFields)
		}
	}
}

func TestTheDefaultPolicyLogsWrites(t *testing.T) {
	for _, strict := range []bool{false, true} {
		for verb, want := range map[string]auditv1.Level{"create": auditv1.LevelMetadata, "update": auditv1.LevelMetadata, "patch": auditv1.LevelMetadata,
			"delete": auditv1.LevelMetadata, "deletecollection": auditv1.LevelMetadata, "get": auditv1.LevelNone, "list": auditv1.LevelNone, "watch": auditv1.LevelNone} {
			got := DefaultPolicy(strict).ruleFor(&authorizer.AttributesRecord{Verb: verb, Resource: "configmaps", ResourceRequest: true})
			if got.level != want || (want != auditv1.LevelNone && slices.Contains(got.omitStages, auditv1.StageRequestReceived) == strict) {
				t.Errorf("%s, strict %t: %+v", verb, strict, got)
			}
		}
		if got := DefaultPolicy(strict).ruleFor(&authorizer.AttributesRecord{Verb: "get", Path: "/readyz"}); got.level != auditv1.LevelNone {
			t.Errorf("a probe is logged: %+v", got)
		}
	}
}
