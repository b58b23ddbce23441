package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"example.com/cmctl/pkg/server/store/local"
)

// storeConfig are the settings of where the data is kept.
type storeConfig struct {
	Store          string `mapstructure:"store"`
	DataDir        string `mapstructure:"data-dir"`
	InMemory       bool   `mapstructure:"in-memory"`
	InitialVersion int64  `mapstructure:"initial-version"`

	EtcdCAFile             string        `mapstructure:"etcd-ca-file"`
	EtcdCertFile           string        `mapstructure:"etcd-cert-file"`
	EtcdKeyFile            string        `mapstructure:"etcd-key-file"`
	EtcdUser               string        `mapstructure:"etcd-user"`
	EtcdPasswordFile       string        `mapstructure:"etcd-password-file"`
	EtcdTimeout            time.Duration `mapstructure:"etcd-timeout"`
	EtcdCompactionInterval time.Duration `mapstructure:"etcd-compaction-interval"`

	site site // what Store, DataDir and InMemory say
}

// The bounds of what is waited for, and of how often the cluster is compacted.
const (
	minEtcdTimeout    = 100 * time.Millisecond
	maxEtcdTimeout    = time.Minute
	minEtcdCompaction = time.Minute
	maxEtcdCompaction = 24 * time.Hour
)

func addStoreFlags(f *pflag.FlagSet) {
	f.String("store", "", "`STORE` that keeps the data: local:DIR, memory, or etcd://HOST:PORT,HOST:PORT/PREFIX (default: local:, with the directory of --data-dir)")
	f.String("data-dir", "", "`DIR` that keeps the data (default: cmserver in the user's state folder)")
	f.Bool("in-memory", false, "keep the data in memory; it is gone when the server stops")
	f.Int64("initial-version", 0, "`N` is the first resourceVersion of a new store, up to 2^62 (default 1; in memory a random one)")
	f.Duration("etcd-timeout", 5*time.Second, "how long a request to etcd may take, 100ms to 1m")
	f.Duration("etcd-compaction-interval", 0, "compact the whole etcd cluster every so often, 1m to 24h, 0 never: it empties the history of everybody who uses it")
	addEtcdAccessFlags(f)
}

// addEtcdAccessFlags declares how an etcd cluster is reached.
func addEtcdAccessFlags(f *pflag.FlagSet) {
	f.String("etcd-ca-file", "", "PEM `FILE` of the authorities of etcd's certificates; the connection is then encrypted")
	f.String("etcd-cert-file", "", "PEM `FILE` with the certificate that is shown to etcd, read again for each connection")
	f.String("etcd-key-file", "", "PEM `FILE` with the key of that certificate")
	f.String("etcd-user", "", "`USER` of etcd, with --etcd-password-file")
	f.String("etcd-password-file", "", "`FILE` with the password of that user")
}

// site is a place where data is kept.
type site struct {
	kind      siteKind
	dir       string   // of a local one
	endpoints []string // of an etcd cluster, HOST:PORT
	prefix    string   // what keys begin with there, without a slash at the end
}

type siteKind string

const (
	inDirectory siteKind = "local"
	inMemory    siteKind = "memory"
	onEtcd      siteKind = "etcd"
)

// String is the site as --store takes it.
func (s site) String() string {
	switch s.kind {
	case inDirectory:
		return "local:" + s.dir
	case onEtcd:
		return "etcd://" + strings.Join(s.endpoints, ",") + s.prefix
	}
	return string(s.kind)
}

const (
	etcdScheme    = "etcd://"
	etcdPort      = "2379"
	defaultPrefix = "/cmserver"
)

// parseSite reads what --store takes. The directory of "local:" is left open.
func parseSite(text string) (site, error) {
	switch {
	case text == string(inMemory):
		return site{kind: inMemory}, nil
	case strings.HasPrefix(text, "local:"):
		return site{kind: inDirectory, dir: strings.TrimPrefix(text, "local:")}, nil
	case strings.HasPrefix(text, etcdScheme):
		return parseEtcd(strings.TrimPrefix(text, etcdScheme))
	}
	return site{}, fmt.Errorf("%q: must be local:DIR, memory, or etcd://HOST:PORT,HOST:PORT/PREFIX", text)
}

