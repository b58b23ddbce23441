package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// fromFlags are the ways to give data on the command line.
type fromFlags struct {
	literals []string
	files    []string
	envFiles []string
}

func (f *fromFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.literals, "from-literal", nil, "`KEY=VALUE` to store; may be repeated")
	flags.StringArrayVar(&f.files, "from-file", nil, "`[KEY=]PATH` of a file to store under its name or KEY, or of a folder whose files are stored; may be repeated")
	flags.StringArrayVar(&f.envFiles, "from-env-file", nil, "`PATH` of a file with lines KEY=VALUE; may be repeated")
}

func (f *fromFlags) given() bool { return len(f.literals)+len(f.files)+len(f.envFiles) > 0 }

const literalOrigin = "--from-literal"

// collector gathers keys and refuses one that is given twice.
type collector struct {
	doc    types.Document
	origin map[string]string
	note   func(format string, args ...any)
}

// fill puts the data that the flags name into the document.
func (f *fromFlags) fill(doc types.Document, note func(string, ...any)) error {
	c := &collector{doc: doc, origin: map[string]string{}, note: note}
	for _, literal := range f.literals {
		key, value, ok := strings.Cut(literal, "=")
		if !ok || key == "" {
			return usagef("--from-literal takes KEY=VALUE, not %q", literal)
		}
		if err := c.add(key, []byte(value), literalOrigin); err != nil {
			return err
		}
	}
	for _, arg := range f.files {
		if err := c.addFileArg(arg); err != nil {
			return err
		}
	}
	for _, path := range f.envFiles {
		if err := c.addEnvFile(path); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) add(key string, value []byte, origin string) error {
	if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
		remedy := ""
		if origin != literalOrigin {
			remedy = "; give another with --from-file=KEY=PATH"
		}
		return usagef("%s: %q can't be a key: %s%s", origin, key, badKey(key), remedy)
	}
	if before, ok := c.origin[key]; ok {
		return usagef("key %q is given twice: by %s and by %s", key, before, origin)
	}
	c.origin[key] = origin
	if bad := invalidUTF8(value); bad >= 0 {
		c.note("%s: stored in binaryData, for it is not UTF-8 text (at byte %d)", origin, bad)
		c.doc.Set(types.Field{Section: "data", Key: key}, types.Binary(base64.StdEncoding.EncodeToString(value)))
		return nil
	}
	c.doc.Set(types.Field{Section: "data", Key: key}, string(value))
	return nil
}

// badKey names what is wrong with a key.
func badKey(key string) string {
	for _, r := range key {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", r) {
			return fmt.Sprintf("%q is not among letters, digits, '-', '_' and '.'", r)
		}
	}
	return strings.Join(validation.IsConfigMapKey(key), "; ")
}

// invalidUTF8 is the offset of the first byte that is no UTF-8, -1 if none.
func invalidUTF8(b []byte) int {
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// addFileArg takes one --from-file: PATH, KEY=PATH, or a folder.
func (c *collector) addFileArg(arg string) error {
	key, path, named := strings.Cut(arg, "=")
	if !named {
		key, path = "", arg
	}
	if path == "" || named && key == "" {
		return usagef("--from-file takes PATH or KEY=PATH, not %q", arg)
	}
	info, err := os.Stat(path)
	if err != nil {
		return manifest.FileError(path, err)
	}
	if info.IsDir() {
		if named {
			return usagef("--from-file=%s: a folder gives one key a file, so KEY= can't be said with it", arg)
		}
		return c.addFolder(path)
	}
	if key == "" {
		key = filepath.Base(path)
	}
	return c.addFile(key, path)
}

func (c *collector) addFile(key, path string) error {
	value, err := os.ReadFile(path)
	if err != nil {
		return manifest.FileError(path, err)
	}
	return c.add(key, value, path)
}

// addFolder stores each regular file, links to one included: in a mounted
// ConfigMap every file is a link into "..data". Names that begin with ".." are
// that machinery and no keys.
func (c *collector) addFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return manifest.FileError(dir, err)
	}
	added := 0
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return manifest.FileError(path, err)
		}
		if !info.Mode().IsRegular() {
			c.note("%s is skipped: it is not a file", path)
			continue
		}
		if err := c.addFile(e.Name(), path); err != nil {
			return err
		}
		added++
	}
	if added == 0 {
		return fmt.Errorf("the folder %s holds no file to store", dir)
	}
	return nil
}

// unclosed tells a value whose first quote has no second: what follows on the
// next lines would be taken for keys.
func unclosed(value string) bool {
	return value != "" && (value[0] == '"' || value[0] == '\'') && strings.Count(value, value[:1]) == 1
}

// addEnvFile reads lines KEY=VALUE as kubectl does: blanks before the key and
// lines that begin with # are skipped, the value is taken as it stands, and a
// bare KEY takes its value from the environment.
func (c *collector) addEnvFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return manifest.FileError(path, err)
	}
	if !utf8.Valid(text) {
		return fmt.Errorf("%s is not UTF-8 text", path)
	}
	n := 0
	for raw := range bytes.Lines(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))) {
		n++
		line := strings.TrimLeft(strings.TrimRight(string(raw), "\r\n"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		origin := fmt.Sprintf("%s:%d", path, n)
		key, value, ok := strings.Cut(line, "=")
		if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
			return fmt.Errorf("%s: %q can't be a key: %s; if the line before goes on here, store the value with --from-file", origin, key, badKey(key))
		}
		if !ok {
			if value, ok = os.LookupEnv(key); !ok {
				return fmt.Errorf("%s: %s has no value, and the environment has none for it; write %s= for an empty one", origin, key, key)
			}
			c.note("%s: %s is taken from the environment", origin, key)
		}
		if open := unclosed(value); open {
			return fmt.Errorf("%s: the value of %s begins with a quote that isn't closed on its line; store a value of several lines with --from-file", origin, key)
		}
		if err := c.add(key, []byte(value), origin); err != nil {
			return err
		}
	}
	return nil
}
