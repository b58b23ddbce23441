package authn

import (
	"context"
	"net/http"
	"os"
	osuser "os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

// unixPrefix begins the names of users and groups of this machine, which so clash
// with no others.
const unixPrefix = "unix:"

// nobody is what the kernel calls users and groups that it can't name to the server,
// as those whom a container does not have, unless overflowuid and overflowgid say
// otherwise. It may be anybody.
const nobody = 65534

// overflowID reads whom the kernel names so. Where it does not tell, it is nobody.
func overflowID(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return nobody
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return nobody
	}
	return id
}

// Peers knows the users of unix sockets, whom the kernel vouches for: unix:NAME in the
// groups unix:GROUP, as this machine's accounts have them. The server's own user, and
// root, may read the data directory anyhow: they are in system:masters as well. Whom the
// kernel can't name, and calls nobody, is not known: a right of nobody's would be everybody's.
type Peers struct {
	owner        int
	noUID, noGID int
	now          func() time.Time
	lookup       func(Peer) *user.DefaultInfo

	mu    sync.Mutex
	known map[Peer]knownPeer // guarded by mu; without their PID
}

type knownPeer struct {
	until time.Time
	user  *user.DefaultInfo
}

// peerMemory is for how long, and peerLimit for how many, accounts are remembered.
const (
	peerMemory = 30 * time.Second
	peerLimit  = 1024
)

// NewPeers makes a Peers for a server that runs as this process does.
func NewPeers() *Peers {
	p := &Peers{
		owner: os.Geteuid(), now: time.Now, known: map[Peer]knownPeer{},
		noUID: overflowID("/proc/sys/kernel/overflowuid"), noGID: overflowID("/proc/sys/kernel/overflowgid"),
	}
	p.lookup = func(peer Peer) *user.DefaultInfo { return account(peer, p.noGID) }
	return p
}

// Names is the Authenticator of servers that ask nobody: it lets everybody in, and
// names the users of unix sockets, so that histories can. Credentials are not looked at.
type Names struct{ Peers *Peers }

// Authenticate implements Authenticator.
func (n Names) Authenticate(r *http.Request) (user.Info, error) {
	if who := n.Peers.of(r.Context()); who != nil {
		return authenticated(who), nil
	}
	return nil, nil
}

// of is the user at the other end of a connection, nil where that is not known.
func (p *Peers) of(ctx context.Context) *user.DefaultInfo {
	peer, ok := PeerOf(ctx)
	if !ok || peer.UID == p.noUID {
		return nil
	}
	return p.user(peer)
}

func (p *Peers) user(peer Peer) *user.DefaultInfo {
	peer.PID = 0
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.known[peer]; ok && now.Before(known.until) {
		return known.user
	}
	who := p.lookup(peer)
	if peer.UID == 0 || peer.UID == p.owner {
		who.Groups = append(who.Groups, user.SystemPrivilegedGroup)
	}
	if len(p.known) >= peerLimit {
		clear(p.known)
	}
	p.known[peer] = knownPeer{until: now.Add(peerMemory), user: who}
	return who
}

// account looks up the names of a user and of their groups. What has no name keeps
// its number; the group noGID is any that the kernel can't name, and left out.
func account(peer Peer, noGID int) *user.DefaultInfo {
	uid := strconv.Itoa(peer.UID)
	who := &user.DefaultInfo{Name: unixPrefix + uid, UID: uid}
	var gids []string
	if peer.GID != noGID {
		gids = append(gids, strconv.Itoa(peer.GID))
	}
	if u, err := osuser.LookupId(uid); err == nil {
		who.Name = unixPrefix + named(u.Username, uid)
		if more, err := u.GroupIds(); err == nil {
			gids = append(gids, more...)
		}
	}
	for _, gid := range gids {
		group := unixPrefix + gid
		if g, err := osuser.LookupGroupId(gid); err == nil {
			group = unixPrefix + named(g.Name, gid)
		}
		if !slices.Contains(who.Groups, group) {
			who.Groups = append(who.Groups, group)
		}
	}
	return who
}

// named is a name, or the number where the name looks like another one's number.
func named(name, number string) string {
	if name == "" || strings.Trim(name, "0123456789") == "" {
		return number
	}
	return name
}
