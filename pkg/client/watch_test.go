package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

func TestAWatchTellsWhatIsThereAndThenWhatHappens(t *testing.T) {
	api := newFlaky(inMemory(t, 1))
	w := writer{t, mapsOf(t, api)}
	w.set("b", "1")
	w.set("a", "1")
	f := follow(t, w.maps, client.WatchOptions{})
	f.expect("ADDED a 1", "ADDED b 1", "SYNCED")
	w.set("a", "2")
	w.delete("b")
	w.set("b", "3")
	f.expect("MODIFIED a 2 was 1", "DELETED b 1 was 1", "ADDED b 3")
}

func TestAWatchOfAllNamespaces(t *testing.T) {
	c := connect(t, client.TargetOptions{Server: listen(t, inMemory(t, 1))}, client.Options{})
	f := follow(t, c.ConfigMaps(""), client.WatchOptions{})
	f.expect("SYNCED")
	for _, ns := range []string{"team-a", "team-b"} {
		mustCreate(t, c.ConfigMaps(ns), types.NewDocument(ns, "same"))
		if e := f.next(); e.Type != client.Added || e.Object.Namespace() != ns {
			t.Errorf("got %s in %s, want it in %s", brief(e), e.Object.Namespace(), ns)
		}
	}
}

func TestAWatchOfOneObjectIsAListWithItsName(t *testing.T) {
	api := newFlaky(inMemory(t, 1))
	w := writer{t, mapsOf(t, api)}
	w.set("a", "1")
	w.set("b", "1")
	f := follow(t, w.maps, client.WatchOptions{Name: "b"})
	f.expect("ADDED b 1", "SYNCED")
	w.set("a", "2")
	w.set("b", "2")
	f.expect("MODIFIED b 2 was 1")
	if n := api.seen("fieldSelector=metadata.name%3Db"); n < 3 {
		t.Errorf("%d requests have the selector, want all three: the list, the watch, the check", n)
	}
}

func TestAnObjectThatLeavesTheSelectionIsStillThere(t *testing.T) {
	w := writer{t, mapsOf(t, inMemory(t, 1))}
	f := follow(t, w.maps, client.WatchOptions{ListOptions: client.ListOptions{LabelSelector: "tier=web"}})
	f.expect("SYNCED")
	w.set("a", "1")
	w.set("a", "2", "tier", "web")
	w.set("a", "3")
	w.set("a", "4", "tier", "db")
	w.set("a", "5")
	f.expect("ADDED a 2", "MODIFIED a 3 was 2")
	gone := f.next()
	if got := brief(gone); got != "DELETED a 3 was 3" {
		t.Fatalf("got %q", got)
	}
	if left, err := w.maps.Left(t.Context(), gone.Object); err != nil || !left {
		t.Errorf("left is %v, %v", left, err)
	}
	w.delete("a")
	if left, err := w.maps.Left(t.Context(), gone.Object); err != nil || left {
		t.Errorf("left is %v, %v after it was deleted", left, err)
	}
	w.set("a", "6")
	if left, err := w.maps.Left(t.Context(), gone.Object); err != nil || left {
		t.Errorf("left is %v, %v of another object of that name", left, err)
	}
}

// What happens while the watch is broken is delivered afterwards, one by one,
// by a server that has kept it.
func TestAWatchGoesOnWhereItWas(t *testing.T) {
	for name, breakIt := range map[string]func(api *flaky, w writer){
		"the stream is cut":   func(api *flaky, _ writer) { api.end(errCut) },
		"the stream ends":     func(api *flaky, _ writer) { api.end(errEnd) },
		"the server is away":  func(api *flaky, _ writer) { api.leave() },
		"an error in between": func(api *flaky, _ writer) { api.answer(oneTime(500)); api.end(errCut) },
		"too many requests":   func(api *flaky, _ writer) { api.answer(oneTime(429)); api.end(errCut) },
		"a proxy's page":      func(api *flaky, _ writer) { api.answer(oneTime(404)); api.end(errCut) },
	} {
		t.Run(name, func(t *testing.T) {
			real := inMemory(t, 1)
			api := newFlaky(real)
			w := writer{t, mapsOf(t, real)}
			w.set("a", "1")
			f := follow(t, mapsOf(t, api), client.WatchOptions{})
			f.expect("ADDED a 1", "SYNCED")
			w.set("a", "2")
			f.expect("MODIFIED a 2 was 1")
			breakIt(api, w)
			w.set("a", "3")
			w.delete("a")
			w.set("a", "4")
			api.come(real)
			f.expect("MODIFIED a 3 was 2", "DELETED a 3 was 3", "ADDED a 4")
		})
	}
}

// oneTime answers the next request with that code, and no Status.
func oneTime(code int) func(http.ResponseWriter, *http.Request) bool {
	done := false
	return func(w http.ResponseWriter, _ *http.Request) bool {
		if done {
			return false
		}
		done = true
		http.Error(w, "not the API", code)
		return true
	}
}

