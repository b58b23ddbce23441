// Package fromfiles makes the data of a ConfigMap from what a command line names:
// literals, files, folders and env files. What can't be stored as it is asked for
// is an error, and what is passed over or stored in another way is told.
//
//	errs := fromfiles.Sources{Files: []string{"nginx.conf"}, Note: note}.Fill(ctx, doc)
package fromfiles

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/cmctl/cmd/cmctl/internal/intake"
	"example.com/cmctl/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Sources are the places that data comes from.
type Sources struct {
	Literals []string // KEY=VALUE
	Files    []string // PATH, KEY=PATH, KEY=- for standard input, or a folder
	EnvFiles []string // PATH, or - for standard input

	// Recursive stores the files below a folder too, under their path with KeySep
	// for the slashes.
	Recursive bool
	KeySep    string
	// RequireText refuses what is not UTF-8 text instead of storing it in
	// binaryData.
	RequireText bool
	// LF stores text files with LF where they have CR LF.
	LF bool
	// Dotenv reads env files as dotenv libraries do, else as kubectl does.
	Dotenv bool

	Stdin io.Reader
	// Note is told what a person should know about a success.
	Note func(format string, args ...any)
}

// ArgumentError is a source that makes no sense whatever the files hold.
type ArgumentError struct{ Message string }

func (e *ArgumentError) Error() string { return e.Message }

func argumentf(format string, args ...any) error {
	return &ArgumentError{fmt.Sprintf(format, args...)}
}

const literalOrigin = "--from-literal"

// Fill puts the data that the sources name into the document, and returns all
// that is wrong with them.
func (s Sources) Fill(ctx context.Context, doc types.Document) []error {
	c := &collector{Sources: s, read: s.reader(ctx), doc: doc, origin: map[string]string{}}
	for _, literal := range s.Literals {
		key, value, ok := strings.Cut(literal, "=")
		if !ok || key == "" {
			c.fail(argumentf("--from-literal takes KEY=VALUE, not %q", literal))
			continue
		}
		if why := BadKey(key); why != "" {
			c.fail(argumentf("--from-literal: %q can't be a key: %s", key, why))
			continue
		}
		c.add(key, []byte(value), literalOrigin)
	}
	for _, arg := range s.Files {
		c.addFileArg(arg)
	}
	for _, path := range s.EnvFiles {
		c.addEnvFile(path)
	}
	return c.errs
}

// collector gathers keys and refuses one that is given twice.
type collector struct {
	Sources
	read   func(path string) ([]byte, error)
	doc    types.Document
	origin map[string]string
	errs   []error
}

func (c *collector) fail(err error) { c.errs = append(c.errs, err) }

// add stores one value. origin is where it is from: a path, a line of one, or the
// flag itself.
func (c *collector) add(key string, value []byte, origin string) {
	if before, ok := c.origin[key]; ok {
		c.fail(argumentf("key %q is given twice: by %s and by %s", key, before, origin))
		return
	}
	c.origin[key] = origin
	bad := types.InvalidUTF8(value)
	guess := intake.Encoding(value)
	if guess != "" {
		guess = " (looks like " + guess + ")"
	}
	switch {
	case bad >= 0 && c.RequireText:
		c.fail(fmt.Errorf("%s: not UTF-8 at byte %d%s, and --require-text is given", origin, bad, guess))
		return
	case bad >= 0:
		c.Note("%s: stored as binary: not UTF-8 at byte %d%s", origin, bad, guess)
	case guess != "":
		c.Note("%s: stored as text, with its zero bytes%s", origin, guess)
	}
	c.doc.Set(types.Field{Section: "data", Key: key}, types.ValueOf(value))
}

// BadKey names what is wrong with a key, empty if nothing is.
func BadKey(key string) string {
	problems := validation.IsConfigMapKey(key)
	if len(problems) == 0 {
		return ""
	}
	for _, r := range key {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", r) {
			return fmt.Sprintf("%q is not among letters, digits, '-', '_' and '.'", r)
		}
	}
	return strings.Join(problems, "; ")
}

