package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/DeRuina/timberjack"
)

// fileMode is that of every file of the log.
const fileMode = 0o600

// maxLine is how long a line may be: beyond it, an event loses its bodies.
const maxLine = 16 << 20

// Options say where a Log is kept.
type Options struct {
	// Path is the file. Its folder must be there.
	Path string
	// MaxSize is how many MiB a file may have before it is rotated; 0: it never is,
	// and somebody else does it, who then calls Reopen.
	MaxSize int
	// MaxBackups and MaxAge are how many rotated files are kept, and for how many
	// days; 0: without end.
	MaxBackups, MaxAge int
	// Compress compresses rotated files.
	Compress bool
	// Logger is told when the log can't be written, and when it can again; nil: nobody.
	Logger *slog.Logger
}

// Log is the file that events are written to. It may be used by any number of
// goroutines.
type Log struct {
	options Options

	mu   sync.Mutex     // guards what follows, and is held while a line is written
	out  io.WriteCloser // nil after Close
	file os.FileInfo    // what is written to; nil where it is no file
	torn bool           // the last line has no end
	err  error          // of the last line
	lost int            // lines since err came up
	gone error          // that the file was taken away; nil again with Reopen

	closing sync.WaitGroup // of files that were taken away
}

// Open opens the file to append to it, or makes it.
func Open(o Options) (*Log, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Log{options: o}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

// To is a Log that writes to what is no file, and is never closed by it.
func To(w io.Writer, logger *slog.Logger) *Log {
	return &Log{out: kept{w}, options: Options{Logger: logger}}
}

// kept is a Writer that Close leaves open.
type kept struct{ io.Writer }

func (kept) Close() error { return nil }

// open finds out whether the file can be written, and how it ends.
func (l *Log) open() error {
	path := l.options.Path
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, fileMode)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		_, err = file.ReadAt(last, info.Size()-1)
		l.torn = last[0] != '\n'
	}
	if err == nil && info.Mode().Perm()&0o004 != 0 {
		l.options.Logger.Warn("the audit log can be read by everybody on this machine; 'chmod o-r' it", "file", path)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.file = info
	if l.options.MaxSize == 0 {
		l.out = file
		return nil
	}
	l.out = &timberjack.Logger{Filename: path, MaxSize: l.options.MaxSize, MaxBackups: l.options.MaxBackups, MaxAge: l.options.MaxAge,
		Compression: map[bool]string{true: "gzip", false: "none"}[l.options.Compress], FileMode: fileMode}
	return file.Close()
}

// Reopen goes on in the file that is at the path now: a program that rotates the log
// has moved the other away.
func (l *Log) Reopen() error {
	l.mu.Lock()
	if l.options.Path == "" || l.out == nil {
		l.mu.Unlock()
		return nil
	}
	old := l.out
	err := l.open()
	if err == nil {
		l.gone = nil // whoever asks for this knows
	}
	l.mu.Unlock()
	if err != nil {
		return fmt.Errorf("the audit log %s can't be opened: %w", l.options.Path, err)
	}
	return old.Close() // which may wait for files to be compressed
}

// Close closes the file, and waits for rotated files to be put away.
func (l *Log) Close() error {
	l.mu.Lock()
	out := l.out
	l.out = nil
	l.mu.Unlock()
	l.closing.Wait()
	if out == nil {
		return nil
	}
	return out.Close()
}

// Err says why the last line could not be written, or that the file was taken away
// since the last Reopen; nil if all is well.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	return l.gone
}

// Look finds out whether the file is still there, and if not goes on in a new one.
// Each line does so too, but there may be none for long.
func (l *Log) Look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out != nil {
		_ = l.stayLocked() // the next line tells, and until then gone does
	}
}

// stayLocked makes sure that what is written is at the path: to a file that was
// deleted or moved away, lines would be written in vain.
func (l *Log) stayLocked() error {
	if l.file == nil {
		return nil
	}
	there, err := os.Stat(l.options.Path)
	if err == nil && os.SameFile(there, l.file) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if l.gone == nil {
		l.gone = fmt.Errorf("the audit log %s was deleted or moved away while it was written; send SIGHUP if that is well", l.options.Path)
		l.options.Logger.Error("the audit log was deleted or moved away: what follows goes to a new file", "file", l.options.Path)
	}
	old := l.out
	if err := l.open(); err != nil {
		return fmt.Errorf("the audit log was deleted or moved away, and can't be made anew: %w", err)
	}
	l.closing.Go(func() { _ = old.Close() }) // which may wait; nothing of it is of use any more
	return nil
}

// MaxLine is that of Sink.
func (l *Log) MaxLine() int {
	if size := l.options.MaxSize << 20; size > 0 {
		return min(size, maxLine)
	}
	return maxLine
}

// WriteLine is that of Sink. A line whose beginning was written only is ended before
// the next one.
func (l *Log) WriteLine(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.writeLocked(line)
	switch logger := l.options.Logger; {
	case err != nil && l.err == nil:
		l.lost = 1
		logger.Error("the audit log can't be written: what follows is missing in it, until this is mended", "err", err)
	case err != nil:
		l.lost++
	case l.err != nil:
		logger.Info("the audit log is written again", "lost", l.lost)
	}
	l.err = err
	return err
}

func (l *Log) writeLocked(line []byte) error {
	if l.out == nil {
		return fmt.Errorf("the audit log %s is closed", filepath.Base(l.options.Path))
	}
	if err := l.stayLocked(); err != nil {
		return err
	}
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	rotates := l.rotatesLocked(len(line))
	n, err := l.out.Write(line)
	if n > 0 {
		l.torn = line[n-1] != '\n'
	}
	if rotates {
		if there, err := os.Stat(l.options.Path); err == nil {
			l.file = there
		}
	}
	return err
}

// rotatesLocked tells whether a line of n bytes may begin another file.
func (l *Log) rotatesLocked(n int) bool {
	if l.file == nil || l.options.MaxSize == 0 {
		return false
	}
	there, err := os.Stat(l.options.Path)
	return err == nil && there.Size()+int64(n) >= int64(l.options.MaxSize)<<20
}
