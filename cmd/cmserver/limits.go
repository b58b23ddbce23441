package main

import (
	"errors"
	"fmt"
	"log/slog"
	"math"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/quota"
	"example.com/cmctl/pkg/server/reload"
)

// limitsConfig are the settings of how much may be asked of the server at once, and
// of how much a namespace may hold.
type limitsConfig struct {
	MaxReads                 int    `mapstructure:"max-requests-inflight"`
	MaxWrites                int    `mapstructure:"max-mutating-requests-inflight"`
	MaxInFlightPerUser       int    `mapstructure:"max-inflight-per-user"`
	MaxWatches               int    `mapstructure:"max-watches"`
	MaxWatchesPerUser        int    `mapstructure:"max-watches-per-user"`
	MaxBodyMemory            string `mapstructure:"max-body-memory"`
	MaxAnswerMemory          string `mapstructure:"max-answer-memory"`
	MaxConnections           int    `mapstructure:"max-connections"`
	MaxConnectionsPerAddress int    `mapstructure:"max-connections-per-address"`
	NamespaceMaxObjects      int64  `mapstructure:"namespace-max-objects"`
	NamespaceMaxBytes        string `mapstructure:"namespace-max-bytes"`
	QuotaDir                 string `mapstructure:"quota-dir"`
}

const (
	defaultMaxConnections = 16_384
	// most is beyond what any of the numbers could be meant to be.
	most = 1_000_000
	// leastBodyMemory is that of a few bodies of the largest size.
	leastBodyMemory = 8 << 20
	// leastAnswerMemory is that of a few answers of the largest object.
	leastAnswerMemory = 8 << 20
)

func addLimitsFlags(f *pflag.FlagSet) {
	f.Int("max-requests-inflight", server.DefaultMaxInFlight, "`N` requests that read may run at once; those beyond get 429")
	f.Int("max-mutating-requests-inflight", server.DefaultMaxMutatingInFlight,
		"`N` requests that write may run at once, half of them to one object; those beyond get 429")
	f.Int("max-inflight-per-user", 0, "`N` of the reads, and as many of the writes, may be one user's (default: half)")
	f.Int("max-watches", server.DefaultMaxWatches, "`N` watches may be open; those beyond get 429")
	f.Int("max-watches-per-user", 0, "`N` of them may be one user's (default: half)")
	f.String("max-body-memory", "64Mi", "`SIZE` of memory for the bodies of requests, beyond 4 KiB of each; one user has half")
	f.String("max-answer-memory", "256Mi", "`SIZE` of memory for answers that are being sent, beyond 16 KiB of each; one user has half")
	f.Int("max-connections", defaultMaxConnections, "`N` connections may be open; those beyond are closed at once")
	f.Int("max-connections-per-address", 0, "`N` of them may come from one address (default: half)")
	f.Int64("namespace-max-objects", 0, "`N` ConfigMaps that a namespace may hold for which no ResourceQuota says it (default: any number)")
	f.String("namespace-max-bytes", "", "`SIZE` that the ConfigMaps of a namespace may have together for which no ResourceQuota says it (default: any)")
	f.String("quota-dir", "", "`DIR` of ResourceQuota manifests; read again when they change")
}

func (c limitsConfig) validateLimits() error {
	_, bodies := size("max-body-memory", c.MaxBodyMemory, leastBodyMemory)
	_, answers := size("max-answer-memory", c.MaxAnswerMemory, leastAnswerMemory)
	_, bytes := c.defaults()
	return errors.Join(
		between("max-requests-inflight", c.MaxReads, 1, most),
		between("max-mutating-requests-inflight", c.MaxWrites, 1, most),
		between("max-inflight-per-user", c.MaxInFlightPerUser, 0, most),
		between("max-watches", c.MaxWatches, 1, most),
		between("max-watches-per-user", c.MaxWatchesPerUser, 0, most),
		between("max-connections", c.MaxConnections, 1, most),
		between("max-connections-per-address", c.MaxConnectionsPerAddress, 0, most),
		between("namespace-max-objects", c.NamespaceMaxObjects, 0, math.MaxInt32),
		bodies, answers, bytes,
	)
}

// size reads a number of bytes as Kubernetes writes it.
func size(flag, text string, least int64) (int64, error) {
	q, err := resource.ParseQuantity(text)
	n, whole := q.AsInt64()
	if err != nil || !whole || n < least {
		return 0, fmt.Errorf("--%s %q: must be a number of bytes such as 64Mi, at least %d", flag, text, least)
	}
	return n, nil
}

// defaults are the bounds of namespaces of which no manifest speaks.
func (c limitsConfig) defaults() (quota.Defaults, error) {
	d := quota.Defaults{Objects: quota.None, Bytes: quota.None}
	if c.NamespaceMaxObjects > 0 {
		d.Objects = c.NamespaceMaxObjects
	}
	var err error
	if c.NamespaceMaxBytes != "" {
		d.Bytes, err = size("namespace-max-bytes", c.NamespaceMaxBytes, 1)
	}
	return d, err
}

// addQuotas reads what namespaces may hold, and fails if there is anything in the
// manifests that is not understood.
func (p *protection) addQuotas(c limitsConfig, log *slog.Logger) error {
	d, err := c.defaults()
	if err != nil || c.QuotaDir == "" && d.Objects < 0 && d.Bytes < 0 {
		return err
	}
	if c.QuotaDir == "" {
		rules, err := quota.Load("", d)
		p.quotas = rules.For
		return err
	}
	rules, err := reload.New("the folder of --quota-dir", []string{c.QuotaDir}, log, func() (*quota.Rules, error) { return quota.Load(c.QuotaDir, d) })
	if err != nil {
		return fmt.Errorf("--quota-dir %s can't be used, mend it and start again:\n%w", c.QuotaDir, err)
	}
	keep(p, "quotas", rules)
	p.quotas = quota.Current(rules.Get)
	return nil
}

// limit makes a server keep to the limits.
func (c limitsConfig) limit(o *server.Options) {
	o.MaxInFlight, o.MaxMutatingInFlight, o.MaxInFlightPerUser = c.MaxReads, c.MaxWrites, c.MaxInFlightPerUser
	o.MaxWatches, o.MaxWatchesPerUser = c.MaxWatches, c.MaxWatchesPerUser
	// validateLimits has looked at both.
	o.MaxReceivedBytes, _ = size("max-body-memory", c.MaxBodyMemory, leastBodyMemory)
	o.MaxAnswerBytes, _ = size("max-answer-memory", c.MaxAnswerMemory, leastAnswerMemory)
}

// connections bounds those that are open.
func (c limitsConfig) connections(log *slog.Logger) *server.Connections {
	return server.NewConnections(openable(c.MaxConnections, log), c.MaxConnectionsPerAddress, log)
}

// keptFiles is how many files the process needs beside its connections, most of them
// for the store, which must never be short of them.
const keptFiles = 1500

// openable is how many connections can be open: no more than the system lets the
// process have, with what else it opens.
func openable(wanted int, log *slog.Logger) int {
	files, known := maxFiles()
	if !known || files >= uint64(wanted)+keptFiles {
		return wanted
	}
	n := max(int(files)-keptFiles, int(files)/2, 1)
	log.Warn("fewer connections can be open than --max-connections says: the system limits the files of this process; raise it (ulimit -n, LimitNOFILE)",
		"connections", n, "files", files)
	return n
}
