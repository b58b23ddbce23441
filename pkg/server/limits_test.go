package server

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"example.com/cmctl/pkg/server/authn"
)

// Users count by name, who is not known by address, and the programs of this machine
// not at all where nobody is asked.
func TestWhomARequestCountsFor(t *testing.T) {
	jane := &user.DefaultInfo{Name: "jane"}
	for _, c := range []struct {
		who    user.Info
		remote string
		want   string
	}{
		{jane, "192.0.2.7:1234", `user "jane"`},
		{jane, "127.0.0.1:1234", `user "jane"`},
		{jane, "@", `user "jane"`},
		{authn.Anonymous, "192.0.2.7:1234", "address 192.0.2.7"},
		{authn.Anonymous, "127.0.0.1:1234", "address 127.0.0.1"},
		{nil, "192.0.2.7:1234", "address 192.0.2.7"},
		{nil, "[::ffff:192.0.2.7]:1234", "address 192.0.2.7"},
		{nil, "[2001:db8:1:2:3:4:5:6]:1234", "address 2001:db8:1:2::"},
		{nil, "[fe80::1%eth0]:1234", "address fe80::"},
		{nil, "127.0.0.1:1234", "nobody"},
		{nil, "[::1]:1234", "nobody"},
		{nil, "@", "nobody"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.remote
		r.Header.Set("X-Forwarded-For", "198.51.100.1")
		r.Header.Set("X-Real-Ip", "198.51.100.1")
		info := &requestInfo{}
		info.attributes.User = c.who
		r = r.WithContext(context.WithValue(r.Context(), infoKey{}, info))
		got := senderOf(r)
		if said := got.String(); said != c.want && (c.want != "nobody" || got != (sender{})) {
			t.Errorf("%v at %s: got %s, want %s", c.who, c.remote, said, c.want)
		}
		info.impersonator = &user.DefaultInfo{Name: "joe"}
		if got := senderOf(r); got != (sender{user: "joe"}) {
			t.Errorf("joe as %v: got %s", c.who, got)
		}
	}
}

// Nobody has more than a share, all together no more than there is, and whoever leaves
// makes room.
func TestPlacesOfSenders(t *testing.T) {
	jane, joe, jim := sender{user: "jane"}, sender{user: "joe"}, sender{user: "jim"}
	p := newPlaces("reads", 3, 2)
	for _, step := range []struct {
		who  sender
		want string // the refusal
	}{
		{jane, ""}, {jane, ""},
		{jane, `the server has too many reads of user "jane" at once, please try again later`},
		{joe, ""},
		{jim, "the server has too many reads at once, please try again later"},
	} {
		err := p.enter(step.who)
		if step.want == "" && err != nil || step.want != "" && (!apierrors.IsTooManyRequests(err) || err.Error() != step.want) {
			t.Errorf("%s: got %v, want %q", step.who, err, step.want)
		}
	}
	p.leave(jane)
	if err := p.enter(jane); err != nil {
		t.Error(err)
	}
	for _, who := range []sender{jane, jane, joe} {
		p.leave(who)
	}
	for n := range 3 {
		if err := p.enter(sender{}); err != nil {
			t.Errorf("program %d of this machine: %v", n, err)
		}
	}
	if len(p.by) != 0 || p.taken != 3 {
		t.Errorf("in the end: %v, %d", p.by, p.taken)
	}
}

func TestShares(t *testing.T) {
	for _, c := range [][3]int{{1024, 0, 512}, {1, 0, 1}, {3, 0, 1}, {10, 7, 7}, {10, 70, 10}} {
		if got := shareOf(c[0], c[1]); got != c[2] {
			t.Errorf("of %d, %d set: got %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// flowing is a stream that a user has open.
func (ws *watches) flowing(who sender) (*watching, error) {
	w := &watching{sender: who}
	return w, ws.admit(w)
}

func TestWatchesOfSenders(t *testing.T) {
	jane, joe := sender{user: "jane"}, sender{user: "joe"}
	ws := watches{places: newPlaces("watches", 3, 1)}
	first, err := ws.flowing(jane)
	_, again := ws.flowing(jane)
	_, other := ws.flowing(joe)
	if err := errors.Join(err, other); err != nil || !apierrors.IsTooManyRequests(again) {
		t.Errorf("got %v, then %v", err, again)
	}
	ws.remove(first)
	ws.remove(first) // as may happen
	if _, err := ws.flowing(jane); err != nil {
		t.Error(err)
	}
	if _, again := ws.flowing(jane); !apierrors.IsTooManyRequests(again) {
		t.Errorf("jane has two: %v", again)
	}
}

// A head is refused that is too much to look at.
func TestTheHeadOfARequest(t *testing.T) {
	s := New(Options{Store: accepting{}})
	for name, c := range map[string]struct {
		path    string
		headers int
		code    int
		reason  string
	}{
		"a long selector":       {"/livez?labelSelector=" + strings.Repeat("x", 30<<10), 1, 200, ""},
		"a URL beyond":          {"/livez?labelSelector=" + strings.Repeat("x", 33<<10), 1, 414, "RequestURITooLong"},
		"many headers":          {"/livez", 256, 200, ""},
		"a header too many":     {"/livez", 257, 431, "RequestHeaderFieldsTooLarge"},
		"one header very often": {"/livez", -257, 431, "RequestHeaderFieldsTooLarge"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", c.path, nil)
			for n := range c.headers {
				r.Header.Set(strings.Repeat("x", n+1), "v")
			}
			for range -c.headers {
				r.Header.Add("Same", "v")
			}
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			if w.Code != c.code {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
			if c.reason != "" && !strings.Contains(w.Body.String(), `"reason":"`+c.reason+`"`) {
				t.Errorf("got %s", w.Body)
			}
		})
	}
}
