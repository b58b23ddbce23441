package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/server/servertest"
	"example.com/cmctl/pkg/types"
)

// reads are all that can be read of one ConfigMap and of what there is.
var reads = map[string]func(ctx context.Context, m *client.ConfigMaps) error{
	"get": func(ctx context.Context, m *client.ConfigMaps) error { _, err := m.Get(ctx, "flags"); return err },
	"list": func(ctx context.Context, m *client.ConfigMaps) error {
		_, err := m.List(ctx, client.ListOptions{})
		return err
	},
	"rows": func(ctx context.Context, m *client.ConfigMaps) error {
		_, err := m.Rows(ctx, client.RowOptions{})
		return err
	},
	"names":   func(ctx context.Context, m *client.ConfigMaps) error { _, err := m.Names(ctx, 10); return err },
	"history": func(ctx context.Context, m *client.ConfigMaps) error { _, err := m.History(ctx, "flags"); return err },
	"version": func(ctx context.Context, m *client.ConfigMaps) error {
		list, err := m.History(ctx, "flags")
		if err != nil {
			return err
		}
		_, err = m.At(ctx, "flags", list.Items[0].ResourceVersion)
		return err
	},
	"first list of a watch": func(ctx context.Context, m *client.ConfigMaps) error {
		for e, err := range m.Watch(ctx, client.WatchOptions{}) {
			if err != nil || e.Type == client.Synced {
				return err
			}
		}
		return nil
	},
}

// A server with too much to do, on a network that breaks connections, is waited for
// and asked again, whatever is read.
func TestPatientReadsRideThrough(t *testing.T) {
	s := servertest.Start(t, servertest.Inject("429=40%,503=10%,reset=20%,retry-after=0s,seed=5"))
	caps := patient()
	caps.MaxAttempts = 100
	where := client.TargetOptions{Server: s.URL}
	m := connect(t, where, client.Options{Reads: &caps}).ConfigMaps(namespace)
	if _, err := retry.CreateOrGet(t.Context(), m.Object("flags"), flags("a", "1"), caps); err != nil {
		t.Fatal(err)
	}
	for name, read := range reads {
		for range 20 {
			if err := read(t.Context(), m); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	hasty := connect(t, where, client.Options{}).ConfigMaps(namespace)
	for name, read := range reads {
		failed := false
		for range 50 {
			failed = failed || read(t.Context(), hasty) != nil
		}
		if !failed {
			t.Errorf("%s: the test shows nothing: it goes through without patience", name)
		}
	}
}

// A loop that decides itself about another try gets each answer, and writes are sent
// once.
func TestPatienceIsForReadsOutsideOfLoopsAlone(t *testing.T) {
	busy := record(stub(http.StatusTooManyRequests, "application/json", `{"kind":"Status","status":"Failure","reason":"TooManyRequests","code":429}`))
	caps := retry.Options{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Microsecond, Max: time.Microsecond}}
	m := connect(t, client.TargetOptions{Server: listen(t, busy)}, client.Options{Reads: &caps}).ConfigMaps(namespace)
	for name, c := range map[string]struct {
		call   func() error
		method string
		want   int
	}{
		"a read":            {func() error { _, err := m.Get(t.Context(), "flags"); return err }, http.MethodGet, 4},
		"a loop's read":     {func() error { _, err := m.Object("flags").Get(t.Context()); return err }, http.MethodGet, 1},
		"a loop's question": {func() error { _, err := m.Object("flags").Find(t.Context(), "id", ""); return err }, http.MethodGet, 1},
		"a write":           {func() error { _, err := m.Create(t.Context(), flags("a", "1"), "id"); return err }, http.MethodPost, 1},
	} {
		before := len(busy.sent(c.method))
		if err := c.call(); err == nil {
			t.Errorf("%s went through", name)
		}
		if got := len(busy.sent(c.method)) - before; got != c.want {
			t.Errorf("%s was sent %d times, want %d", name, got, c.want)
		}
	}
}

// What is so until the server is restarted is not waited for; that a write has failed
// under way leaves it open all the same.
func TestARefusalUntilTheRestartIsFinal(t *testing.T) {
	damaged := types.StoreReadOnly()
	damaged.ErrStatus.Details.Causes[0].Type = "StoredDataDamaged"
	for name, c := range map[string]struct {
		status  *types.StatusError
		refused bool
	}{
		"no writes any more": {types.StoreReadOnly(), true},
		"failed in this one": {types.StoreFailed(), false},
		"damaged data":       {damaged, true},
		"shutting down":      {types.Unavailable("shutting down", 1), false},
	} {
		body, err := json.Marshal(c.status.ErrStatus)
		if err != nil {
			t.Fatal(err)
		}
		text := string(body)
		m := mapsOf(t, stub(int(c.status.ErrStatus.Code), "application/json", text))
		err = calls["put"](t.Context(), m)
		if errors.As(err, new(*retry.RefusedError)) != c.refused || client.NeedsRestart(err) != strings.Contains(text, "RestartNeeded") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
