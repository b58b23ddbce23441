package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"example.com/cmctl/cmd/internal/settings"
)

// Who the administrator is.
const (
	adminUser  = "admin"
	adminGroup = "system:masters" // may do everything, as in Kubernetes
)

// What init writes.
const (
	caCertFile     = "ca.crt"
	caKeyFile      = "ca.key"
	serverCertFile = "server.crt"
	serverKeyFile  = "server.key"
	adminCertFile  = "admin.crt"
	adminKeyFile   = "admin.key"
	tokensFile     = "tokens.csv"
	kubeconfigFile = "admin.kubeconfig"
	configFile     = "config.yaml"
)

// initOptions are how init was called.
type initOptions struct {
	out        io.Writer
	dir        string
	names      []string
	listen     string
	token      bool
	context    string
	renew      bool
	caLife     time.Duration
	serverLife time.Duration
	clientLife time.Duration
	now        time.Time
}

func initCommand(out streams) *cobra.Command {
	o := initOptions{out: out.out}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make the certificates and settings of a server that others may reach",
		Long: "init makes, in one folder, an authority (ca.crt, ca.key), the server's certificate for the given names, the\n" +
			"administrator's certificate or token, a kubeconfig that has it, and the settings with which cmserver uses\n" +
			"them. It overwrites nothing. With --renew it makes new certificates of the same authority instead.",
		Example: "  cmserver init\n" +
			"  cmserver init --listen 0.0.0.0:8443 --name cm.example.com,192.0.2.7 --context lab\n" +
			"  cmserver init --dir ./secure --token\n" +
			"  cmserver init --renew",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.now = time.Now()
			if err := o.complete(cmd); err != nil {
				return usageError{err}
			}
			if o.renew {
				return o.runRenew()
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", "", "`DIR` for the files (default: cmserver in the user's configuration folder)")
	f.StringSliceVar(&o.names, "name", nil, "`HOST` or IP address of the server, several with commas (default: localhost,127.0.0.1,::1 and the machine's name)")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8443", "`HOST:PORT` that the server is to listen on")
	f.BoolVar(&o.token, "token", false, "make a bearer token for the administrator instead of a certificate")
	f.StringVar(&o.context, "context", "", "make a context of cmctl's with this `NAME` too")
	f.BoolVar(&o.renew, "renew", false, "make new certificates for the keys in the folder")
	f.DurationVar(&o.caLife, "ca-lifetime", 10*365*24*time.Hour, "how long the authority lasts")
	f.DurationVar(&o.serverLife, "server-lifetime", 365*24*time.Hour, "how long the server's certificate lasts")
	f.DurationVar(&o.clientLife, "client-lifetime", 365*24*time.Hour, "how long the administrator's certificate lasts")
	return cmd
}

// complete checks what was given, and finds what was not.
func (o *initOptions) complete(cmd *cobra.Command) error {
	for flag, life := range map[string]time.Duration{"ca": o.caLife, "server": o.serverLife, "client": o.clientLife} {
		if life <= 0 {
			return fmt.Errorf("--%s-lifetime %s: must be above 0", flag, life)
		}
	}
	for _, flag := range []string{"token", "context", "listen", "ca-lifetime"} {
		if o.renew && cmd.Flags().Changed(flag) {
			return fmt.Errorf("--renew makes certificates anew and nothing else; leave out --%s", flag)
		}
	}
	if o.dir == "" {
		folder, err := os.UserConfigDir()
		if err != nil {
			return fmt.Errorf("no --dir is given and the user's configuration folder is unknown: %w", err)
		}
		o.dir = filepath.Join(folder, "cmserver")
	}
	var err error
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	if cmd.Flags().Changed("name") && len(o.names) == 0 {
		return errors.New("--name is given, and is empty")
	}
	for i, name := range o.names {
		if o.names[i], err = checkName(name); err != nil {
			return err
		}
	}
	return o.checkListen()
}

// checkName refuses what can't be in a certificate.
func checkName(name string) (string, error) {
	if ip, err := netip.ParseAddr(name); err == nil {
		if ip.Zone() != "" || ip.IsUnspecified() {
			return "", fmt.Errorf("--name %q: clients can't connect to that address", name)
		}
		return ip.Unmap().String(), nil
	}
	name = strings.ToLower(name)
	if len(validation.IsDNS1123Subdomain(name)) > 0 && len(validation.IsWildcardDNS1123Subdomain(name)) > 0 {
		return "", fmt.Errorf("--name %q: must be a host name or an IP address", name)
	}
	return name, nil
}

func (o *initOptions) checkListen() error {
	_, port, err := net.SplitHostPort(o.listen)
	if err != nil {
		return fmt.Errorf("--listen %q: must be HOST:PORT: %w", o.listen, err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("--listen %q: clients need a port, from 1 to 65535", o.listen)
	}
	return nil
}

// place finds out what the server is called: the names in its certificate, and the
// address that clients get.
func (o *initOptions) place() (names []string, url string) {
	host, port, _ := net.SplitHostPort(o.listen) // checkListen has tried it
	names = slices.Clone(o.names)
	own := ""
	if len(names) == 0 {
		names = []string{"localhost", "127.0.0.1", "::1"}
		if machine, err := os.Hostname(); err == nil {
			if own, err = checkName(machine); err == nil && !slices.Contains(names, own) {
				names = append(names, own)
			}
		}
	}
	clients := names[0]
	if named, err := checkName(host); err == nil {
		clients = named
		if !slices.Contains(names, named) {
			names = append(names, named)
		}
	} else if own != "" {
		clients = own // every address is listened on, so that other machines come
	}
	return names, "https://" + net.JoinHostPort(clients, port)
}

// run makes everything anew.
func (o *initOptions) run(ctx context.Context) error {
	contexts := ""
	if o.context != "" {
		var err error
		if contexts, err = o.freeContext(); err != nil {
			return usageError{err}
		}
	}
	names, url := o.place()
	made, err := o.make(names, url)
	if err != nil {
		return err
	}
	if err := placeNew(o.dir, made.files); err != nil {
		return err
	}
	if o.context != "" {
		if err := o.addContext(contexts); err != nil {
			return fmt.Errorf("the files are made, but cmctl's context is not: %w; make it with: %s", err, o.setContext(o.context))
		}
	}
	return o.tell(made, names, url)
}

// freeContext is the path of cmctl's settings file. A context that is there is not
// replaced.
func (o *initOptions) freeContext() (string, error) {
	path := os.Getenv("CMCTL_CONFIG")
	if path == "" {
		folder, err := os.UserConfigDir()
		if err != nil {
			return "", fmt.Errorf("--context: the user's configuration folder is unknown: %w", err)
		}
		path = filepath.Join(folder, "cmctl", "config.yaml")
	}
	file, err := settings.Read(path)
	if errors.Is(err, os.ErrNotExist) {
		return path, nil
	}
	if err != nil {
		return "", fmt.Errorf("cmctl's settings file %s: %w", path, err)
	}
	if _, ok := file.Context(o.context); ok {
		return "", fmt.Errorf("cmctl has a context %q already, in %s; choose another --context; nothing was made", o.context, path)
	}
	return path, nil
}

func (o *initOptions) addContext(path string) error {
	return settings.Edit(path, func(d *settings.Document) error {
		file, err := d.File()
		if err != nil {
			return err
		}
		if _, ok := file.Context(o.context); ok {
			return fmt.Errorf("there is a context %q already", o.context)
		}
		return d.SetContext(settings.Context{Name: o.context, Kubeconfig: o.path(kubeconfigFile)})
	})
}

func (o *initOptions) path(name string) string { return filepath.Join(o.dir, name) }

func (o *initOptions) setContext(name string) string {
	return "cmctl config set-context " + name + " --kubeconfig=" + quoted(o.path(kubeconfigFile))
}

// tell says what there is now and what to do with it, and shows no secret.
func (o *initOptions) tell(made madeFiles, names []string, url string) error {
	credential := fmt.Sprintf("%s, %s\tthe certificate of %s in the group %s, until %s", adminCertFile, adminKeyFile, adminUser, adminGroup, day(made.adminEnd))
	if o.token {
		credential = fmt.Sprintf("%s\tthe token of %s in the group %s, by its SHA-256", tokensFile, adminUser, adminGroup)
	}
	start, kubeconfig := "cmserver --config "+quoted(o.path(configFile)), quoted(o.path(kubeconfigFile))
	if folder, err := os.UserConfigDir(); err == nil && o.dir == filepath.Join(folder, "cmserver") {
		start = "cmserver"
	}
	use := o.setContext("NAME")
	if o.context != "" {
		use = "cmctl --context " + quoted(o.context) + " get"
	}
	_, err := fmt.Fprintf(o.out, `%s has what a server and its administrator need; keep it to yourself:
  %s, %s	the authority that signed the rest, until %s
  %s, %s	the certificate of %s, until %s
  %s
  %s	%s, as %s, with the credentials in it
  %s	the settings of the server

Next:
  %s
  kubectl --kubeconfig %s get configmaps
  cmctl --kubeconfig %s get
  %s
`,
		o.dir, caCertFile, caKeyFile, day(made.caEnd), serverCertFile, serverKeyFile, strings.Join(names, ", "), day(made.serverEnd),
		credential, kubeconfigFile, url, adminUser, configFile, start, kubeconfig, kubeconfig, use)
	return err
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// quoted is a word as a shell takes it.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%=,", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
