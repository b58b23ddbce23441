package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/cmd/internal/settings"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
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
	path       string         // of the settings file, empty if there can be none
	file       *settings.File // what it says
	now        func() time.Time
	noting     *sync.Mutex // held while a line goes to Err: many goroutines have something to tell
	helpFailed error       // why help could not be printed, which cobra has no way to return
}

func newFactory(s streams, i *interrupts) *factory {
	return &factory{streams: s, interrupts: i, settings: viper.New(), file: &settings.File{}, now: time.Now, noting: &sync.Mutex{}}
}

// settingNames are the plain settings that the settings file may hold. All but
// editor are global flags, and all are CMCTL_ variables too.
var settingNames = []string{"server", "kubeconfig", "in-cluster", "namespace",
	"token", "token-file", "client-certificate", "client-key",
	"certificate-authority", "insecure-skip-tls-verify", "tls-server-name",
	"max-attempts", "request-timeout", "field-manager", "color", "editor"}

// fileSettings are lists or mappings, and stand in the settings file alone.
var fileSettings = []string{checksSetting}

func (f *factory) addFlags(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringP("server", "s", "", "`address` of the server (default http://127.0.0.1:8080), or a,b,...: those of several\nof one store, each of which takes over when another is gone")
	flags.String("kubeconfig", "", "kubeconfig `file` that names the server and the credentials")
	flags.String("context", "", "`name` of one of cmctl's own contexts, or of one in the kubeconfig")
	flags.Bool("in-cluster", false, "use the server and the service account of the pod that cmctl runs in")
	flags.StringP("namespace", "n", "", "namespace to work in (default the context's, else \"default\")")
	flags.String("token", "", "bearer token for the server")
	flags.String("token-file", "", "`file` with the bearer token, read again as it changes")
	flags.String("client-certificate", "", "PEM `file` with the certificate that says who you are")
	flags.String("client-key", "", "PEM `file` with that certificate's key")
	flags.String("certificate-authority", "", "`file` with the certificates that the server's is checked against")
	flags.Bool("insecure-skip-tls-verify", false, "don't check the server's certificate")
	flags.String("tls-server-name", "", "`name` that the server's certificate must be for, if not the one in its address")
	flags.String("as", "", "`user` to act as, if the server lets you")
	flags.StringArray("as-group", nil, "`group` to act as a member of, with --as; may be repeated")
	flags.String("as-uid", "", "`uid` to act with, with --as")
	flags.Int("max-attempts", 5, "how often a write is tried when others write the same object")
	flags.Duration("request-timeout", 30*time.Second, "how long one request may take")
	flags.String("field-manager", "", "name under which the server records your changes (default cmctl-VERB)")
	flags.String("config", "", "settings `file` (default cmctl/config.yaml in your configuration folder)")
	flags.String("color", "auto", "`when` to use colours: auto (on a terminal, unless NO_COLOR is set), always or never")
	flags.IntP("verbose", "v", 0, "show the requests on stderr: 1 and above each in a line, 7 with headers,\n8 with bodies; credentials and data are masked")
	flags.Lookup("verbose").NoOptDefVal = "1"
}

// load reads the settings: flag, then variable, then file, then default.
func (f *factory) load() error {
	if err := f.bind(); err != nil {
		return err
	}
	if err := f.readFile(); err != nil {
		return err
	}
	return f.checkSettings()
}

// bind takes flags and variables, and finds out where the file is.
func (f *factory) bind() error {
	f.settings.SetEnvPrefix("CMCTL")
	f.settings.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	f.settings.AutomaticEnv()
	if err := f.settings.BindPFlags(f.flags); err != nil {
		return err
	}
	f.path = f.settings.GetString("config")
	if f.path == "" {
		// Without a home there is no file.
		if folder, err := os.UserConfigDir(); err == nil {
			f.path = filepath.Join(folder, "cmctl", "config.yaml")
		}
	}
	return nil
}

// readFile reads the settings file, which must be there only if it was named.
func (f *factory) readFile() error {
	if f.path == "" {
		return nil
	}
	file, err := settings.Read(f.path)
	if errors.Is(err, os.ErrNotExist) && f.settings.GetString("config") == "" {
		return nil
	}
	if err == nil {
		err = knownSettings(file)
	}
	if err != nil {
		return usagef("settings file %s: %v", f.path, err)
	}
	if file.Secret() && settings.Exposed(f.path) {
		f.note("warning: %s holds a token and others may read it: chmod 600 %s", f.path, f.path)
	}
	f.file = file
	return f.settings.MergeConfigMap(file.Plain)
}