func parseEtcd(text string) (site, error) {
	refused := func(why string) (site, error) { return site{}, fmt.Errorf("%q: %s", etcdScheme+text, why) }
	hosts, path, _ := strings.Cut(text, "/")
	s := site{kind: onEtcd, prefix: "/" + strings.Trim(path, "/")}
	if s.prefix == "/" {
		s.prefix = defaultPrefix
	}
	switch {
	case strings.Contains(hosts, "@"):
		return refused("it names a user: --etcd-user and --etcd-password-file do, where others can't read it")
	case strings.ContainsAny(s.prefix, "?#\x00") || strings.Contains(s.prefix, "//"):
		return refused("the prefix must be plain segments, as in /team/cmserver")
	}
	for host := range strings.SplitSeq(hosts, ",") {
		endpoint, err := withPort(host)
		if err != nil {
			return refused(err.Error())
		}
		if slices.Contains(s.endpoints, endpoint) {
			return refused(endpoint + " is named twice")
		}
		s.endpoints = append(s.endpoints, endpoint)
	}
	return s, nil
}

// withPort is HOST:PORT of a host that may be without one.
func withPort(host string) (string, error) {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port, err = net.SplitHostPort(host + ":" + etcdPort)
	}
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || name == "" || bad != nil || n == 0 {
		return "", fmt.Errorf("the host %q must be HOST or HOST:PORT; those of an IPv6 address are [ADDRESS]:PORT", host)
	}
	return net.JoinHostPort(name, port), nil
}

// locate finds out where the data is, of three settings of which one may be given. A
// closer one goes before others: a flag before variables, and those before the file.
func (c *storeConfig) locate(flags *pflag.FlagSet, v *viper.Viper) error {
	var named []string
	nearest := notGiven
	for _, name := range []string{"store", "data-dir", "in-memory"} {
		if name == "in-memory" && !c.InMemory {
			continue
		}
		switch p := proximityOf(name, flags, v); {
		case p == notGiven:
		case p > nearest:
			nearest, named = p, []string{name}
		case p == nearest:
			named = append(named, name)
		}
	}
	if len(named) > 1 {
		return fmt.Errorf("--%s each say where the data is; give one of them", strings.Join(named, " and --"))
	}
	var err error
	switch {
	case len(named) == 0:
		c.site.kind = inDirectory
	case named[0] == "in-memory":
		c.site.kind = inMemory
	case named[0] == "data-dir":
		c.site = site{kind: inDirectory, dir: c.DataDir}
	default:
		if c.site, err = parseSite(c.Store); err != nil {
			return fmt.Errorf("--store %w", err)
		}
	}
	if c.site.kind == inDirectory && c.site.dir == "" {
		c.site.dir, err = defaultDataDir()
	}
	return err
}

// proximity is how close to the person a setting was given.
type proximity int

const (
	notGiven proximity = iota
	inFile
	asVariable
	asFlag
)

func proximityOf(setting string, flags *pflag.FlagSet, v *viper.Viper) proximity {
	switch _, set := os.LookupEnv(variable(setting)); {
	case flags.Changed(setting):
		return asFlag
	case set:
		return asVariable
	case v.InConfig(setting):
		return inFile
	}
	return notGiven
}

// defaultDataDir is where the data is if nobody says where.
func defaultDataDir() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // also when it is not set
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no --data-dir is given and the user's state folder is unknown: %w", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "cmserver"), nil
}

func (c storeConfig) validateStore() error {
	errs := []error{
		between("initial-version", c.InitialVersion, 0, local.HighestBegin),
		between("etcd-timeout", c.EtcdTimeout, minEtcdTimeout, maxEtcdTimeout),
		c.validateEtcdAccess(),
	}
	if c.EtcdCompactionInterval != 0 {
		errs = append(errs, between("etcd-compaction-interval", c.EtcdCompactionInterval, minEtcdCompaction, maxEtcdCompaction))
	}
	if c.site.kind != onEtcd {
		errs = append(errs, c.etcdUnused())
	}
	return errors.Join(errs...)
}

func (c storeConfig) validateEtcdAccess() error {
	var errs []error
	if (c.EtcdCertFile == "") != (c.EtcdKeyFile == "") {
		errs = append(errs, errors.New("--etcd-cert-file and --etcd-key-file are needed together"))
	}
	if c.EtcdCertFile != "" && c.EtcdCAFile == "" {
		errs = append(errs, errors.New("--etcd-cert-file needs --etcd-ca-file, by which etcd is known"))
	}
	if (c.EtcdUser == "") != (c.EtcdPasswordFile == "") {
		errs = append(errs, errors.New("--etcd-user and --etcd-password-file are needed together"))
	}
	return errors.Join(errs...)
}

// etcdUnused refuses settings of etcd that change nothing.
func (c storeConfig) etcdUnused() error {
	var errs []error
	for flag, given := range map[string]bool{
		"etcd-ca-file": c.EtcdCAFile != "", "etcd-user": c.EtcdUser != "", "etcd-compaction-interval": c.EtcdCompactionInterval != 0,
	} {
		if given {
			errs = append(errs, fmt.Errorf("--%s is of no use without --store etcd://…", flag))
		}
	}
	return errors.Join(errs...)
}
