package authn

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

// testPeers are accounts that change when names does.
func testPeers(owner int, names map[int]string, lookups *int) *Peers {
	p := NewPeers()
	p.owner = owner
	p.lookup = func(peer Peer) *user.DefaultInfo {
		*lookups++
		return &user.DefaultInfo{Name: unixPrefix + names[peer.UID], Groups: []string{unixPrefix + "staff"}}
	}
	return p
}

func TestTheServersOwnUserAndRootMayDoEverything(t *testing.T) {
	names, lookups := map[int]string{0: "root", 7: "cm", 8: "jane"}, 0
	for _, test := range []struct {
		owner, uid int
		masters    bool
	}{
		{7, 7, true}, {7, 0, true}, {7, 8, false}, {0, 0, true}, {0, 7, false}, {nobody, 0, true},
	} {
		who := testPeers(test.owner, names, &lookups).user(Peer{UID: test.uid, GID: 1})
		if got := slices.Contains(who.Groups, user.SystemPrivilegedGroup); got != test.masters || who.Name != unixPrefix+names[test.uid] {
			t.Errorf("server of %d: %d is %v", test.owner, test.uid, who)
		}
	}
}

// Many users may share the name that the kernel gives those whom it can't name, so that
// nobody gets the rights of that name, not even a server that itself runs under it.
func TestWhomTheKernelCantNameIsNotKnown(t *testing.T) {
	lookups := 0
	p := testPeers(nobody, map[int]string{nobody: "nobody", 8: "jane"}, &lookups)
	p.noUID = nobody
	for uid, want := range map[int]string{nobody: "", 8: "unix:jane"} {
		r := httptest.NewRequest("GET", "/", nil)
		r = r.WithContext(WithPeer(r.Context(), Peer{UID: uid, GID: 1}))
		for _, a := range []Authenticator{Names{p}, New(Methods{Peers: p, Anonymous: true})} {
			who, err := a.Authenticate(r)
			if err != nil || (who == nil) != (want == "") || who != nil && who.GetName() != want {
				t.Errorf("%T: %d is %v, %v", a, uid, who, err)
			}
		}
		if _, err := New(Methods{Peers: p}).Authenticate(r); (err != nil) != (want == "") {
			t.Errorf("without anonymous requests: %d: %v", uid, err)
		}
	}
	if lookups != 1 {
		t.Errorf("%d accounts were looked up", lookups)
	}
}

func TestOverflowID(t *testing.T) {
	file := filepath.Join(t.TempDir(), "overflowuid")
	if got := overflowID(file); got != nobody {
		t.Errorf("without the file it is %d", got)
	}
	for text, want := range map[string]int{"65000\n": 65000, "": nobody, "x\n": nobody} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := overflowID(file); got != want {
			t.Errorf("of %q it is %d", text, got)
		}
	}
}

func TestAccountsAreLookedUpAgainAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names, lookups := map[int]string{8: "jane"}, 0
		p := testPeers(0, names, &lookups)
		p.user(Peer{UID: 8, GID: 1, PID: 100})
		names[8] = "joe"
		if who := p.user(Peer{UID: 8, GID: 1, PID: 200}); who.Name != "unix:jane" || lookups != 1 {
			t.Errorf("it is %v after %d lookups", who, lookups)
		}
		p.user(Peer{UID: 8, GID: 2})
		time.Sleep(peerMemory)
		if who := p.user(Peer{UID: 8, GID: 1}); who.Name != "unix:joe" || lookups != 3 {
			t.Errorf("it is %v after %d lookups", who, lookups)
		}
	})
}

// Accounts that the machine does not have keep their numbers, and a name that looks
// like a number is not taken for one.
func TestAccounts(t *testing.T) {
	who := account(Peer{UID: 123456, GID: 654321}, nobody)
	if who.Name != "unix:123456" || !slices.Equal(who.Groups, []string{"unix:654321"}) || who.UID != "123456" {
		t.Errorf("it is %v", who)
	}
	if who := account(Peer{UID: 123456, GID: nobody}, nobody); len(who.Groups) != 0 {
		t.Errorf("it is in %v", who.Groups)
	}
	for name, want := range map[string]string{"jane": "jane", "": "5", "0": "5", "42": "5", "4x": "4x"} {
		if got := named(name, "5"); got != want {
			t.Errorf("%q is %q", name, got)
		}
	}
}