func knownSettings(file *settings.File) error {
	for key, value := range file.Plain {
		if slices.Contains(fileSettings, key) {
			continue
		}
		switch value.(type) {
		case map[string]any, []any:
			return fmt.Errorf("the setting %q can't be a list or a mapping", key)
		}
		if key == "context" {
			return fmt.Errorf("unknown setting %q; the context to use is %s", key, settings.CurrentContext)
		}
		if !slices.Contains(settingNames, key) {
			return fmt.Errorf("unknown setting %q; known are %s", key, strings.Join(slices.Concat(settingNames, fileSettings), ", "))
		}
	}
	return nil
}

func (f *factory) checkSettings() error {
	for _, name := range []string{"server", "kubeconfig", "context", "namespace"} {
		// Very likely a shell's variable that isn't set. What is meant is then not
		// for cmctl to guess.
		if f.source(name) == onCommandLine && f.settings.GetString(name) == "" {
			return usagef("--%s is given, and is empty", name)
		}
	}
	for _, name := range settingNames {
		if f.source(name) == nowhere {
			continue
		}
		if err := checkSetting(name, f.settings.GetString(name)); err != nil {
			return err
		}
	}
	return nil
}

// checkSetting refuses a value that a setting can't have.
func checkSetting(name, value string) error {
	switch name {
	case "max-attempts":
		if n, err := strconv.Atoi(value); err != nil || n < 1 {
			return usagef("the setting max-attempts must be a number of at least 1, not %q", value)
		}
	case "request-timeout":
		// By the text: viper would read a bare number as nanoseconds.
		if d, err := time.ParseDuration(value); err != nil || d <= 0 {
			return usagef("the setting request-timeout must be a positive duration such as 30s, not %q", value)
		}
	case "namespace":
		if problems := validation.IsDNS1123Label(value); len(problems) > 0 && value != "" {
			return usagef("%q can't be a namespace: %s", value, strings.Join(problems, "; "))
		}
	case "color":
		if !slices.Contains(output.ColorModes, value) {
			return usagef("the setting color must be one of %s, not %q", strings.Join(output.ColorModes, ", "), value)
		}
	case "in-cluster", "insecure-skip-tls-verify":
		if _, err := strconv.ParseBool(value); err != nil {
			return usagef("the setting %s must be true or false, not %q", name, value)
		}
	}
	return nil
}

// rank is how close to the person a setting was given.
type rank int

const (
	nowhere rank = iota
	inFile
	inVariable
	onCommandLine
)

// source ranks where a setting was given.
func (f *factory) source(name string) rank {
	if flag := f.flags.Lookup(name); flag != nil && flag.Changed {
		return onCommandLine
	}
	if os.Getenv(variable(name)) != "" {
		return inVariable
	}
	if _, ok := f.file.Plain[name]; ok {
		return inFile
	}
	return nowhere
}

