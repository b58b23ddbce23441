package client_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
)

// metered counts the bytes of the answers to GETs.
func metered(next http.Handler, sent *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w = &meter{w, sent}
		}
		next.ServeHTTP(w, r)
	})
}

type meter struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (m *meter) Write(b []byte) (int, error) {
	m.sent.Add(int64(len(b)))
	return m.ResponseWriter.Write(b)
}

// incompressible is text that no compression on the way makes small.
func incompressible(size int) string {
	random := rand.New(rand.NewPCG(1, 2))
	b := strings.Builder{}
	for b.Len() < size {
		b.WriteString(strconv.FormatUint(random.Uint64(), 36))
	}
	return b.String()
}

func TestRowsMoveNoContents(t *testing.T) {
	var sent atomic.Int64
	c := connect(t, client.TargetOptions{Server: listen(t, metered(realAPI(t), &sent))}, client.Options{})
	const n, size, most = 20, 500 << 10, 2 << 10
	for i := range n {
		doc := types.NewDocument(namespace, fmt.Sprintf("cm-%02d", i))
		doc.Set(types.Field{Section: "data", Key: "big"}, incompressible(size))
		doc.Set(types.Field{Section: "data", Key: "small"}, "y")
		doc.Set(types.Field{Section: "metadata.labels", Key: "n"}, fmt.Sprint(i))
		mustCreate(t, c.ConfigMaps(namespace), doc)
	}
	for _, listed := range []string{namespace, ""} {
		for _, metadata := range []bool{false, true} {
			sent.Store(0)
			rows, err := c.ConfigMaps(listed).Rows(t.Context(), client.RowOptions{Metadata: metadata})
			if err != nil || len(rows) != n {
				t.Fatalf("%d rows, %v", len(rows), err)
			}
			if got := sent.Load(); got > n*most {
				t.Errorf("%d bytes were moved for %d rows", got, n)
			}
			for i, r := range rows {
				if r.Namespace != namespace || r.Name != fmt.Sprintf("cm-%02d", i) || r.Keys != "2" || r.Age == "" {
					t.Errorf("row %d is %+v", i, r)
				}
				if label, _ := r.Object.Value("metadata", "labels", "n"); (metadata || listed == "") && label != fmt.Sprint(i) {
					t.Errorf("row %d has the metadata %v", i, r.Object)
				}
			}
		}
	}
}

func TestRowsOfAServerWithoutTables(t *testing.T) {
	list := `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a","namespace":"team-a"},"data":{"k":"v"}}]}`
	rows, err := mapsOf(t, stub(200, "application/json", list)).Rows(t.Context(), client.RowOptions{})
	if err != nil || len(rows) != 1 || rows[0].Name != "a" || rows[0].Keys != "1" || rows[0].Object == nil {
		t.Errorf("got %+v, %v", rows, err)
	}
}

func TestRowsRefuseWhatIsNoTable(t *testing.T) {
	for _, body := range []string{
		`{"kind":"Table","columnDefinitions":[],"rows":[]}`,
		`{"kind":"Table","columnDefinitions":[{"name":"Name"}],"rows":[{"cells":[]}]}`,
		`{"kind":"Table","columnDefinitions":[{"name":"Name"}],"rows":{}}`,
		`{"kind":"PodList","items":[]}`,
		`<html>`,
	} {
		if rows, err := mapsOf(t, stub(200, "application/json", body)).Rows(t.Context(), client.RowOptions{}); err == nil {
			t.Errorf("%s became %v", body, rows)
		}
	}
}

func TestSelectorsAndPageSizesGoToTheServer(t *testing.T) {
	api := record(realAPI(t))
	m := mapsOf(t, api)
	for _, name := range []string{"a", "b", "c"} {
		mustCreate(t, m, types.NewDocument(namespace, name))
	}
	o := client.ListOptions{FieldSelector: "metadata.name!=b", PageSize: 1}
	list, err := m.List(t.Context(), o)
	if err != nil || len(list.Items) != 2 || list.Items[1].Name() != "c" {
		t.Errorf("got %v, %v", list, err)
	}
	if n := len(api.sent(http.MethodGet)); n < 2 {
		t.Errorf("%d pages were read", n)
	}
	if rows, err := m.Rows(t.Context(), client.RowOptions{ListOptions: o}); err != nil || len(rows) != 2 {
		t.Errorf("got %v, %v", rows, err)
	}
}
