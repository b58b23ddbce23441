package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
)

// A running server gives backups through a socket in its data directory, since
// nobody else can open the data. The socket belongs to the server's user, and so
// does what comes out of it.
const (
	socketName = "backup.sock"
	socketNew  = "backup.sock.new" // a folder in which it is made
	backupPath = "/v1/backup"
	// failureTrailer tells after the body why it is not complete, and damageTrailer
	// that this is damage to the data.
	failureTrailer = "Backup-Failure"
	damageTrailer  = "Backup-Damage"
	// maxSocketPath fits the address of a socket on every system.
	maxSocketPath = 100
	// standstill is how long a client may take nothing before it is cut off: what
	// it reads is kept on the disk as long as it reads.
	standstill = time.Minute
	// headerTimeout is how long the header of a request for one may take.
	headerTimeout = 10 * time.Second
)

var (
	// errNoServer says that nobody listens on the socket.
	errNoServer = errors.New("no server")
	// errLostServer says that the connection ended before the backup did.
	errLostServer = errors.New("the connection to the server broke off before the backup was complete")
)

// backupService gives one backup at a time.
type backupService struct {
	give func(context.Context, io.Writer) (local.BackupInfo, error)
	log  *slog.Logger
	// busy is full while a backup is given. Whoever has put something into it
	// takes it out again.
	busy chan struct{}
}

// startBackups listens until ctx ends or the returned function is called, which
// waits for the backup that is under way. A server that can't listen serves all
// the same.
func startBackups(ctx context.Context, dataDir string, st *local.Store, log *slog.Logger) (stop func()) {
	listener, err := listenSocket(dataDir)
	if err != nil {
		log.Warn("no backups while this server runs: its data directory takes no socket", "err", err)
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	b := &backupService{give: st.Backup, log: log, busy: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.Handle("GET "+backupPath, b)
	hs := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headerTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := hs.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("no more backups until the next start", "err", err)
		}
	}()
	return func() {
		cancel()
		// It closes the connections, which ends a write that blocks.
		_ = hs.Close()
		<-done
		b.busy <- struct{}{}
		if err := os.Remove(filepath.Join(dataDir, socketName)); err != nil {
			log.Debug("the socket for backups is left behind", "err", err)
		}
	}
}

// listenSocket makes the socket. It is made in a folder that nobody else can enter
// and moved from there, so that it is never open to others, and takes the place of
// one that a killed server left. The directory's lock is held: nobody else is here.
func listenSocket(dataDir string) (net.Listener, error) {
	folder := filepath.Join(dataDir, socketNew)
	if err := os.RemoveAll(folder); err != nil {
		return nil, err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder) // should it stay, the next start removes it
	path, done, err := socketPath(folder)
	if err != nil {
		return nil, err
	}
	defer done()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // it will have another name
	made := filepath.Join(folder, socketName)
	err = os.Chmod(made, 0o600)
	if err == nil {
		err = os.Rename(made, filepath.Join(dataDir, socketName))
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// socketPath is a path to the socket in dir that fits an address, which is far
// shorter than a path may be. It is good until done is called.
func socketPath(dir string) (path string, done func(), err error) {
	path = filepath.Join(dir, socketName)
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	open, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	// It was opened for reading: closing it loses nothing.
	return filepath.Join(procPath(open), socketName), func() { _ = open.Close() }, nil
}

func (b *backupService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case b.busy <- struct{}{}:
		defer func() { <-b.busy }()
	default:
		http.Error(w, "another backup is being made; try again when it is done", http.StatusConflict)
		return
	}
	begun, control := time.Now(), http.NewResponseController(w)
	// Only an answer that has begun before its end is known has trailers.
	if err := control.Flush(); err != nil {
		return // the client is gone
	}
	info, err := b.give(r.Context(), &steady{w, control})
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		b.log.Warn("backup failed", "err", text)
		w.Header().Set(http.TrailerPrefix+failureTrailer, text)
		if errors.Is(err, store.ErrDamaged) {
			w.Header().Set(http.TrailerPrefix+damageTrailer, "true")
		}
		return
	}
	b.log.Info("backup given", "objects", info.Objects, "versions", info.Versions, "resourceVersion", info.Revision,
		"took", time.Since(begun).Round(time.Millisecond))
}

// steady cuts off a reader that takes nothing any more.
type steady struct {
	w       io.Writer
	control *http.ResponseController
}

func (s *steady) Write(b []byte) (int, error) {
	if err := s.control.SetWriteDeadline(time.Now().Add(standstill)); err != nil {
		return 0, err
	}
	return s.w.Write(b)
}

// askForBackup asks the server that has dataDir open. errNoServer if there is none.
func askForBackup(ctx context.Context, dataDir string) (io.ReadCloser, error) {
	var connected atomic.Bool
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		path, done, err := socketPath(dataDir)
		if err != nil {
			return nil, err
		}
		defer done()
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		connected.Store(err == nil)
		return conn, err
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://cmserver"+backupPath, nil)
	if err != nil {
		return nil, err
	}
	resp, err := transport.RoundTrip(req)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ECONNREFUSED):
		return nil, errNoServer
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("its server belongs to another user: run this command as that user: %w", err)
	case err != nil && ctx.Err() == nil && connected.Load():
		return nil, errLostServer
	case err != nil:
		return nil, fmt.Errorf("ask the running server: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
		return nil, errors.Join(fmt.Errorf("the running server refuses: %s", strings.TrimSpace(string(text))), err, resp.Body.Close())
	}
	return &givenBackup{resp, transport}, nil
}

// serverListens tells whether a server is there to ask again.
func serverListens(dataDir string) bool {
	path, done, err := socketPath(dataDir)
	if err != nil {
		return false
	}
	defer done()
	conn, err := net.Dial("unix", path)
	if err != nil {
		return false
	}
	// Nothing was said on it.
	_ = conn.Close()
	return true
}

// givenBackup is the body of the answer, with the reason where it ends too early: the
// server's own, or that there is no server any more.
type givenBackup struct {
	resp      *http.Response
	transport *http.Transport
}

func (g *givenBackup) Read(b []byte) (int, error) {
	n, err := g.resp.Body.Read(b)
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return n, err
	case err != io.EOF: // the body's own end alone is that of the answer
		return n, errLostServer // how it broke off says nothing more
	}
	if reason := g.resp.Trailer.Get(failureTrailer); reason != "" {
		return n, &serverSays{reason, g.resp.Trailer.Get(damageTrailer) != ""}
	}
	return n, err
}

// serverSays is why the server could not make the backup.
type serverSays struct {
	reason string
	damage bool
}

func (e *serverSays) Error() string { return "the running server says: " + e.reason }

func (e *serverSays) Is(target error) bool { return e.damage && target == store.ErrDamaged }

func (g *givenBackup) Close() error {
	err := g.resp.Body.Close()
	g.transport.CloseIdleConnections()
	return err
}
