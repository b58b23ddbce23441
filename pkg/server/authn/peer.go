package authn

import "context"

// Peer is the process at the other end of a unix socket, as the kernel tells it.
type Peer struct{ UID, GID, PID int }

type peerKey struct{}

// WithPeer notes in the context of a connection who is at its other end.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerOf tells who is at the other end of a connection; ok is false where that is
// not known, as over a network.
func PeerOf(ctx context.Context) (p Peer, ok bool) {
	p, ok = ctx.Value(peerKey{}).(Peer)
	return p, ok
}
