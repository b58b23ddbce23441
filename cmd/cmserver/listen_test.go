package main

import (
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"example.com/cmctl/pkg/server/inject"
)

// An address that others reach is closed until encryption and authentication, or a
// flag that says so, open it.
func TestWhereItMayListen(t *testing.T) {
	const open = "--insecure-listen"
	for _, c := range []struct {
		address string
		exposed bool
	}{
		{"127.0.0.1:8080", false}, {"127.1.2.3:0", false}, {"localhost:80", false}, {"[::1]:8080", false},
		{"[::ffff:127.0.0.1]:80", false}, {"unix:///run/cm.sock", false}, {"unix:cm.sock", false},
		{"0.0.0.0:8080", true}, {":8080", true}, {"[::]:8080", true}, {"192.0.2.1:80", true}, {"[::ffff:192.0.2.1]:80", true},
	} {
		var log strings.Builder
		may := func(o config) error {
			o.Listen = []string{c.address}
			_, err := o.addresses(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
			return err
		}
		err := may(config{})
		if (err != nil) != c.exposed {
			t.Errorf("%s: %v", c.address, err)
		}
		for _, flag := range []string{open, "--tls-cert-file", "--tls-private-key-file", "--client-ca-file", "--token-auth-file", "--oidc-issuer-url"} {
			if c.exposed && !strings.Contains(err.Error(), flag) {
				t.Errorf("%s: no %s in %v", c.address, flag, err)
			}
		}
		secured := config{listenConfig: listenConfig{TLSCertFile: "x"}}
		if err := may(secured); c.exposed && (err == nil || strings.Contains(err.Error(), "--tls-cert-file")) {
			t.Errorf("%s with TLS: %v", c.address, err)
		}
		opened := config{listenConfig: listenConfig{InsecureListen: true}}
		if err := may(opened); err != nil || strings.Contains(log.String(), "level=WARN") != c.exposed {
			t.Errorf("%s with %s: %v, the log says %q", c.address, open, err, &log)
		}
		if opened.faults, err = inject.Parse("lost=1x"); err != nil {
			t.Fatal(err)
		}
		if err := may(opened); (err != nil) != c.exposed {
			t.Errorf("%s with --inject: %v", c.address, err)
		}
		opened.InjectAnywhere = true
		if err := may(opened); err != nil {
			t.Errorf("%s with --inject-anywhere: %v", c.address, err)
		}
	}
}

// One bad address refuses all.
func TestAddressesThatCannotBe(t *testing.T) {
	for _, address := range []string{"localhost", "127.0.0.1:nonsense", "127.0.0.1:65536", "127.0.0.1:-1", "unix://relative", "unix:/",
		"unix:///" + strings.Repeat("long/", 30), "host.invalid:80", ""} {
		c := config{listenConfig: listenConfig{Listen: []string{"127.0.0.1:0", address}, InsecureListen: true}}
		if got, err := c.addresses(t.Context(), slog.New(slog.NewTextHandler(io.Discard, nil))); err == nil {
			t.Errorf("%q gives %v", address, got)
		}
	}
}

func TestListenSettings(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("CMSERVER_LISTEN", "127.0.0.1:1,unix:/x")
	for _, c := range []struct {
		args []string
		want []string // nil: refused
		says string
	}{
		{nil, []string{"127.0.0.1:1", "unix:/x"}, ""},
		{[]string{"--listen", "[::1]:1", "--listen=unix:///y"}, []string{"[::1]:1", "unix:///y"}, ""},
		{[]string{"--listen-mode", "0660", "--tls-min-version", "VersionTLS13"}, []string{"127.0.0.1:1", "unix:/x"}, ""},
		{[]string{"--listen-mode", "0777"}, nil, "--listen-mode"},
		{[]string{"--listen-mode", "0400"}, nil, "--listen-mode"},
		{[]string{"--listen-mode", "rw"}, nil, "--listen-mode"},
		{[]string{"--tls-min-version", "VersionTLS11"}, nil, "VersionTLS12, VersionTLS13"},
		{[]string{"--tls-cert-file", "x"}, nil, "add --tls-private-key-file"},
		{[]string{"--tls-private-key-file", "x"}, nil, "add --tls-cert-file"},
	} {
		got, err := load(t, c.args...)
		if (err == nil) != (c.want != nil) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v", c.args, err)
		}
		if c.want != nil && !slices.Equal(got.Listen, c.want) {
			t.Errorf("%q: listens on %q", c.args, got.Listen)
		}
	}
}

// What an override can't mean is refused in spite of it, and says what to add.
func TestWhatInsecureListenDoesNotOpen(t *testing.T) {
	tokens, rules, issuer := config{}, config{}, config{}
	tokens.TokenAuthFile, rules.RBACDir, issuer.OIDCIssuerURL = "x", "x", "https://issuer.example"
	for name, test := range map[string]struct {
		settings config
		tls      bool
		says     string // empty: it may
	}{
		"tokens in clear text":                 {tokens, false, "add --tls-cert-file and --tls-private-key-file"},
		"tokens of an issuer in clear text":    {issuer, false, "add --tls-cert-file and --tls-private-key-file"},
		"tokens over TLS":                      {tokens, true, ""},
		"rules for nobody":                     {rules, false, "add --client-ca-file, --token-auth-file or --oidc-issuer-url"},
		"rules for nobody, over TLS":           {rules, true, "add --client-ca-file, --token-auth-file or --oidc-issuer-url"},
		"everything for everybody, as it says": {config{}, false, ""},
	} {
		c := test.settings
		c.InsecureListen = true
		if test.tls {
			c.TLSCertFile = "x"
		}
		may := func(address string) error {
			c.Listen = []string{address}
			_, err := c.addresses(t.Context(), slog.New(slog.NewTextHandler(io.Discard, nil)))
			return err
		}
		if err := may("0.0.0.0:8080"); (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
		if err := may("127.0.0.1:8080"); err != nil {
			t.Errorf("%s, on loopback: %v", name, err)
		}
	}
}
