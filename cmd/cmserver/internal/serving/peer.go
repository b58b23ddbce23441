package serving

import (
	"context"
	"net"

	"example.com/cmctl/pkg/server/authn"
)

// peerConn is a connection through a unix socket.
type peerConn struct {
	net.Conn
	peer authn.Peer
}

// withPeer notes for the requests of a connection who is at its other end.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	if local, ok := c.(peerConn); ok {
		return authn.WithPeer(ctx, local.peer)
	}
	return ctx
}
