package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/inject"
)

// config are all settings. The names are those of the flags, and of the keys in
// the configuration file.
type config struct {
	limitsConfig `mapstructure:",squash"`
	listenConfig `mapstructure:",squash"`
	storeConfig  `mapstructure:",squash"`

	UnconditionalPut string        `mapstructure:"unconditional-put"`
	StrictNamespaces bool          `mapstructure:"strict-namespaces"`
	InlineValueSize  int           `mapstructure:"inline-value-size"`
	HistoryLimit     int           `mapstructure:"history-limit"`
	HistoryWindow    time.Duration `mapstructure:"history-window"`
	DeletedRetention time.Duration `mapstructure:"deleted-retention"`
	DeletedLimit     int           `mapstructure:"deleted-limit"`
	RequestTimeout   time.Duration `mapstructure:"request-timeout"`
	ShutdownTimeout  time.Duration `mapstructure:"shutdown-timeout"`
	LogFormat        string        `mapstructure:"log-format"`
	Verbose          bool          `mapstructure:"verbose"`
	Inject           string        `mapstructure:"inject"`
	InjectAnywhere   bool          `mapstructure:"inject-anywhere"`

	authnConfig `mapstructure:",squash"`
	authzConfig `mapstructure:",squash"`
	auditConfig `mapstructure:",squash"`

	faults inject.Spec // what Inject says
	audit  *auditing   // what auditConfig says; nil: nothing is logged
}

// configFlag names the file, and so can't be in it.
const configFlag = "config"

// addFlags declares every setting with its default.
func addFlags(f *pflag.FlagSet) {
	addListenFlags(f)
	addStoreFlags(f)
	f.String("unconditional-put", string(server.PutNever),
		"whether a PUT without resourceVersion is let through: `never|helm|always` (helm: for Helm's release records)")
	f.Bool("strict-namespaces", false, "refuse objects in a namespace that was not created before, as Kubernetes does")
	f.Int("inline-value-size", 4096, "`BYTES` up to which objects are held in memory; larger ones are read from disk")
	f.Int("history-limit", 10, "`N` versions of each object that are kept at least, 1 to 1,000")
	f.Duration("history-window", minHistoryWindow, "how long every change is kept, for watches that go on and lists that are continued, 5m to 24h")
	f.Duration("deleted-retention", 24*time.Hour, "how long the last versions of a deleted object are kept, to bring it back; up to 8784h, 0 keeps none")
	f.Int("deleted-limit", 10_000, "`N` deleted objects of which versions are kept at most, 1 to 1,000,000")
	f.Duration("request-timeout", server.DefaultRequestTimeout, "how long one request may take")
	addLimitsFlags(f)
	f.Duration("shutdown-timeout", 30*time.Second, "how long requests under way may take when the server stops")
	addAuthzFlags(f)
	addAuditFlags(f)
	f.String("inject", "", "misbehave on purpose, for the tests of clients: `FAULTS` such as conflict=10%,latency=50ms,lost=1%,seed=42")
	f.Bool("inject-anywhere", false, "allow --inject on an address that others can reach")
	f.String("log-format", "text", "how the log is written: `text|json`")
	f.BoolP("verbose", "v", false, "log reads too, and what the store does")
	addAuthnFlags(f)
	f.String(configFlag, "", "YAML `FILE` of settings (default: cmserver/config.yaml in the user's configuration folder, if it is there)")
}

// loadConfig collects the settings of a server, and refuses those with which it
// can't run.
func loadConfig(flags *pflag.FlagSet) (config, error) {
	c, err := readConfig(flags)
	if err != nil {
		return config{}, err
	}
	return c, c.validate()
}

// readConfig collects the settings: flag, then CMSERVER_ variable, then file,
// then default.
func readConfig(flags *pflag.FlagSet) (config, error) {
	v := viper.New()
	v.SetEnvPrefix(variablePrefix)
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	if err := v.BindPFlags(flags); err != nil {
		return config{}, err
	}
	file, path, err := readFile(v, v.GetString(configFlag), flags)
	if err != nil {
		return config{}, err
	}
	if err := checkGiven(flags, file, path); err != nil {
		return config{}, err
	}
	if err := checkTypes(v, flags); err != nil {
		return config{}, err
	}
	var c config
	if err := v.Unmarshal(&c); err != nil {
		return config{}, fmt.Errorf("a setting has the wrong type: %w", err)
	}
	if c.faults, err = inject.Parse(c.Inject); err != nil {
		return config{}, fmt.Errorf("--inject: %w", err)
	}
	return c, c.locate(flags, v)
}

