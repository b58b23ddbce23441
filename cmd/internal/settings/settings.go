// Package settings reads and edits cmctl's settings file: plain settings, and
// the contexts, which are servers by name.
//
//	file, err := settings.Read(path)
//	lab, ok := file.Context("lab")
//
//	err = settings.Edit(path, func(d *settings.Document) error {
//		d.Set("namespace", "team-a")
//		return nil
//	})
//
// Edit keeps what it doesn't change, comments included, and loses no edit that
// another program makes at the same time.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Keys of the file that are no plain settings.
const (
	contextsKey = "contexts"
	serverKey   = "server"
	// CurrentContext is the key that names the context to use.
	CurrentContext = "current-context"
)

// File is what a settings file says. It may be shared. The zero value is an
// empty file.
type File struct {
	// Plain are the settings beside contexts and current-context, as YAML has
	// them.
	Plain map[string]any
	// Current is the name of the context to use, empty if there is none.
	Current string
	// Contexts are in the file's order, with paths made absolute.
	Contexts []Context
}

// Context is a server by name: what the flags of the same names would say.
type Context struct {
	Name string `yaml:"name"`

	// One of these says where the server is.
	Server     Addresses `yaml:"server,omitempty"`
	Kubeconfig string    `yaml:"kubeconfig,omitempty"`
	InCluster  bool      `yaml:"in-cluster,omitempty"`
	// KubeContext is the context of the kubeconfig, its current one if empty.
	KubeContext string `yaml:"context,omitempty"`

	Namespace             string   `yaml:"namespace,omitempty"`
	Token                 string   `yaml:"token,omitempty"`
	TokenFile             string   `yaml:"token-file,omitempty"`
	ClientCertificate     string   `yaml:"client-certificate,omitempty"`
	ClientKey             string   `yaml:"client-key,omitempty"`
	CertificateAuthority  string   `yaml:"certificate-authority,omitempty"`
	InsecureSkipTLSVerify bool     `yaml:"insecure-skip-tls-verify,omitempty"`
	TLSServerName         string   `yaml:"tls-server-name,omitempty"`
	As                    string   `yaml:"as,omitempty"`
	AsGroups              []string `yaml:"as-group,omitempty"`
	AsUID                 string   `yaml:"as-uid,omitempty"`
}

// pathSettings are the plain settings that name a file.
var pathSettings = []string{"kubeconfig", "token-file", "client-certificate", "client-key", "certificate-authority"}

// IsPath tells whether a plain setting names a file.
func IsPath(setting string) bool { return slices.Contains(pathSettings, setting) }

// paths are the fields that name a file.
func (c *Context) paths() []*string {
	return []*string{&c.Kubeconfig, &c.TokenFile, &c.ClientCertificate, &c.ClientKey, &c.CertificateAuthority}
}

// check refuses a context that names no server, or two.
func (c *Context) check() error {
	named := 0
	for _, is := range []bool{c.Server != "", c.Kubeconfig != "", c.InCluster} {
		if is {
			named++
		}
	}
	switch {
	case c.Name == "" || strings.ContainsFunc(c.Name, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return fmt.Errorf("%q can't be the name of a context", c.Name)
	case named != 1:
		return fmt.Errorf("context %q must have one of server, kubeconfig and in-cluster", c.Name)
	case c.KubeContext != "" && c.Kubeconfig == "":
		return fmt.Errorf("context %q has a context without the kubeconfig that it is of", c.Name)
	}
	return nil
}

// SameServer tells whether both lead to the same place.
func (c *Context) SameServer(d Context) bool {
	return c.Server == d.Server && c.Kubeconfig == d.Kubeconfig && c.KubeContext == d.KubeContext && c.InCluster == d.InCluster
}

// Secret tells whether the context holds a token, rather than the name of a file
// with one.
func (c *Context) Secret() bool { return c.Token != "" }

// Read reads a file. One that is missing is an error that is os.ErrNotExist.
func Read(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(text, filepath.Dir(path))
}

// content is the file as YAML has it.
type content struct {
	Contexts []Context      `yaml:"contexts"`
	Current  string         `yaml:"current-context"`
	Plain    map[string]any `yaml:",inline"`
}

// parse takes paths as relative to a folder.
func parse(text []byte, folder string) (*File, error) {
	var raw content
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&raw); err != nil && !errors.Is(err, io.EOF) {
		return nil, plain(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("it must be one YAML document")
	}
	f := &File{Plain: map[string]any{}, Current: raw.Current, Contexts: raw.Contexts}
	for key, value := range raw.Plain {
		if value == nil {
			continue // `namespace:` says nothing
		}
		switch text, ok := value.(string); {
		case ok && IsPath(key):
			value = absolute(text, folder)
		case key == serverKey:
			value = joined(value)
		}
		f.Plain[key] = value
	}
	for i := range f.Contexts {
		c := &f.Contexts[i]
		if err := c.check(); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(f.Contexts[:i], func(d Context) bool { return d.Name == c.Name }) {
			return nil, fmt.Errorf("there are two contexts named %q", c.Name)
		}
		for _, path := range c.paths() {
			*path = absolute(*path, folder)
		}
	}
	return f, nil
}

var (
	mismatch     = regexp.MustCompile("cannot unmarshal !!(\\w+)(?: `[^`]*`)? into (\\S+)")
	unknownField = regexp.MustCompile(` not found in type \S+`)
)

// plain is a YAML error without the names of Go types, which the library gives in
// its text alone.
func plain(err error) error {
	text := strings.NewReplacer("yaml: ", "", "unmarshal errors:\n  ", "").Replace(err.Error())
	text = mismatch.ReplaceAllStringFunc(text, func(found string) string {
		parts := mismatch.FindStringSubmatch(found)
		return yamlName(parts[1]) + " stands where " + goName(parts[2]) + " belongs"
	})
	return errors.New(unknownField.ReplaceAllString(text, " is not known there"))
}

// yamlName is a YAML tag for a person.
func yamlName(tag string) string {
	switch tag {
	case "seq":
		return "a list"
	case "int", "float":
		return "a number"
	case "bool":
		return "true or false"
	case "str":
		return "a string"
	}
	return "a " + tag // a map
}

// goName is a Go type for a person.
func goName(t string) string {
	switch {
	case t == "string":
		return "a string"
	case t == "bool":
		return "true or false"
	case strings.HasPrefix(t, "[]"):
		return "a list"
	}
	return "a map"
}

// absolute is a path of the file, which may begin with ~/.
func absolute(path, folder string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// Decode reads a setting that is a list or a mapping. Fields that into doesn't
// have are an error; a setting that isn't there changes nothing.
func (f *File) Decode(setting string, into any) error {
	value, ok := f.Plain[setting]
	if !ok {
		return nil
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(into); err != nil {
		return plain(err)
	}
	return nil
}

// Context finds a context by name.
func (f *File) Context(name string) (Context, bool) {
	i := slices.IndexFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if i < 0 {
		return Context{}, false
	}
	return f.Contexts[i], true
}

// Secret tells whether the file holds a token.
func (f *File) Secret() bool {
	_, plain := f.Plain["token"]
	return plain || slices.ContainsFunc(f.Contexts, func(c Context) bool { return c.Secret() })
}

// Exposed tells whether others than its owner may read the file.
func Exposed(path string) bool {
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}
