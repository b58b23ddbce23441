package server_test

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// FuzzSelectors holds what a selector chooses against apimachinery's own reading of
// it: what that can't parse is refused, and what it can chooses the same objects.
func FuzzSelectors(f *testing.F) {
	objects := map[string]labels.Set{"a": {}, "b": {"app": "web"}, "c": {"app": "db", "tier": "1"}, "d": {"example.com/x": "", "n": "10"}}
	a := start(f)
	for name, set := range objects {
		var pairs []string
		for k, v := range set {
			pairs = append(pairs, `"`+k+`":"`+v+`"`)
		}
		a.must(201, "POST", collection, `{"metadata":{"name":"`+name+`","labels":{`+strings.Join(pairs, ",")+`}}}`)
	}
	for _, seed := range [][2]string{
		{"", ""}, {"app", ""}, {"!app", "metadata.name=a"}, {"app=web", "metadata.name!=b"}, {"app in (web,db),tier", ""}, {"app notin (web)", "metadata.namespace=default"},
		{"n>5,n<11", ""}, {"app==web,app!=db", "metadata.name=a,metadata.name=b"}, {"app in ()", ""}, {"example.com/x=", `metadata.name=a\,b`}, {"a b", "=,"}, {"app=web,", "data.k=v"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, byLabel, byField string) {
		r, err := a.try(t.Context(), "GET", collection+"?"+url.Values{"labelSelector": {byLabel}, "fieldSelector": {byField}}.Encode(), "")
		if err != nil {
			t.Fatal(err)
		}
		inLabels, err := labels.Parse(byLabel)
		inFields, fieldErr := fields.ParseSelector(byField)
		if err != nil || fieldErr != nil {
			isStatus(t, r, 400, "BadRequest", "")
			return
		}
		for _, one := range inFields.Requirements() {
			if one.Field != "metadata.name" && one.Field != "metadata.namespace" {
				isStatus(t, r, 400, "BadRequest", "")
				return
			}
		}
		if r.code != 200 {
			t.Fatalf("%q %q: got %d %s", byLabel, byField, r.code, r.body)
		}
		got := map[string]bool{}
		for _, item := range r.list.Items {
			got[item.Name] = true
		}
		for name, set := range objects {
			want := inLabels.Matches(set) && inFields.Matches(fields.Set{"metadata.name": name, "metadata.namespace": "default"})
			if got[name] != want {
				t.Errorf("%q %q: %s is chosen: %v, want %v", byLabel, byField, name, got[name], want)
			}
		}
	})
}

// FuzzContinue forges continue tokens. A list shows objects of its own namespace,
// whatever the token says, and a list of namespaces nothing else.
func FuzzContinue(f *testing.F) {
	a := start(f)
	for _, ns := range []string{"aaa", "mmm", "mmm2", "mmmm", "zzz"} {
		for _, name := range []string{"a", "m", "z"} {
			a.must(201, "POST", "/api/v1/namespaces/"+ns+"/configmaps", `{"metadata":{"name":"`+name+`"},"data":{"of":"`+ns+`"}}`)
		}
	}
	first := a.must(200, "GET", "/api/v1/namespaces/mmm/configmaps?limit=1", "").list.Continue
	given, err := base64.RawURLEncoding.DecodeString(first)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(given, "1", "")
	f.Add(given, "", "1")
	for _, seed := range []string{
		`{"v":"meta.k8s.io/v1","rv":-1,"start":"a\u0000"}`, `{"v":"meta.k8s.io/v1","rv":3,"start":"../mmm2/"}`, `{"v":"meta.k8s.io/v1","rv":9223372036854775807,"start":"/"}`,
		`{"v":"meta.k8s.io/v1","rv":-1,"start":"\u0000"}`, `{"v":"meta.k8s.io/v1","rv":1,"start":"2/a"}`, `{"v":"meta.k8s.io/v1","rv":-9,"start":"x"}`, `{"start":"\uffff"}`, `{"v":"meta.k8s.io/v1","rv":1e3,"start":"\ud800"}`, `null`,
	} {
		f.Add([]byte(seed), "2", "")
	}
	f.Fuzz(func(t *testing.T, token []byte, limit, version string) {
		query := "?" + url.Values{"continue": {base64.RawURLEncoding.EncodeToString(token)}, "limit": {limit}, "resourceVersion": {version}}.Encode()
		for path, of := range map[string]string{"/api/v1/namespaces/mmm/configmaps": "mmm", "/api/v1/configmaps": "", "/api/v1/namespaces": ""} {
			r, err := a.try(t.Context(), "GET", path+query, "")
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case r.code == 200 && path == "/api/v1/namespaces":
				if len(r.list.Items) > 0 || strings.Contains(r.body, `"of"`) {
					t.Errorf("%s%s shows what is no namespace: %s", path, query, r.body)
				}
			case r.code == 200:
				for _, item := range r.list.Items {
					if of != "" && item.Namespace != of || item.Data["of"] != item.Namespace {
						t.Errorf("%s%s shows an object of %s", path, query, item.Namespace)
					}
				}
				if next := r.list.Continue; next != "" && len(r.list.Items) == 0 {
					t.Errorf("%s%s gives a token and no objects", path, query)
				}
			case r.code >= 500 && r.code != 504 || r.status.Reason == "" || int(r.status.Code) != r.code:
				t.Errorf("%s%s: got %d %s", path, query, r.code, r.body)
			}
		}
	})
}
