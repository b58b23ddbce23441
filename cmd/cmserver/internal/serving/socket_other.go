//go:build !linux

package serving

import (
	"context"
	"errors"
	"io/fs"
	"net"
)

// maxSocketPath fits a socket's address.
const maxSocketPath = 100

// listenSocket refuses: who connects can't be told here.
func listenSocket(context.Context, string, fs.FileMode) (net.Listener, error) {
	return nil, errors.New("unix sockets are for Linux alone, where the system tells who connects; listen on 127.0.0.1")
}
