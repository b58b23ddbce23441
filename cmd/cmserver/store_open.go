package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/etcd"
	"example.com/cmctl/pkg/server/store/local"
)

// openStore opens the store that the settings name.
func (c config) openStore(ctx context.Context, log *slog.Logger) (store.Store, error) {
	return c.open(ctx, c.site, store.Revision(c.InitialVersion), log)
}

// open opens the store at a site. first is the first version of a new one, 0 for any.
func (c config) open(ctx context.Context, s site, first store.Revision, log *slog.Logger) (store.Store, error) {
	if s.kind == onEtcd {
		return c.openEtcd(ctx, s, first, false, log)
	}
	return c.openLocal(s, first, log)
}

// startCompacting gives up what is old, until ctx ends or the returned function is called,
// which waits for it.
func (c config) startCompacting(ctx context.Context, st store.Store, log *slog.Logger) (stop func()) {
	if shared, ok := st.(*etcd.Store); ok {
		return c.cleanUp(ctx, shared, log)
	}
	return startCompacting(ctx, st, c.HistoryWindow, log)
}

func (c config) openLocal(s site, first store.Revision, log *slog.Logger) (store.Store, error) {
	st, err := local.Open(local.Options{
		Dir:              s.dir,
		InMemory:         s.kind == inMemory,
		InitialVersion:   first,
		InlineValueSize:  c.InlineValueSize,
		HistoryLimit:     c.HistoryLimit,
		DeletedRetention: c.deletedRetention(),
		DeletedLimit:     c.DeletedLimit,
		Logger:           log,
	})
	switch {
	case errors.Is(err, store.ErrLocked), errors.Is(err, store.ErrNewerFormat), errors.Is(err, local.ErrUnfinished):
		return nil, err
	case errors.Is(err, store.ErrDamaged):
		return nil, fmt.Errorf("%w; the server does not start on it: 'cmserver check --data-dir %[2]s' names what is damaged, "+
			"'cmserver restore' makes a directory of a backup", err, s.dir)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return nil, fmt.Errorf("the disk of the data directory %s is full: free some space and start again; what was acknowledged is not touched: %w", s.dir, err)
	case lacksFiles(err):
		return nil, fmt.Errorf("the data directory %s can't be opened, for %s and start again; what was acknowledged is not touched: %w",
			s.dir, raiseTheLimit, err)
	case err != nil:
		return nil, fmt.Errorf("data directory %s can't be used, --data-dir chooses another: %w", s.dir, err)
	}
	return st, nil
}

// raiseTheLimit is what to do where lacksFiles.
const raiseTheLimit = "too few files may be open at once: raise the limit ('ulimit -n 4096' in a shell, LimitNOFILE=4096 in a systemd unit)"

func lacksFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// deletedRetention is the setting as the store takes it, for which 0 is its default.
func (c config) deletedRetention() time.Duration {
	if c.DeletedRetention == 0 {
		return -1
	}
	return c.DeletedRetention
}
