package serving

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// Listener is one that is open.
type Listener struct {
	net.Listener
	address Address
}

// Listen opens all addresses, or none. Sockets get the mode.
func Listen(ctx context.Context, addresses []Address, mode fs.FileMode) ([]Listener, error) {
	var open []Listener
	for _, a := range addresses {
		l, err := a.listen(ctx, mode)
		if err != nil {
			return nil, errors.Join(err, closeAll(open))
		}
		open = append(open, Listener{l, a})
	}
	return open, nil
}

func closeAll(open []Listener) error {
	var errs []error
	for _, l := range open {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

func (a Address) listen(ctx context.Context, mode fs.FileMode) (net.Listener, error) {
	if a.Socket() {
		l, err := listenSocket(ctx, a.path, mode)
		if err != nil {
			return nil, fmt.Errorf("listen on %s: %w", a, err)
		}
		return l, nil
	}
	network, to := "tcp", a.to[0].String()
	switch {
	case a.to[0].Addr() == netip.IPv4Unspecified():
		network = "tcp4" // else it would be IPv6's too
	case strings.HasPrefix(a.text, ":"):
		to = a.text // also where there is no IPv6
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, network, to)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is taken by another program; choose another --listen, or port 0 for a free one: %w", a, err)
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("%s may not be listened on by this user; choose a --listen port above 1023: %w", a, err)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", a, err)
	}
	return l, nil
}
