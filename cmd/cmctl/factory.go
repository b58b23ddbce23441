package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"k8s.io/apimachinery/pkg/util/validation"
)

// factory holds what the commands share. It reads the settings before a command
// runs and connects only when one asks for the server, so that help never
// dials.
type factory struct {
	streams
	interrupts *interrupts
	flags      *pflag.FlagSet
	settings   *viper.Viper
	file       *viper.Viper // the configuration file alone, to tell where a setting came from
	now        func() time.Time
}

func newFactory(s streams, i *interrupts) *factory {
	return &factory{streams: s, interrupts: i, settings: viper.New(), file: viper.New(), now: time.Now}
}

// settingNames are the global flags that may also stand in CMCTL_ variables and
// in the configuration file.
var settingNames = []string{"server", "namespace", "max-attempts", "request-timeout", "field-manager",
	"token", "certificate-authority", "insecure-skip-tls-verify", "kubeconfig", "context", "editor", "color", checksSetting}

func (f *factory) addFlags(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringP("server", "s", "", "address of the server (default http://127.0.0.1:8080)")
	flags.StringP("namespace", "n", "", "namespace to work in (default \"default\")")
	flags.Int("max-attempts", 5, "how often a write is tried when others write the same object")
	flags.Duration("request-timeout", 30*time.Second, "how long one request may take")
	flags.String("field-manager", "", "name under which the server records your changes (default cmctl-VERB)")
	flags.String("token", "", "bearer token for the server")
	flags.String("certificate-authority", "", "`file` with the certificates that the server's is checked against")
	flags.Bool("insecure-skip-tls-verify", false, "don't check the server's certificate")
	flags.String("kubeconfig", "", "kubeconfig `file` that names the server and the credentials")
	flags.String("context", "", "context of the kubeconfig to use")
	flags.String("config", "", "settings `file` (default cmctl/config.yaml in your configuration folder)")
	flags.String("color", "auto", "`when` to use colours: auto (on a terminal, unless NO_COLOR is set), always or never")
	flags.IntP("verbose", "v", 0, "show the requests on stderr (1 and above), without their contents")
	flags.Lookup("verbose").NoOptDefVal = "1"
}

// load reads the settings: flag, then variable, then file, then default.
func (f *factory) load() error {
	f.settings.SetEnvPrefix("CMCTL")
	f.settings.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	f.settings.AutomaticEnv()
	if err := f.settings.BindPFlags(f.flags); err != nil {
		return err
	}
	path, explicit := f.settings.GetString("config"), true
	if path == "" {
		explicit = false
		// Without a home there is no file.
		if folder, err := os.UserConfigDir(); err == nil {
			path = filepath.Join(folder, "cmctl", "config.yaml")
		}
	}
	if path != "" {
		if err := f.readFile(path); err != nil && (explicit || !errors.Is(err, os.ErrNotExist)) {
			return usagef("settings file %s: %v", path, err)
		}
	}
	return f.checkSettings()
}

func (f *factory) readFile(path string) error {
	f.file.SetConfigFile(path)
	f.file.SetConfigType("yaml")
	if err := f.file.ReadInConfig(); err != nil {
		return err
	}
	for _, key := range f.file.AllKeys() {
		if !slices.Contains(settingNames, key) {
			return fmt.Errorf("unknown setting %q; known are %s", key, strings.Join(settingNames, ", "))
		}
	}
	return f.settings.MergeConfigMap(f.file.AllSettings())
}

func (f *factory) checkSettings() error {
	if n := f.settings.GetInt("max-attempts"); n < 1 {
		return usagef("the setting max-attempts must be a number of at least 1, not %q", f.settings.GetString("max-attempts"))
	}
	// Through the text: viper reads a bare number as nanoseconds.
	text := f.settings.GetString("request-timeout")
	if d, err := time.ParseDuration(text); err != nil || d <= 0 {
		return usagef("the setting request-timeout must be a positive duration such as 30s, not %q", text)
	}
	if mode := f.settings.GetString("color"); !slices.Contains(output.ColorModes, mode) {
		return usagef("the setting color must be one of %s, not %q", strings.Join(output.ColorModes, ", "), mode)
	}
	if ns := f.settings.GetString("namespace"); ns != "" {
		if problems := validation.IsDNS1123Label(ns); len(problems) > 0 {
			return usagef("%q can't be a namespace: %s", ns, strings.Join(problems, "; "))
		}
	}
	return nil
}

