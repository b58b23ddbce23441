package server_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func names(r result) []string {
	var all []string
	for _, cm := range r.list.Items {
		all = append(all, cm.Name)
	}
	return all
}

func TestList(t *testing.T) {
	a := start(t)
	if r := a.must(200, "GET", collection, ""); !strings.Contains(r.body, `"items":[]`) || r.list.Kind != "ConfigMapList" {
		t.Errorf("an empty list is %s", r.body)
	}
	for _, body := range []string{
		`{"metadata":{"name":"b","labels":{"app":"web","tier":"2"}}}`,
		`{"metadata":{"name":"a","labels":{"app":"web"}},"data":{"k":"v"}}`,
		`{"metadata":{"name":"c","labels":{"app":"db"}}}`,
		`{"metadata":{"name":"bb"}}`,
	} {
		a.must(201, "POST", collection, body)
	}
	a.must(201, "POST", "/api/v1/namespaces/another/configmaps", `{"metadata":{"name":"z","labels":{"app":"web"}}}`)
	for _, c := range []struct {
		path, query string
		want        []string
	}{
		{collection, "", []string{"a", "b", "bb", "c"}},
		{collection + "/", "", []string{"a", "b", "bb", "c"}},
		{"/api/v1/configmaps", "", []string{"z", "a", "b", "bb", "c"}},
		{"/api/v1/namespaces/none/configmaps", "", nil},
		{collection, "labelSelector=app%3Dweb", []string{"a", "b"}},
		{collection, "labelSelector=app+in+(web,db),!tier", []string{"a", "c"}},
		{collection, "fieldSelector=metadata.name%3Db", []string{"b"}},
		{collection, "fieldSelector=metadata.name!%3Db", []string{"a", "bb", "c"}},
		{"/api/v1/configmaps", "fieldSelector=metadata.namespace%3Danother", []string{"z"}},
		{"/api/v1/configmaps", "fieldSelector=metadata.name%3Da&labelSelector=app%3Ddb", nil},
		{collection, "resourceVersion=0", []string{"a", "b", "bb", "c"}},
		{collection, "resourceVersion=1", []string{"a", "b", "bb", "c"}},
		{collection, "resourceVersion=2&resourceVersionMatch=Exact", []string{"a", "b"}},
		{collection, "watch=false", []string{"a", "b", "bb", "c"}},
	} {
		r := a.must(200, "GET", c.path+"?"+c.query, "")
		if got := names(r); !slices.Equal(got, c.want) {
			t.Errorf("%s?%s: got %v, want %v", c.path, c.query, got, c.want)
		}
	}
	r := a.must(200, "GET", collection, "")
	if r.list.ResourceVersion != "5" || r.list.Items[0].ResourceVersion != "2" || r.list.Items[0].Data["k"] != "v" || r.list.Items[0].Kind != "" {
		t.Errorf("got %s", r.body)
	}
}

