package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

const (
	// pebbleFormat is pinned: what the newest release of Pebble writes may not
	// be readable by the release of cmserver that somebody goes back to.
	pebbleFormat = pebble.FormatValueSeparation

	defaultMemTableSize = 32 << 20 // one fills in seconds at full load; four are kept at most
	minMemTableSize     = 256 << 10
	maxMemTables        = 4 // at once, with their logs
	defaultCacheBytes   = 64 << 20
	baseBytes           = 64 << 20  // below which tables are merged as a whole
	bytesPerSync        = 512 << 10 // so that no sync has to wait for much that was written before
)

// pebbleOptions are for small records under random keys, many writes and few
// reads, since readers of the present are served from the index.
func (s *Store) pebbleOptions(lock *pebble.Lock, readOnly bool) *pebble.Options {
	o := &pebble.Options{
		FS:                          s.fs,
		Lock:                        lock,
		ReadOnly:                    readOnly,
		FormatMajorVersion:          pebbleFormat,
		CacheSize:                   s.opts.CacheBytes,
		MemTableSize:                s.opts.memTableSize,
		MemTableStopWritesThreshold: maxMemTables,
		L0CompactionThreshold:       2,
		L0StopWritesThreshold:       1000,
		LBaseMaxBytes:               baseBytes,
		MaxOpenFiles:                1000,
		BytesPerSync:                bytesPerSync,
		WALBytesPerSync:             bytesPerSync,
		Logger:                      pebbleLogger{s},
		EventListener: &pebble.EventListener{
			BackgroundError: s.backgroundFailed,
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				if s.fs.armed.Load() { // else Open is about to return it
					d := damageOf(info.Details)
					d.File = s.opts.FS.PathBase(info.Path)
					s.reported(d)
				}
			},
			WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
				s.log.Warn("store: writes wait for the disk", "reason", info.Reason)
			},
		},
	}
	for i := range o.Levels {
		o.Levels[i].BlockSize = 16 << 10
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// backgroundFailed is told of what Pebble goes on to repeat.
func (s *Store) backgroundFailed(err error) {
	switch {
	case pebble.ExtractDataCorruptionInfo(err) != nil: // it has been reported
	case pebble.IsCorruptionError(err):
		// What is read for statistics alone, with no lock of Pebble's held.
		if s.fs.armed.Load() {
			s.reported(damageOf(err))
		}
	default:
		if errno := syscall.Errno(0); s.opts.restoring && errors.As(err, &errno) {
			s.fs.spoil(err) // it would be repeated for ever
		}
		// On a full disk it fails dozens of times a second.
		if held, ok := s.background.pass(time.Now()); ok {
			s.log.Warn("store: background work failed and is repeated", "error", line(err), "unreported", held)
		}
	}
}

// pebbleLogger takes Pebble's words to the log, all at debug level but the last.
type pebbleLogger struct{ s *Store }

func (l pebbleLogger) Infof(format string, args ...any) { l.debug(format, args) }

func (l pebbleLogger) Errorf(format string, args ...any) { l.debug(format, args) }

func (l pebbleLogger) debug(format string, args []any) {
	if l.s.log.Enabled(context.Background(), slog.LevelDebug) {
		l.s.log.Debug("pebble: " + fmt.Sprintf(format, args...))
	}
}

// Fatalf is called where Pebble can't go on. While it is being opened an error
// follows, which Open returns. Later the file system has kept disk errors from
// it, so that what remains is a broken invariant: going on could damage files,
// and everything acknowledged is safe, so the process ends, with the reason.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf("pebble: "+format, args...)
	if !l.s.fs.armed.Load() {
		l.s.log.Error("store: can't open", "error", err)
		return
	}
	l.s.fail(err)
	panic(err)
}