// variable is the environment's name for a setting.
func variable(setting string) string {
	return "CMCTL_" + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

// connection is a client and the namespace to work in.
type connection struct {
	*client.Client
	namespace string
	manager   string // the field manager of its writes
	dry       bool   // the server checks writes and stores none
	explicit  bool   // the namespace was given on the command line
	where     string // the flags that name this server and namespace again
	host      string // those of them that name the server
}

// connect makes the client of one verb. It sends nothing yet.
func (f *factory) connect(verb string) (*connection, error) {
	o, err := f.target()
	if err != nil {
		return nil, err
	}
	conn, err := f.dial(verb, o)
	if err != nil {
		return nil, err
	}
	conn.namespace, conn.explicit = f.workNamespace(o), f.source("namespace") == onCommandLine
	conn.host = f.where(o)
	conn.where = conn.host
	if f.plugin() || conn.explicit {
		conn.where += flagText("namespace", conn.namespace)
	}
	return conn, nil
}

// connectDry is connect, for writes that the server shall not store if dry is
// set.
func (f *factory) connectDry(verb string, dry bool) (*connection, error) {
	conn, err := f.connect(verb)
	if err == nil && dry {
		conn.storeNothing()
	}
	return conn, err
}

// storeNothing makes dry runs of the writes.
func (c *connection) storeNothing() { c.Client, c.dry = c.DryRun(), true }

// in is the same connection, to work in that namespace.
func (c *connection) in(namespace string) *connection {
	if namespace == c.namespace {
		return c
	}
	other := *c
	other.namespace = namespace
	other.where = c.host + flagText("namespace", namespace)
	return &other
}

// connectTo makes a client for another server, that of a context, beside the
// one that the settings name. Its namespace is the context's.
func (f *factory) connectTo(verb, context string) (*connection, error) {
	o, err := f.contextTarget(context, onCommandLine)
	if err != nil {
		return nil, err
	}
	conn, err := f.dial(verb, o)
	if err != nil {
		return nil, err
	}
	conn.namespace = cmp.Or(o.namespace, "default")
	conn.host = flagText("context", context)
	conn.where = conn.host + flagText("namespace", conn.namespace)
	return conn, nil
}

func (f *factory) dial(verb string, o *destination) (*connection, error) {
	manager := cmp.Or(f.settings.GetString("field-manager"), "cmctl-"+verb)
	trace, detail := f.trace()
	c, err := client.New(o.Target, client.Options{
		FieldManager:   manager,
		RequestTimeout: f.settings.GetDuration("request-timeout"),
		Reads:          f.reads(),
		UserAgent:      "cmctl/" + version(),
		Moved:          f.moved,
		Warn:           func(message string) { f.note("warning: %s", output.Visible(message, "")) },
		Trace:          trace,
		TraceDetail:    detail,
	})
	if err != nil {
		return nil, &targetError{err} // certificates that can't be read, and the like
	}
	return &connection{Client: c, manager: manager}, nil
}

// moved tells that another one of several servers answers from now on.
func (f *factory) moved(m client.Move) {
	f.note("%s: %s; going on with %s", m.From, reason(m.Err), m.To)
}

// trace shows requests, if that is asked for. The levels are kubectl's.
func (f *factory) trace() (func(lines string), client.Detail) {
	level, detail := f.settings.GetInt("verbose"), client.TraceRequests
	switch {
	case level < 1:
		return nil, detail
	case level >= 8:
		detail = client.TraceBodies
	case level >= 7:
		detail = client.TraceHeaders
	}
	return func(lines string) { f.note("%s", lines) }, detail
}

// explain adds the object and the server to an error that lacks them.
func (c *connection) explain(namespace, name string, err error) error {
	if err == nil || errors.As(err, new(*conflictError)) {
		return err
	}
	if stale(err) {
		err = newStaleError(c.ConfigMaps(namespace).Object(name).Object(), name, c.Target().String(), err)
	}
	return &objectError{
		object: c.ConfigMaps(namespace).Object(name).Object(), name: name, server: c.Target().String(),
		where: c.whereIn(namespace), host: c.host, err: err,
	}
}

// whereIn is where for another namespace.
func (c *connection) whereIn(namespace string) string {
	if namespace == c.namespace {
		return c.where
	}
	return c.where + flagText("namespace", namespace)
}

// explainList is explain for what concerns all objects of a namespace, or of all
// namespaces if it is empty.
func (c *connection) explainList(namespace string, err error) error {
	if err == nil || errors.As(err, new(*conflictError)) {
		return err
	}
	object := "configmaps in all namespaces"
	if namespace != "" {
		object = "configmaps in namespace " + strconv.Quote(namespace)
	}
	return &objectError{object: object, server: c.Target().String(), where: c.where, host: c.host, err: err}
}

// explainServer adds the server to the error of a question to it.
func (c *connection) explainServer(question string, err error) error {
	if err == nil {
		return nil
	}
	return &objectError{object: question, server: c.Target().String(), where: c.where, host: c.host, err: err}
}

// retryOptions are the caps that the settings give.
func (f *factory) retryOptions(observe func(retry.Event)) retry.Options {
	return f.capped(f.settings.GetInt("max-attempts"), patience, observe)
}

// capped are caps under which one answer that never comes takes nothing from the time
// for writing, and what became of its write is found out even if the first question
// about it hangs too.
func (f *factory) capped(attempts int, within time.Duration, observe func(retry.Event)) retry.Options {
	request := f.settings.GetDuration("request-timeout")
	return retry.Options{MaxAttempts: attempts, MaxElapsed: within + request, MaxSettling: 2 * request, Observe: observe}
}

// reads are the caps of reads outside of a loop, each with a line for every wait. A read
// can be made more often than a write without harm.
func (f *factory) reads() *retry.Options {
	o := f.retryOptions(func(e retry.Event) {
		if e.Step == retry.Waiting {
			f.note("%s; trying again in %s", waitingFor(e.Err), e.Wait.Round(time.Millisecond))
		}
	})
	if f.source("max-attempts") == nowhere {
		o.MaxAttempts = 10
	}
	return &o
}

// readOne reads an object, and tries again where that helps.
func (f *factory) readOne(ctx context.Context, object retry.Target[types.Document]) (types.Document, error) {
	return retry.Read(ctx, object, f.retryOptions(f.progress(object)))
}

// patience is how long a write is tried, whatever the server asks to wait.
const patience = 2 * time.Minute

// persistent are the caps of the verbs that scripts run side by side, on one
// object perhaps: fifty attempts within half a minute unless told otherwise.
func (f *factory) persistent(observe func(retry.Event)) retry.Options {
	if f.source("max-attempts") == nowhere {
		return f.capped(50, 30*time.Second, observe)
	}
	return f.retryOptions(observe)
}

// untried is what is left of several objects when the program is to end.
func untried(ctx context.Context, left int) error {
	if ctx.Err() == nil || left == 0 {
		return nil
	}
	return fmt.Errorf("%d more were not tried: %w", left, endOf(ctx))
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
	f.noting.Lock()
	defer f.noting.Unlock()
	fmt.Fprintf(f.Err, format+"\n", args...)
}