// addFileArg takes one --from-file: PATH, KEY=PATH, KEY=-, or a folder.
func (c *collector) addFileArg(arg string) {
	key, path, named := strings.Cut(arg, "=")
	if !named {
		key, path = "", arg
	}
	switch {
	case path == "" || named && key == "":
		c.fail(argumentf("--from-file takes PATH or KEY=PATH, not %q", arg))
		return
	case path == "-" && !named:
		c.fail(argumentf("--from-file=-: standard input has no name; say --from-file=KEY=-"))
		return
	case path == "-":
		c.addFile(key, path)
		return
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		c.fail(intake.FileError(path, err))
	case info.IsDir() && named:
		c.fail(argumentf("--from-file=%s: a folder gives one key a file, so KEY= can't be said with it", arg))
	case info.IsDir():
		c.addFolder(path)
	case key == "":
		c.addFile(filepath.Base(path), path)
	default:
		c.addFile(key, path)
	}
}

func (c *collector) addFile(key, path string) {
	origin := path
	if path == "-" {
		origin = "standard input"
	}
	if why := BadKey(key); why != "" {
		c.fail(argumentf("%s: %q can't be a key: %s; give another with --from-file=NEWKEY=%s", origin, key, why, path))
		return
	}
	value, err := c.read(path)
	if err != nil {
		c.fail(err)
		return
	}
	if crlf := []byte("\r\n"); utf8.Valid(value) && bytes.Contains(value, crlf) {
		if c.LF {
			value = bytes.ReplaceAll(value, crlf, []byte("\n"))
		} else {
			c.Note("%s contains CRLF line ends, and is stored so; --eol=lf stores it with LF", origin)
		}
	}
	c.add(key, value, origin)
}

// reader reads the files, and standard input once.
func (s Sources) reader(ctx context.Context) func(path string) ([]byte, error) {
	stdinRead := false
	return func(path string) (value []byte, err error) {
		switch {
		case path != "-":
			value, err = intake.File(ctx, path, intake.MaxValue)
		case stdinRead:
			return nil, argumentf("standard input can be read once only")
		default:
			stdinRead, path = true, "standard input"
			value, err = intake.All(ctx, s.Stdin, intake.MaxValue)
		}
		if err != nil {
			return nil, intake.FileError(path, err)
		}
		return value, nil
	}
}

// addFolder stores the files of a folder.
func (c *collector) addFolder(dir string) {
	before, failed := len(c.origin), len(c.errs)
	f := folder{collector: c, root: dir}
	f.enter(dir)
	if len(c.origin) == before && len(c.errs) == failed {
		c.fail(fmt.Errorf("the folder %s holds no file to store", dir))
	}
}

// folder walks through a folder, links to files and folders included: in a mounted
// ConfigMap every file is a link into "..data". Names that begin with ".." are
// that machinery and no keys.
type folder struct {
	*collector
	root  string
	above []fs.FileInfo // the folders that lead to this one
}

func (f *folder) enter(dir string) {
	info, err := os.Stat(dir)
	if err != nil {
		f.fail(intake.FileError(dir, err))
		return
	}
	if slices.ContainsFunc(f.above, func(above fs.FileInfo) bool { return os.SameFile(above, info) }) {
		f.fail(fmt.Errorf("%s: this link leads back to a folder above it", dir))
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.fail(intake.FileError(dir, err))
		return
	}
	f.above = append(f.above, info)
	for _, e := range entries {
		f.visit(filepath.Join(dir, e.Name()), e.Name())
	}
	f.above = f.above[:len(f.above)-1]
}

func (f *folder) visit(path, name string) {
	if strings.HasPrefix(name, "..") {
		f.Note("%s is skipped: names that begin with .. are no keys", path)
		return
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		f.fail(intake.FileError(path, err))
	case info.IsDir() && f.Recursive:
		f.enter(path)
	case info.IsDir():
		f.Note("%s is skipped: it is a folder; -R --key-sep=_ stores the files in it as %s_NAME", path, name)
	case !info.Mode().IsRegular():
		f.Note("%s is skipped: it is not a file", path)
	default:
		f.addFile(f.key(path), path)
	}
}

// key is the path below the root as a key.
func (f *folder) key(path string) string {
	below, err := filepath.Rel(f.root, path)
	if err != nil {
		return filepath.Base(path)
	}
	return strings.ReplaceAll(filepath.ToSlash(below), "/", f.KeySep)
}
