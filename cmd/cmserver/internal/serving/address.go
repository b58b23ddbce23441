package serving

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
)

// unixScheme begins the address of a unix socket.
const unixScheme = "unix:"

// Address is a place to listen on. Its zero value is none.
type Address struct {
	text string           // as it was given
	path string           // of a unix socket, absolute; empty for TCP
	to   []netip.AddrPort // what the host resolves to; of TCP
}

// ParseAddress reads HOST:PORT or unix:PATH, and looks the host up: what is judged
// is where it leads, and that is what is listened on.
func ParseAddress(ctx context.Context, text string) (Address, error) {
	if path, ok := strings.CutPrefix(text, unixScheme); ok {
		return parseSocket(text, path)
	}
	host, portText, err := net.SplitHostPort(text)
	if err != nil {
		return Address{}, fmt.Errorf("%q must be HOST:PORT or unix:///PATH: %w", text, err)
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", portText)
	if err != nil {
		return Address{}, fmt.Errorf("%q must be HOST:PORT: %w", text, err)
	}
	a := Address{text: text}
	hosts, err := lookUp(ctx, host)
	if err != nil {
		return Address{}, fmt.Errorf("%q: %w", text, err)
	}
	for _, ip := range hosts {
		a.to = append(a.to, netip.AddrPortFrom(ip, uint16(port)))
	}
	return a, nil
}

func parseSocket(text, path string) (Address, error) {
	if rest, ok := strings.CutPrefix(path, "//"); ok {
		if path = rest; !filepath.IsAbs(path) {
			return Address{}, fmt.Errorf("%q: after unix:// comes a path from the root, as in unix:///run/cmserver.sock", text)
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return Address{}, fmt.Errorf("%q: %w", text, err)
	}
	if len(path) > maxSocketPath {
		return Address{}, fmt.Errorf("%q: the path of a socket has at most %d bytes, this one %d", text, maxSocketPath, len(path))
	}
	if path == filepath.Dir(path) {
		return Address{}, fmt.Errorf("%q names no file", text)
	}
	return Address{text: text, path: path}, nil
}

// lookUp is where a host leads, IPv4 first. No host is every address there is.
func lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	if host == "" {
		return []netip.Addr{netip.IPv6Unspecified()}, nil
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.Unmap()}, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("the host can't be looked up: %w", err)
	}
	for i := range ips {
		ips[i] = ips[i].Unmap()
	}
	slices.SortStableFunc(ips, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
	return ips, nil
}

// Exposed tells whether others than this machine's users may reach the address.
func (a Address) Exposed() bool {
	return slices.ContainsFunc(a.to, func(to netip.AddrPort) bool { return !to.Addr().IsLoopback() })
}

// IsSocket tells whether an address, as it is given, is that of a unix socket.
func IsSocket(text string) bool { return strings.HasPrefix(text, unixScheme) }

// Socket tells whether it is that of a unix socket.
func (a Address) Socket() bool { return a.path != "" }

// String is the address as it was given.
func (a Address) String() string { return a.text }
