package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/quota"
)

// quotas are those of a folder with one manifest: hard bounds of default.
func quotas(t testing.TB, hard string, d quota.Defaults) option {
	t.Helper()
	dir := t.TempDir()
	if hard != "" {
		text := "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: small, namespace: default}\nspec: {hard: {" + hard + "}}\n"
		if err := os.WriteFile(filepath.Join(dir, "q.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rules, err := quota.Load(dir, d)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *server.Options) { o.Quotas = rules.For }
}

var unbounded = quota.Defaults{Objects: quota.None, Bytes: quota.None}

// sized is the body of an object with a value of n bytes.
func sized(name string, n int) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"data":{"k":%q}}`, name, strings.Repeat("x", n))
}

// The refusal is Kubernetes' own, nothing is stored, and it is the same in a dry run.
func TestAQuotaOfObjects(t *testing.T) {
	a := begin(t, quotas(t, "configmaps: 2, count/configmaps: 2", unbounded))
	a.must(201, "POST", collection, named("one"))
	a.must(201, "POST", collection, named("two"))
	const message = `configmaps "three" is forbidden: exceeded quota: small, requested: configmaps=1,count/configmaps=1, ` +
		`used: configmaps=2,count/configmaps=2, limited: configmaps=2,count/configmaps=2`
	for name, send := range map[string]func() result{
		"create":  func() result { return a.do("POST", collection, named("three")) },
		"dry run": func() result { return a.do("POST", collection+"?dryRun=All", named("three")) },
		"apply": func() result {
			return a.do("PATCH", collection+"/three?fieldManager=t", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"three"}}`, applyPatch...)
		},
	} {
		r := send()
		if r.code != 403 || r.status.Message != message || string(r.status.Reason) != "Forbidden" || r.status.Details.Name != "three" {
			t.Errorf("%s: got %d %s", name, r.code, r.body)
		}
		a.must(404, "GET", collection+"/three", "")
	}
	// What is there can be changed, and made room of; other namespaces have their own.
	a.must(200, "PATCH", collection+"/one", `{"data":{"a":"b"}}`, mergePatch...)
	a.must(201, "POST", "/api/v1/namespaces/other/configmaps", named("three"))
	a.must(200, "DELETE", collection+"/two?dryRun=All", "")
	a.must(403, "POST", collection, named("three"))
	a.must(200, "DELETE", collection+"/two", "")
	a.must(201, "POST", collection+"?dryRun=All", named("three"))
	a.must(201, "POST", collection, named("three"))
	a.must(409, "POST", collection, named("three")) // which is there, and that is told
}

func TestAQuotaOfBytes(t *testing.T) {
	a := begin(t, quotas(t, quota.Bytes+": 4Ki", unbounded))
	a.must(201, "POST", collection, sized("a", 1000))
	a.must(201, "POST", collection, sized("b", 1000))
	isStatus(t, a.do("POST", collection, sized("c", 3000)), 403, "Forbidden", "exceeded quota: small, requested: "+quota.Bytes+"=")
	grow := func(name string, n int, query string) result {
		return a.do("PATCH", collection+"/"+name+query, fmt.Sprintf(`{"data":{"k":%q}}`, strings.Repeat("y", n)), mergePatch...)
	}
	for _, query := range []string{"", "?dryRun=All"} {
		isStatus(t, grow("a", 3500, query), 403, "Forbidden", "limited: "+quota.Bytes+"=4Ki")
	}
	if r := a.must(200, "GET", collection+"/a", ""); r.object.Data["k"] != strings.Repeat("x", 1000) {
		t.Error("what was refused was stored")
	}
	if r := grow("a", 10, ""); r.code != 200 {
		t.Errorf("a smaller value: %d %s", r.code, r.body)
	}
	a.must(201, "POST", collection, sized("c", 1000))
}

// What is beyond its quota already may shrink, be marked as deleted, and go.
func TestBeyondTheQuota(t *testing.T) {
	var now option
	a := begin(t, func(o *server.Options) {
		o.Quotas = func(string) []quota.Quota {
			o := server.Options{}
			if now != nil {
				now(&o)
				return o.Quotas("default")
			}
			return nil
		}
	})
	a.must(201, "POST", collection, sized("a", 1000))
	a.must(201, "POST", collection, `{"metadata":{"name":"held","finalizers":["example.com/x"]}}`)
	now = quotas(t, "configmaps: 1, "+quota.Bytes+": 10", unbounded)
	a.must(403, "PATCH", collection+"/a", `{"data":{"more":"1"}}`, mergePatch...)
	a.must(200, "PATCH", collection+"/a", `{"metadata":{"managedFields":[{}]},"data":{"k":"x"}}`, mergePatch...)
	a.must(200, "DELETE", collection+"/held", "") // it gets a mark, and is larger for it
	a.must(200, "PATCH", collection+"/held", `{"metadata":{"finalizers":null}}`, mergePatch...)
	a.must(404, "GET", collection+"/held", "")
	a.must(200, "DELETE", collection, "")
	a.must(403, "POST", collection, sized("a", 1000))
}

// Bounds for every namespace hold where a manifest sets none.
func TestBoundsOfEveryNamespace(t *testing.T) {
	a := begin(t, quotas(t, "configmaps: 3", quota.Defaults{Objects: 1, Bytes: 2 << 10}))
	other := "/api/v1/namespaces/other/configmaps"
	a.must(201, "POST", other, named("a"))
	isStatus(t, a.do("POST", other, named("b")), 403, "Forbidden",
		"exceeded quota: namespace-max-objects, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1")
	a.must(201, "POST", collection, named("a"))
	a.must(201, "POST", collection, named("b"))
	isStatus(t, a.do("POST", collection, sized("c", 2000)), 403, "Forbidden", "exceeded quota: namespace-max-bytes, ")
	// A namespace that its first object would have made is not made.
	a.must(403, "POST", "/api/v1/namespaces/new/configmaps", sized("a", 3000))
	a.must(404, "GET", "/api/v1/namespaces/new", "")
}

// Of creates beside each other no more come through than there is room for.
func TestAQuotaUnderConcurrency(t *testing.T) {
	a := begin(t, quotas(t, "configmaps: 10", unbounded))
	codes := make(chan int, 40)
	var work sync.WaitGroup
	for n := range cap(codes) {
		work.Go(func() { codes <- a.do("POST", collection, named(fmt.Sprint("n", n))).code })
	}
	work.Wait()
	close(codes)
	got := map[int]int{}
	for code := range codes {
		got[code]++
	}
	if got[201] != 10 || got[403] != 30 {
		t.Errorf("got %v", got)
	}
}
