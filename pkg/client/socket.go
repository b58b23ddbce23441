package client

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"

	"k8s.io/client-go/rest"
)

// socketScheme begins the address of a unix socket.
const socketScheme = "unix://"

// socketHost is the host that requests through a socket name, since they must name
// one.
const socketHost = "http://localhost"

// socketEndpoint is the server that listens on a unix socket of this machine.
func socketEndpoint(path string) (*endpoint, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("server address %q: after unix:// comes a path from the root, as in unix:///run/cmserver.sock", socketScheme+path)
	}
	return &endpoint{socket: path, config: &rest.Config{
		Host: socketHost,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
		// No proxy leads to a socket.
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil },
	}}, nil
}