func TestSelectors(t *testing.T) {
	a := begin(t)
	const other = "/api/v1/namespaces/other/configmaps"
	for _, body := range []string{
		`{"metadata":{"name":"none"}}`,
		`{"metadata":{"name":"web1","labels":{"app":"web","tier":"1"}}}`,
		`{"metadata":{"name":"web2","labels":{"app":"web","tier":"2"}}}`,
		`{"metadata":{"name":"db","labels":{"app":"db","tier":""}}}`,
	} {
		a.must(201, "POST", collection, body)
	}
	a.must(201, "POST", other, `{"metadata":{"name":"none"}}`)
	const all, namespaces = "/api/v1/configmaps", "/api/v1/namespaces"
	a.must(201, "POST", namespaces, `{"metadata":{"name":"stuck","finalizers":["example.com/a"]}}`)
	a.must(200, "DELETE", namespaces+"/stuck", "")
	for _, c := range []struct {
		path, labels, fields string
		want                 string
	}{
		{collection, "app=web", "", "web1 web2"},
		{collection, "app==web,tier!=1", "", "web2"},
		{collection, "app!=web", "", "db none"},
		{collection, "app in (web,db)", "", "db web1 web2"},
		{collection, "app notin (web)", "", "db none"},
		{collection, "tier", "", "db web1 web2"},
		{collection, "!tier", "", "none"},
		{collection, "tier=", "", "db"},
		{collection, "tier>1", "", "web2"},
		{collection, "tier<2,app", "", "web1"},
		{collection, "", "metadata.name=db", "db"},
		{collection, "", "metadata.name!=db", "none web1 web2"},
		{collection, "app=web", "metadata.name=db", ""},
		{collection, "", "metadata.name=we", ""},
		{collection, "", "metadata.namespace=other", ""},
		{all, "", "metadata.name=none", "none none"},
		{all, "", "metadata.namespace=other", "none"},
		{all, "", "metadata.namespace=default,metadata.name=db", "db"},
		{all, "", "metadata.namespace!=default", "none"},
		{namespaces, "", "metadata.name=other", "other"},
		{namespaces, "kubernetes.io/metadata.name=other", "", "other"},
		{namespaces, "", "status.phase=Terminating", "stuck"},
		{namespaces, "", "status.phase=Active,metadata.name!=other", "default kube-public kube-system"},
	} {
		q := url.Values{}
		if c.labels != "" {
			q.Set("labelSelector", c.labels)
		}
		if c.fields != "" {
			q.Set("fieldSelector", c.fields)
		}
		r := a.must(200, "GET", c.path+"?"+q.Encode(), "")
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal([]byte(r.body), &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range list.Items {
			got = append(got, o.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s %q %q: got %q, want %q", c.path, c.labels, c.fields, got, c.want)
		}
	}
}

func TestListRefusals(t *testing.T) {
	a := begin(t)
	for _, c := range []struct {
		query   string
		code    int
		reason  string
		message string
	}{
		{"limit=x", 400, "BadRequest", `parsing "x"`},
		{"limit=", 400, "BadRequest", "invalid syntax"},
		{"timeoutSeconds=1.5", 400, "BadRequest", `parsing "1.5"`},
		{"labelSelector=a+b", 400, "BadRequest", "unable to parse requirement"},
		{"fieldSelector=a,b", 400, "BadRequest", "invalid selector"},
		{"fieldSelector=status.phase%3DActive", 400, "BadRequest", "is not a known field selector"},
		{"resourceVersion=abc", 400, "BadRequest", "invalid resource version"},
		{"resourceVersion=1&continue=abc", 400, "BadRequest", "specifying resource version is not allowed when using continue"},
		{"continue=abc", 400, "BadRequest", "continue key is not valid"},
		{"resourceVersionMatch=Exact", 422, "Invalid", "resourceVersionMatch is forbidden unless resourceVersion is provided"},
		{"resourceVersionMatch=Exact&resourceVersion=0", 422, "Invalid", "is forbidden for resourceVersion \"0\""},
		{"resourceVersionMatch=exact&resourceVersion=1", 422, "Invalid", "Unsupported value"},
		{"sendInitialEvents=false", 422, "Invalid", "sendInitialEvents is forbidden for list"},
		{"resourceVersion=99", 504, "Timeout", "Too large resource version: 99, current: 1"},
		{"resourceVersion=99&resourceVersionMatch=Exact", 504, "Timeout", "Too large resource version"},
	} {
		isStatus(t, a.do("GET", collection+"?"+c.query, ""), c.code, c.reason, c.message)
	}
}

func TestListInPagesIsASnapshot(t *testing.T) {
	a := start(t)
	for i := range 7 {
		label := `"odd":"` + strconv.Itoa(i%2) + `"`
		a.must(201, "POST", collection, `{"metadata":{"name":"n`+strconv.Itoa(i)+`","labels":{`+label+`}}}`)
	}
	for _, c := range []struct {
		query string
		pages [][]string
		left  []int64 // remainingItemCount of each page; none with a selector
	}{
		{"limit=3", [][]string{{"n0", "n1", "n2"}, {"n3", "n4", "n5"}, {"n6"}}, []int64{4, 1}},
		{"limit=7", [][]string{{"n0", "n1", "n2", "n3", "n4", "n5", "n6"}}, nil},
		{"limit=2&labelSelector=odd%3D0", [][]string{{"n0", "n2"}, {"n4", "n6"}}, nil},
		{"limit=2&labelSelector=odd%3D1", [][]string{{"n1", "n3"}, {"n5"}}, nil},
	} {
		token := ""
		for i, want := range c.pages {
			r := a.must(200, "GET", collection+"?"+c.query+"&continue="+url.QueryEscape(token), "")
			if got := names(r); !slices.Equal(got, want) {
				t.Errorf("%s: page %d is %v, want %v", c.query, i, got, want)
			}
			if i < len(c.left) && (r.list.RemainingItemCount == nil || *r.list.RemainingItemCount != c.left[i]) {
				t.Errorf("%s: page %d: remaining %v", c.query, i, r.list.RemainingItemCount)
			}
			if r.list.ResourceVersion != "7" {
				t.Errorf("%s: page %d is of version %s", c.query, i, r.list.ResourceVersion)
			}
			token = r.list.Continue
		}
		if token != "" {
			t.Errorf("%s: there is more after the last page", c.query)
		}
	}

	first := a.must(200, "GET", collection+"?limit=5", "")
	a.must(200, "DELETE", collection+"/n6", "")
	a.must(201, "POST", collection, `{"metadata":{"name":"n9"}}`)
	rest := a.must(200, "GET", collection+"?continue="+first.list.Continue, "")
	if got := names(rest); !slices.Equal(got, []string{"n5", "n6"}) {
		t.Errorf("the rest of the snapshot is %v", got)
	}

	if err := a.store.Compact(t.Context(), a.store.State().Current); err != nil {
		t.Fatal(err)
	}
	gone := a.do("GET", collection+"?continue="+first.list.Continue, "")
	isStatus(t, gone, 410, "Expired", "too old to display a consistent list")
	rest = a.must(200, "GET", collection+"?continue="+gone.status.Continue, "")
	if got := names(rest); !slices.Equal(got, []string{"n5", "n9"}) {
		t.Errorf("the inconsistent rest is %v", got)
	}
	isStatus(t, a.do("GET", collection+"?resourceVersion=2&resourceVersionMatch=Exact", ""), 410, "Expired", "too old")
}

func TestPrettyJSON(t *testing.T) {
	a := start(t)
	a.create()
	if r := a.must(200, "GET", flags+"?pretty=true", ""); !strings.Contains(r.body, "\n  \"metadata\": {\n") || r.version() != "1" {
		t.Errorf("got %s", r.body)
	}
}