const expiredStatus = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}`

// A version that is no longer kept is told as the code of the answer, or as an
// event in a stream that began well.
func TestAWatchWhoseVersionExpiredDeliversTheDifference(t *testing.T) {
	for name, gone := range map[string]func(w http.ResponseWriter){
		"as a code": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusGone)
			_, _ = io.WriteString(w, expiredStatus)
		},
		"as an event": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"type":"ERROR","object":`+expiredStatus+"}\n")
		},
		"as an event of the older kind": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Gone","code":410}}`+"\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			real := inMemory(t, 1)
			api := newFlaky(real)
			w := writer{t, mapsOf(t, real)}
			for _, object := range []string{"changed", "deleted", "renewed", "same"} {
				w.set(object, "1")
			}
			relisting := make(chan bool)
			told := sync.OnceFunc(func() { close(relisting) })
			f := follow(t, mapsOf(t, api), client.WatchOptions{Observe: func(n client.WatchNotice) {
				if n.Kind == client.WatchRelisting {
					told()
				}
			}})
			f.expect("ADDED changed 1", "ADDED deleted 1", "ADDED renewed 1", "ADDED same 1", "SYNCED")
			api.leave()
			w.set("changed", "2")
			w.set("changed", "3")
			w.delete("deleted")
			w.delete("renewed")
			w.set("renewed", "2")
			w.set("new", "1")
			first := true
			api.answer(func(w http.ResponseWriter, r *http.Request) bool {
				if !first || !isWatch(r) {
					return false
				}
				first = false
				gone(w)
				return true
			})
			api.come(real)
			f.expect("DELETED deleted 1 was 1 relisted", "DELETED renewed 1 was 1 relisted",
				"MODIFIED changed 3 was 1 relisted", "ADDED new 1 relisted", "ADDED renewed 2 relisted")
			w.set("same", "2")
			f.expect("MODIFIED same 2 was 1")
			<-relisting
		})
	}
}

// A version of another store means nothing: it may lie in the future, of which
// nothing is told, or in the past of another history.
func TestAWatchNoticesThatTheStoreIsAnother(t *testing.T) {
	for name, initial := range map[string]store.Revision{"whose versions are lower": 1, "whose versions are higher": 900, "with the same versions": 100} {
		t.Run("a store "+name, func(t *testing.T) {
			first := inMemory(t, 100)
			api := newFlaky(first)
			old := writer{t, mapsOf(t, first)}
			old.set("a", "1")
			old.set("b", "1")
			f := follow(t, mapsOf(t, api), client.WatchOptions{})
			f.expect("ADDED a 1", "ADDED b 1", "SYNCED")
			api.leave()

			second := inMemory(t, initial)
			now := writer{t, mapsOf(t, second)}
			now.set("b", "9")
			now.set("c", "9")
			now.set("c", "10")
			api.come(second)
			f.expect("DELETED a 1 was 1 relisted", "DELETED b 1 was 1 relisted", "ADDED b 9 relisted", "ADDED c 10 relisted")
			now.set("b", "11")
			f.expect("MODIFIED b 11 was 9")
		})
	}
}

func TestAWatchOfNothingNoticesThatTheStoreIsAnother(t *testing.T) {
	first, second := inMemory(t, 100), inMemory(t, 100)
	api := newFlaky(first)
	old, now := writer{t, mapsOf(t, first)}, writer{t, mapsOf(t, second)}
	f := follow(t, mapsOf(t, api), client.WatchOptions{})
	f.expect("SYNCED")
	old.set("a", "1")
	old.delete("a")
	f.expect("ADDED a 1", "DELETED a 1 was 1")
	api.leave()
	now.set("b", "1")
	now.set("b", "2")
	api.come(second)
	f.expect("ADDED b 2 relisted")
}

// A store to which nothing was written has no version to go on from.
func TestAWatchOfAnEmptyStoreBeginsWithWhatIsThereByThen(t *testing.T) {
	w := writer{t, mapsOf(t, realAPI(t))}
	f := follow(t, w.maps, client.WatchOptions{})
	f.expect("SYNCED")
	w.set("a", "1")
	f.expect("ADDED a 1")
}

// The store may be replaced at the very moment between two requests.
func TestAWatchNoticesAStoreThatIsReplacedBetweenTheListAndTheWatch(t *testing.T) {
	first, second := inMemory(t, 500), inMemory(t, 1)
	api := newFlaky(first)
	writer{t, mapsOf(t, first)}.set("a", "1")
	now := writer{t, mapsOf(t, second)}
	api.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if !isWatch(r) {
			return false
		}
		api.answer(nil)
		api.come(second)
		second.ServeHTTP(w, r)
		return true
	})
	f := follow(t, mapsOf(t, api), client.WatchOptions{})
	f.expect("ADDED a 1", "SYNCED", "DELETED a 1 was 1 relisted")
	now.set("b", "1")
	f.expect("ADDED b 1")
}

