package audit

import (
	"errors"
	"fmt"
	"io"
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
	torn bool           // the last line has no end
	err  error          // of the last line
	lost int            // lines since err came up
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
	l.mu.Unlock()
	if err != nil {
		return fmt.Errorf("the audit log %s stays what it was: %w", l.options.Path, err)
	}
	return old.Close() // which may wait for files to be compressed
}

// Close closes the file, and waits for rotated files to be put away.
func (l *Log) Close() error {
	l.mu.Lock()
	out := l.out
	l.out = nil
	l.mu.Unlock()
	if out == nil {
		return nil
	}
	return out.Close()
}

// Err says why the last line could not be written; nil if it was.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
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
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.out.Write(line)
	if n > 0 {
		l.torn = line[n-1] != '\n'
	}
	return err
}