// source ranks where a setting was given: 3 flag, 2 variable, 1 file, 0 nowhere.
func (f *factory) source(name string) int {
	if flag := f.flags.Lookup(name); flag != nil && flag.Changed {
		return 3
	}
	if v, ok := os.LookupEnv("CMCTL_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))); ok && v != "" {
		return 2
	}
	if f.file.IsSet(name) {
		return 1
	}
	return 0
}

// target decides which server is meant. The setting given closest to the person
// wins; credentials are taken only from where the server was named or from
// closer, so that a token meant for one server never goes to another.
func (f *factory) target() (*client.Target, error) {
	server, kube := f.source("server"), max(f.source("kubeconfig"), f.source("context"))
	if server == kube && server > 0 {
		return nil, usagef("--server and --kubeconfig or --context name two servers; give one of them")
	}
	o := client.TargetOptions{}
	if kube > server {
		o.Kubeconfig, o.Context = f.settings.GetString("kubeconfig"), f.settings.GetString("context")
		server = kube
	} else {
		o.Server = f.settings.GetString("server")
	}
	if f.source("token") >= server {
		o.Token = f.settings.GetString("token")
	}
	if f.source("certificate-authority") >= server {
		o.CertificateAuthority = f.settings.GetString("certificate-authority")
	}
	if f.source("insecure-skip-tls-verify") >= server {
		o.InsecureSkipTLSVerify = f.settings.GetBool("insecure-skip-tls-verify")
	}
	return client.ResolveTarget(o)
}

// connection is a client and the namespace to work in.
type connection struct {
	*client.Client
	namespace string
	explicit  bool   // the namespace was given on the command line
	where     string // the flags that name this server and namespace again
}

// connect makes the client of one verb. It sends nothing yet.
func (f *factory) connect(verb string) (*connection, error) {
	target, err := f.target()
	if err != nil {
		return nil, err
	}
	o := client.Options{
		FieldManager:   f.settings.GetString("field-manager"),
		RequestTimeout: f.settings.GetDuration("request-timeout"),
		UserAgent:      "cmctl/" + version(),
		Warn:           func(message string) { fmt.Fprintf(f.Err, "warning: %s\n", message) },
	}
	if o.FieldManager == "" {
		o.FieldManager = "cmctl-" + verb
	}
	if f.settings.GetInt("verbose") > 0 {
		o.Trace = func(line string) { fmt.Fprintln(f.Err, line) }
	}
	c, err := client.New(target, o)
	if err != nil {
		return nil, err
	}
	namespace := f.settings.GetString("namespace")
	if namespace == "" {
		namespace = target.Namespace()
	}
	if namespace == "" {
		namespace = "default"
	}
	return &connection{Client: c, namespace: namespace, explicit: f.source("namespace") == 3, where: f.where()}, nil
}

// where repeats the flags that chose the server and the namespace, so that a
// command which a message proposes goes to the same place.
func (f *factory) where() string {
	text := ""
	for _, name := range []string{"server", "kubeconfig", "context", "namespace"} {
		if f.source(name) == 3 {
			text += " --" + name + "=" + f.settings.GetString(name)
		}
	}
	return text
}

// explain adds the object and the server to an error that lacks them.
func (c *connection) explain(namespace, name string, err error) error {
	if err == nil || errors.As(err, new(*conflictError)) {
		return err
	}
	return &objectError{object: c.ConfigMaps(namespace).Object(name).Object(), name: name, server: c.Target().String(), err: err}
}

// retryOptions are the caps that the settings give.
func (f *factory) retryOptions(observe func(retry.Event)) retry.Options {
	return retry.Options{MaxAttempts: f.settings.GetInt("max-attempts"), MaxElapsed: patience, Observe: observe}
}

// patience is how long a write is tried, whatever the server asks to wait.
const patience = 2 * time.Minute

// untried is what is left of several objects when the program is to end.
func untried(ctx context.Context, left int) error {
	if ctx.Err() == nil || left == 0 {
		return nil
	}
	return fmt.Errorf("%d more were not tried: %w", left, ctx.Err())
}

// colors are those for what is written to w.
func (f *factory) colors(w io.Writer) output.Palette {
	return output.NewPalette(f.settings.GetString("color"), w)
}

// say writes a line of result to stdout.
func (f *factory) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(f.Out, format+"\n", args...); err != nil {
		return fmt.Errorf("it is done, but the result can't be printed: %w", err)
	}
	return nil
}

// note tells the person something on stderr; stdout is for data alone.
func (f *factory) note(format string, args ...any) {
	fmt.Fprintf(f.Err, format+"\n", args...)
}