// An undisturbed resume costs no second list of the data.
func TestAWatchThatGoesOnReadsNoData(t *testing.T) {
	real := inMemory(t, 1)
	api := newFlaky(real)
	w := writer{t, mapsOf(t, real)}
	w.set("a", "1")
	f := follow(t, mapsOf(t, api), client.WatchOptions{})
	f.expect("ADDED a 1", "SYNCED")
	w.set("a", "2")
	f.expect("MODIFIED a 2 was 1")
	api.end(errCut)
	w.set("a", "3")
	w.delete("a")
	f.expect("MODIFIED a 3 was 2", "DELETED a 3 was 3")
	api.end(errCut)
	w.set("a", "4")
	f.expect("ADDED a 4")
	lists := api.seen("GET") - api.seen("watch=true") - api.seen("resourceVersionMatch=Exact")
	if lists != 1 {
		t.Errorf("%d lists, want the first alone", lists)
	}
}

func TestAWatchEnds(t *testing.T) {
	forbidden := stub(403, "application/json", `{"kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)
	t.Run("with the context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for e, err := range mapsOf(t, inMemory(t, 1)).Watch(ctx, client.WatchOptions{}) {
			if e.Type == client.Synced {
				cancel()
			} else if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, %v", e, err)
			}
		}
	})
	t.Run("when the caller breaks off", func(t *testing.T) {
		n := 0
		for range mapsOf(t, inMemory(t, 1)).Watch(t.Context(), client.WatchOptions{}) {
			n++
			break
		}
		if n != 1 {
			t.Errorf("%d events", n)
		}
	})
	t.Run("when it is forbidden", func(t *testing.T) {
		if err := follow(t, mapsOf(t, forbidden), client.WatchOptions{Patient: true}).end(); !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("when it becomes forbidden", func(t *testing.T) {
		api := newFlaky(inMemory(t, 1))
		f := follow(t, mapsOf(t, api), client.WatchOptions{})
		f.expect("SYNCED")
		api.come(forbidden)
		api.end(errCut)
		if err := f.end(); !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("at once where the server can't be reached at first", func(t *testing.T) {
		api := newFlaky(nil)
		api.leave()
		if err := follow(t, mapsOf(t, api), client.WatchOptions{}).end(); !client.IsUnreachable(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("when the server stays away", func(t *testing.T) {
		api := newFlaky(inMemory(t, 1))
		f := follow(t, mapsOf(t, api), client.WatchOptions{GiveUpAfter: 20 * time.Millisecond})
		f.expect("SYNCED")
		api.leave()
		err := f.end()
		var gaveUp *client.GaveUpError
		if !errors.As(err, &gaveUp) || gaveUp.Attempts < 2 || !client.IsUnreachable(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAPatientWatchWaitsForTheServer(t *testing.T) {
	real := inMemory(t, 1)
	api := newFlaky(real)
	api.leave()
	notices := make(chan client.WatchNotice, 1000)
	f := follow(t, mapsOf(t, api), client.WatchOptions{Patient: true, Observe: func(n client.WatchNotice) { notices <- n }})
	if n := <-notices; n.Kind != client.WatchBroken || n.Err == nil {
		t.Errorf("got %+v", n)
	}
	api.come(real)
	f.expect("SYNCED")
	n := <-notices
	for n.Kind == client.WatchBroken {
		n = <-notices
	}
	if n.Kind != client.WatchResumed {
		t.Errorf("got %+v", n)
	}
}

// What no server of the API sends ends the stream, and nothing of it is
// believed.
func TestAWatchDoesNotBelieveNonsense(t *testing.T) {
	for _, nonsense := range []string{
		`<html>`,
		`{"type":"MODIFIED","object":{"kind":"Pod","metadata":{"name":"a","namespace":"team-a","resourceVersion":"9"}}}`,
		`{"type":"MODIFIED","object":{"kind":"ConfigMap","metadata":{"name":"a","namespace":"team-a"}}}`,
		`{"type":"SYNCED","object":{"kind":"ConfigMap","metadata":{"name":"a","namespace":"team-a","resourceVersion":"9"}}}`,
		`{"type":"DELETED","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"9"}}}`,
		`{"type":"ERROR","object":{"kind":"ConfigMap"}}`,
		`{"type":"MODIFIED","object":[]}`,
		`{"type":"MODIFIED"}`,
		`{"type":7}`,
		`{"type":"MODIFIED","object":{"kind":"ConfigMap","meta`,
	} {
		t.Run(nonsense, func(t *testing.T) {
			real := inMemory(t, 1)
			api := newFlaky(real)
			w := writer{t, mapsOf(t, real)}
			w.set("a", "1")
			told := false
			api.answer(func(w http.ResponseWriter, r *http.Request) bool {
				if told || !isWatch(r) {
					return false
				}
				told = true
				_, _ = fmt.Fprintln(w, nonsense)
				return true
			})
			f := follow(t, mapsOf(t, api), client.WatchOptions{})
			f.expect("ADDED a 1", "SYNCED")
			w.set("a", "2")
			f.expect("MODIFIED a 2 was 1")
		})
	}
}