// checkTypes tries every setting as its flag would be read, wherever it comes
// from: a bare number is no duration, and the name of a wrong one is told.
func checkTypes(v *viper.Viper, flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if !isSetting(f) {
			return
		}
		var err error
		text := v.GetString(f.Name)
		switch f.Value.Type() {
		case "duration":
			_, err = time.ParseDuration(text)
		case "bool":
			_, err = strconv.ParseBool(text)
		case "int", "int64":
			_, err = strconv.ParseInt(text, 0, 64)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("the setting %s can't be %q: it takes a %s", f.Name, text, example[f.Value.Type()]))
		}
	})
	return errors.Join(errs...)
}

// example says what a setting of a type takes.
var example = map[string]string{"duration": "duration such as 30s", "bool": "true or false", "int": "number", "int64": "number"}

// readFile reads the configuration file, and returns where it is and what it says, by
// keys. Only one that was named must exist.
func readFile(v *viper.Viper, path string, flags *pflag.FlagSet) (content map[string]any, found string, err error) {
	named := path != ""
	if !named {
		dir, err := os.UserConfigDir()
		if err != nil {
			return nil, "", nil // no home, no file
		}
		path = filepath.Join(dir, "cmserver", "config.yaml")
	}
	text, err := os.ReadFile(path) // once: it may be a pipe
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, "", nil
	}
	v.SetConfigType("yaml")
	if err == nil {
		err = v.ReadConfig(bytes.NewReader(text))
	}
	if err == nil {
		err = checkKeys(text, flags)
	}
	said := map[string]any{}
	if err == nil {
		err = yaml.Unmarshal(text, &said)
	}
	if err != nil {
		return nil, "", fmt.Errorf("configuration file %s: %w", path, err)
	}
	content = map[string]any{}
	for key, value := range said { // whose case viper does not look at either
		content[strings.ToLower(key)] = value
	}
	return content, path, nil
}

// checkKeys refuses settings that there are not: a misspelt one would silently
// leave its default.
func checkKeys(text []byte, flags *pflag.FlagSet) error {
	file := viper.New()
	file.SetConfigType("yaml")
	if err := file.ReadConfig(bytes.NewReader(text)); err != nil {
		return err
	}
	var known []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != configFlag && isSetting(f) {
			known = append(known, f.Name)
		}
	})
	for _, key := range file.AllKeys() {
		if !slices.Contains(known, key) {
			return fmt.Errorf("unknown setting %q; the settings are %s", key, strings.Join(known, ", "))
		}
	}
	return nil
}

// The bounds of what is kept. Clients rely on the shortest window: one that was away
// for less goes on where it was. The others keep disk and memory finite.
const (
	minHistoryWindow    = 5 * time.Minute
	maxHistoryWindow    = 24 * time.Hour
	maxHistoryLimit     = 1000
	maxDeletedRetention = 366 * 24 * time.Hour
	maxDeletedLimit     = 1_000_000
)

// between refuses a setting outside its bounds.
func between[T cmp.Ordered](flag string, value, least, most T) error {
	if least <= value && value <= most {
		return nil
	}
	return fmt.Errorf("--%s %v: must be between %v and %v", flag, value, least, most)
}

func (c config) validate() error {
	oneOf := func(flag, value string, allowed ...string) error {
		if slices.Contains(allowed, value) {
			return nil
		}
		return fmt.Errorf("--%s %q: must be one of %s", flag, value, strings.Join(allowed, ", "))
	}
	positive := func(flag string, ok bool) error {
		if ok {
			return nil
		}
		return fmt.Errorf("--%s: must be above 0", flag)
	}
	return errors.Join(
		oneOf("log-format", c.LogFormat, "text", "json"),
		oneOf("unconditional-put", c.UnconditionalPut,
			string(server.PutNever), string(server.PutHelm), string(server.PutAlways)),
		positive("request-timeout", c.RequestTimeout > 0),
		positive("shutdown-timeout", c.ShutdownTimeout > 0),
		c.validateLimits(),
		between("history-limit", c.HistoryLimit, 1, maxHistoryLimit),
		between("history-window", c.HistoryWindow, minHistoryWindow, maxHistoryWindow),
		between("deleted-retention", c.DeletedRetention, 0, maxDeletedRetention),
		between("deleted-limit", c.DeletedLimit, 1, maxDeletedLimit),
		positive("inline-value-size", c.InlineValueSize > 0),
		c.validateStore(),
		c.validateListen(),
		c.validateAuthn(),
		c.validateAudit(),
	)
}

// logger writes what the server does, as chosen.
func (c config) logger(w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if c.Verbose {
		o.Level = slog.LevelDebug
	}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
