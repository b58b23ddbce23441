package serving

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/rogpeppe/go-internal/lockedfile"
	"golang.org/x/sys/unix"

	"example.com/cmctl/pkg/server/authn"
)

// maxSocketPath fits a socket's address, with the byte that ends it.
const maxSocketPath = 107

// socket is a listening unix socket. It knows who connects.
type socket struct {
	*net.UnixListener
	path string
	file fs.FileInfo // what is at path as long as it is ours
}

// listenSocket listens at path, in the place of a socket that nobody listens on any
// more. Programs that do so at the same time wait for each other: neither takes the
// other's for a stale one.
func listenSocket(ctx context.Context, path string, mode fs.FileMode) (net.Listener, error) {
	unlock, err := lockedfile.MutexAt(path + ".lock").Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // Close looks at what is there first
	err = os.Chmod(path, mode)
	var file fs.FileInfo
	if err == nil {
		file, err = os.Lstat(path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(path))
	}
	return &socket{l, path, file}, nil
}

// removeStale makes room at path. It removes nothing but a socket that refuses to be
// connected to.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("something else than a socket is there, and is not removed; choose another path")
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return errors.Join(errors.New("another program listens there; stop it, or choose another path"), conn.Close())
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	}
	return fmt.Errorf("whether another program listens there can't be found out: %w", err)
}

// Accept passes on connections with who is at their other end, and no others.
func (s *socket) Accept() (net.Conn, error) {
	for {
		conn, err := s.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if peer, err := peerOf(conn); err == nil {
			return peerConn{conn, peer}, nil
		}
		_ = conn.Close() // it carried nothing
	}
}

// Close removes the socket unless another one has taken its place.
func (s *socket) Close() error {
	err := s.UnixListener.Close()
	if there, statErr := os.Lstat(s.path); statErr == nil && os.SameFile(there, s.file) {
		err = errors.Join(err, os.Remove(s.path))
	}
	return err
}

// peerOf is the process that connected, as it was then.
func peerOf(conn *net.UnixConn) (authn.Peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return authn.Peer{}, err
	}
	var (
		cred    *unix.Ucred
		credErr error
	)
	err = raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, credErr); err != nil {
		return authn.Peer{}, err
	}
	return authn.Peer{UID: int(cred.Uid), GID: int(cred.Gid), PID: int(cred.Pid)}, nil
}
