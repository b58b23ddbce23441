package server_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"example.com/cmctl/pkg/server/store"
)

func TestDeleteTellsWhatWasDeleted(t *testing.T) {
	a := start(t)
	was := a.create()
	r := a.must(200, "DELETE", flags, fmt.Sprintf(`{"preconditions":{"uid":%q,"resourceVersion":%q}}`, was.object.UID, was.version()))
	s := r.status
	if s.Status != "Success" || s.Details.Name != "flags" || s.Details.Kind != "configmaps" || s.Details.UID != was.object.UID {
		t.Errorf("got %s", r.body)
	}
	isStatus(t, a.do("GET", flags, ""), 404, "NotFound", "")
}

func TestDeleteReadsAgainWhatMovedUnderIt(t *testing.T) {
	for _, c := range []struct {
		name, options string
		code          int
	}{
		{"without preconditions", ``, 200},
		{"with its version", `{"preconditions":{"resourceVersion":"1"}}`, 409},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, h := hook(t)
			version := a.create().version()
			var once sync.Once
			h.commit = func(ctx context.Context, txn store.Txn) (store.Revision, error) {
				if txn.Writes[0].Deleted {
					once.Do(func() { a.must(200, "PUT", flags, flagsBody(version, `{"mode":"green"}`)) })
				}
				return h.Store.Commit(ctx, txn)
			}
			if r := a.do("DELETE", flags, c.options); r.code != c.code {
				t.Errorf("got %d, want %d: %s", r.code, c.code, r.body)
			}
		})
	}
}

func TestFinalizersHoldAnObject(t *testing.T) {
	a := start(t)
	a.must(201, "POST", collection, `{"metadata":{"name":"flags","finalizers":["example.com/hold"]}}`)
	marked := a.must(200, "DELETE", flags, "")
	if marked.object.DeletionTimestamp == nil || marked.version() != "2" {
		t.Errorf("got %s", marked.body)
	}
	if again := a.must(200, "DELETE", flags, ""); again.body != marked.body {
		t.Errorf("marked again: %s", again.body)
	}
	isStatus(t, a.do("POST", collection, `{"metadata":{"name":"flags"}}`), 409, "AlreadyExists", "object is being deleted")
	isStatus(t, a.do("PUT", flags, `{"metadata":{"name":"flags","resourceVersion":"2","finalizers":["example.com/hold","example.com/more"]}}`),
		422, "Invalid", "no new finalizers")
	a.must(200, "PUT", flags, `{"metadata":{"name":"flags","resourceVersion":"2"}}`)
	isStatus(t, a.do("GET", flags, ""), 404, "NotFound", "")
}

func TestDeleteCollection(t *testing.T) {
	a := start(t)
	for _, name := range []string{"a", "b", "c"} {
		a.must(201, "POST", collection, `{"metadata":{"name":"`+name+`","labels":{"n":"`+name+`"}}}`)
	}
	a.must(201, "POST", "/api/v1/namespaces/other/configmaps", `{"metadata":{"name":"a"}}`)
	if r := a.must(200, "DELETE", collection+"?labelSelector=n!%3Dc", ""); len(r.list.Items) != 2 {
		t.Errorf("deleted %s", r.body)
	}
	if r := a.must(200, "GET", "/api/v1/configmaps", ""); len(r.list.Items) != 2 || r.list.Items[0].Name != "c" || r.list.Items[1].Namespace != "other" {
		t.Errorf("left %s", r.body)
	}
}

// Kubernetes reads a version in the query of such a deletion twice: as the state
// that tells what is deleted, and as a precondition of each object.
func TestDeleteCollectionAtAVersion(t *testing.T) {
	a := start(t)
	for _, name := range []string{"a", "b"} {
		a.must(201, "POST", collection, named(name))
	}
	isStatus(t, a.do("DELETE", collection+"?resourceVersion=x", ""), 400, "BadRequest", "invalid resource version")
	isStatus(t, a.do("DELETE", collection+"?resourceVersion=2", ""), 409, "Conflict", `ConfigMap "a"`)
	if r := a.must(200, "DELETE", collection+"?resourceVersion=1&resourceVersionMatch=Exact", ""); len(r.list.Items) != 1 || r.list.Items[0].Name != "a" {
		t.Errorf("deleted %s", r.body)
	}
	if r := a.must(200, "GET", collection, ""); len(r.list.Items) != 1 || r.list.Items[0].Name != "b" {
		t.Errorf("left %s", r.body)
	}
}

func TestOrphanDependentsInTheQuery(t *testing.T) {
	for value, left := range map[string]int{"true": 1, "yes": 1, "": 1, "false": 0, "False": 0, "0": 0} {
		a := start(t)
		a.create()
		a.must(200, "DELETE", flags+"?orphanDependents="+value, "")
		if r := a.must(200, "GET", collection, ""); len(r.list.Items) != left {
			t.Errorf("%q left %s", value, r.body)
		}
	}
}

// What a policy asks for and is there already is not moved to the end.
func TestDeleteKeepsTheOrderOfFinalizers(t *testing.T) {
	a := start(t)
	a.must(201, "POST", collection, `{"metadata":{"name":"flags","finalizers":["orphan","example.com/hold"]}}`)
	r := a.must(200, "DELETE", flags+"?propagationPolicy=Orphan", "")
	if f := r.object.Finalizers; len(f) != 2 || f[0] != "orphan" {
		t.Errorf("finalizers %v", f)
	}
}

func TestDeleteOfWhatCannotBeReadIsForThatOnly(t *testing.T) {
	a := start(t)
	a.create()
	const unsafe = "ignoreStoreReadErrorWithClusterBreakingPotential"
	isStatus(t, a.do("DELETE", flags, `{"`+unsafe+`":true}`), 409, "Conflict", "can be read")
	isStatus(t, a.do("DELETE", flags+"?"+unsafe+"=true", ""), 409, "Conflict", "can be read")
	a.must(200, "DELETE", flags, `{"`+unsafe+`":false}`)
}

// The marks of an object that is to go stay as they are, whoever writes others.
func TestMarksOfADeletedObjectStay(t *testing.T) {
	a := start(t)
	const body = `{"metadata":{"name":"flags","resourceVersion":"%s","finalizers":["example.com/hold"]%s},"data":{"mode":"%s"}}`
	a.must(201, "POST", collection, fmt.Sprintf(body, "", "", "blue"))
	marked := a.must(200, "DELETE", flags, "").object
	isStatus(t, a.do("PUT", flags, fmt.Sprintf(body, marked.ResourceVersion, `,"deletionGracePeriodSeconds":5`, "green")),
		422, "Invalid", "metadata.deletionGracePeriodSeconds")
	for _, marks := range []string{``, `,"deletionTimestamp":"2001-01-01T00:00:00Z"`} {
		was := a.must(200, "GET", flags, "").object
		is := a.must(200, "PUT", flags, fmt.Sprintf(body, was.ResourceVersion, marks, "green"+marks[:min(1, len(marks))])).object
		if !is.DeletionTimestamp.Equal(marked.DeletionTimestamp) || is.DeletionGracePeriodSeconds == nil || *is.DeletionGracePeriodSeconds != 0 {
			t.Errorf("%s made %+v", marks, is.ObjectMeta)
		}
	}
}
