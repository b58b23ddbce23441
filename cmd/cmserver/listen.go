package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"example.com/cmctl/cmd/cmserver/internal/serving"
	"example.com/cmctl/pkg/server"
)

// listenConfig are the settings of where and how clients reach the server.
type listenConfig struct {
	Listen         []string `mapstructure:"listen"`
	ListenMode     string   `mapstructure:"listen-mode"`
	InsecureListen bool     `mapstructure:"insecure-listen"`
	TLSCertFile    string   `mapstructure:"tls-cert-file"`
	TLSKeyFile     string   `mapstructure:"tls-private-key-file"`
	TLSMinVersion  string   `mapstructure:"tls-min-version"`
}

// The settings that others than this machine's users make necessary.
const (
	tlsFlags  = "--tls-cert-file and --tls-private-key-file"
	authFlags = "--client-ca-file, --token-auth-file or --oidc-issuer-url"
)

// ownModes are the permissions that the mode of a socket may have: whoever connects
// writes to it.
const ownModes = 0o666

func addListenFlags(f *pflag.FlagSet) {
	f.StringSlice("listen", []string{"127.0.0.1:8080"},
		"`HOST:PORT` to listen on, port 0 takes a free one, or unix:///PATH; may be repeated")
	f.String("listen-mode", "0600", "permissions of unix sockets, as an octal `MODE`: who may write to one may connect")
	f.Bool("insecure-listen", false, "allow --listen on an address that others can reach, without encryption or authentication")
	f.String("tls-cert-file", "", "PEM `FILE` with the server's certificate and its chain; clients then use https")
	f.String("tls-private-key-file", "", "PEM `FILE` with the key of that certificate")
	f.String("tls-min-version", "VersionTLS12", "oldest `VERSION` of TLS that clients may speak: VersionTLS12|VersionTLS13")
}

// validateListen refuses what is wrong by itself; where addresses lead is for
// addresses to find out.
func (c config) validateListen() error {
	var errs []error
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		missing := "--tls-private-key-file"
		if c.TLSCertFile == "" {
			missing = "--tls-cert-file"
		}
		errs = append(errs, fmt.Errorf("%s are needed together: add %s", tlsFlags, missing))
	}
	if _, err := serving.MinVersion(c.TLSMinVersion); err != nil {
		errs = append(errs, fmt.Errorf("--tls-min-version %w", err))
	}
	if mode, err := strconv.ParseUint(c.ListenMode, 8, 32); err != nil || mode&^ownModes != 0 || mode&0o600 != 0o600 {
		errs = append(errs, fmt.Errorf("--listen-mode %q: must be octal permissions to read and write, such as 0600 or 0660", c.ListenMode))
	}
	if len(c.Listen) == 0 {
		errs = append(errs, errors.New("--listen: at least one address is needed"))
	}
	return errors.Join(errs...)
}

// socketMode is what validateListen has found sound.
func (c config) socketMode() fs.FileMode {
	mode, _ := strconv.ParseUint(c.ListenMode, 8, 32)
	return fs.FileMode(mode)
}

// addresses are where to listen. It keeps the server from being opened to others by
// accident.
func (c config) addresses(ctx context.Context, log *slog.Logger) ([]serving.Address, error) {
	var all []serving.Address
	for _, text := range c.Listen {
		a, err := serving.ParseAddress(ctx, text)
		if err != nil {
			return nil, fmt.Errorf("--listen %w", err)
		}
		if err := c.mayListen(a); err != nil {
			return nil, err
		}
		if a.Exposed() && c.unprotected() != "" {
			log.Warn("others can reach this server, and --insecure-listen lets them in without "+c.unprotected(), "listen", a.String())
		}
		all = append(all, a)
	}
	return all, nil
}

// mayListen refuses an address that others reach as long as nothing keeps them out,
// or the server is told to misbehave.
func (c config) mayListen(a serving.Address) error {
	if !a.Exposed() {
		return nil
	}
	if without := c.unprotected(); without != "" && !c.InsecureListen {
		return fmt.Errorf("--listen %s can be reached by others, who could read and write everything without %s: add %s "+
			"('cmserver init' makes what they need); or listen on 127.0.0.1; or add --insecure-listen if the network is trusted",
			a, without, strings.Join(c.missing(), ", and "))
	}
	if err := c.notEvenOpened(a); err != nil {
		return err
	}
	if !c.faults.Empty() && !c.InjectAnywhere {
		return fmt.Errorf("--inject makes the server misbehave, and --listen %s can be reached by others, who may rely on it; "+
			"listen on 127.0.0.1, or add --inject-anywhere if they know", a)
	}
	return nil
}

// unprotected is what there is not: encryption, authentication, or both.
func (c config) unprotected() string {
	switch {
	case !c.encrypts() && !c.authenticates():
		return "encryption and authentication"
	case !c.encrypts():
		return "encryption"
	case !c.authenticates():
		return "authentication"
	}
	return ""
}

// missing are the flags that would give it.
func (c config) missing() []string {
	var flags []string
	if !c.encrypts() {
		flags = append(flags, tlsFlags)
	}
	if !c.authenticates() {
		flags = append(flags, authFlags)
	}
	return flags
}

// notEvenOpened refuses what --insecure-listen can't mean: secrets in clear text, and
// rules of access for users whom nobody knows.
func (c config) notEvenOpened(a serving.Address) error {
	switch {
	case !c.encrypts() && (c.TokenAuthFile != "" || c.OIDCIssuerURL != ""):
		return fmt.Errorf("--listen %s can be reached by others, and bearer tokens would go there in clear text: add %s ('cmserver init' makes "+
			"what they need), or listen on 127.0.0.1, behind what ends TLS", a, tlsFlags)
	case c.RBACDir != "" && !c.authenticates():
		return fmt.Errorf("--listen %s can be reached by others, and --rbac-dir has no users there, since nobody is asked who they are: "+
			"add %s, or listen on 127.0.0.1", a, authFlags)
	}
	return nil
}

// onSocket tells whether a unix socket is listened on, and onTCP whether an address
// of a network is.
func (c listenConfig) onSocket() bool { return slices.ContainsFunc(c.Listen, serving.IsSocket) }

func (c listenConfig) onTCP() bool {
	return slices.ContainsFunc(c.Listen, func(a string) bool { return !serving.IsSocket(a) })
}

func (c listenConfig) encrypts() bool { return c.TLSCertFile != "" }

// addTLS adds the encryption of connections, if there is to be any. Clients are asked
// for certificates of the authorities that addUsers has found.
func (p *protection) addTLS(c listenConfig, log *slog.Logger) error {
	if !c.encrypts() {
		return nil
	}
	version, err := serving.MinVersion(c.TLSMinVersion)
	if err != nil {
		return err
	}
	certificate, err := serving.LoadCertificate(c.TLSCertFile, c.TLSKeyFile, log)
	if err != nil {
		return err
	}
	p.tls = &serving.TLS{Certificate: certificate, MinVersion: version, ClientCAs: p.clientCAs}
	p.concerns = append(p.concerns, server.Concern{Name: "certificate", Look: certificate.Look})
	p.upkeep = append(p.upkeep, certificate.Run)
	return nil
}
