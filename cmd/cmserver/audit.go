package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/audit"
	"example.com/cmctl/pkg/server/reload"
)

const (
	auditPathFlag   = "audit-log-path"
	auditPolicyFlag = "audit-policy-file"

	auditBlocking = "blocking"
	auditStrict   = "blocking-strict"

	defaultAuditSize = 100
)

// auditConfig are the settings about the log of who did what.
type auditConfig struct {
	AuditPath      string `mapstructure:"audit-log-path"`
	AuditPolicy    string `mapstructure:"audit-policy-file"`
	AuditMode      string `mapstructure:"audit-log-mode"`
	AuditMaxSize   int    `mapstructure:"audit-log-maxsize"`
	AuditMaxBackup int    `mapstructure:"audit-log-maxbackup"`
	AuditMaxAge    int    `mapstructure:"audit-log-maxage"`
	AuditCompress  bool   `mapstructure:"audit-log-compress"`
}

// addAuditFlags declares them, under kube-apiserver's names.
func addAuditFlags(f *pflag.FlagSet) {
	f.String(auditPathFlag, "", "`FILE` that tells who did what, as events of audit.k8s.io/v1, one a line; - is stdout (default: it is not logged)")
	f.String(auditPolicyFlag, "", "`FILE` of a Policy of audit.k8s.io/v1 that says what is logged; read again when it changes (default: every write, by its metadata)")
	f.String("audit-log-mode", auditBlocking, "what becomes of requests that can't be logged: `blocking|blocking-strict` (blocking: they are served; blocking-strict: they are refused)")
	f.Int("audit-log-maxsize", defaultAuditSize, "`MB` that the audit log may have before it is rotated; 0: somebody else rotates it, and sends SIGHUP")
	f.Int("audit-log-maxbackup", 0, "`N` rotated files of the audit log are kept; 0 keeps all")
	f.Int("audit-log-maxage", 0, "`DAYS` that rotated files of the audit log are kept; 0 keeps them for ever")
	f.Bool("audit-log-compress", false, "compress rotated files of the audit log")
}

func (c auditConfig) validateAudit() error {
	var errs []error
	if !slices.Contains([]string{auditBlocking, auditStrict}, c.AuditMode) {
		errs = append(errs, fmt.Errorf("--audit-log-mode %q: must be one of %s, %s", c.AuditMode, auditBlocking, auditStrict))
	}
	errs = append(errs,
		between("audit-log-maxsize", c.AuditMaxSize, 0, 1<<20),
		between("audit-log-maxbackup", c.AuditMaxBackup, 0, 1<<20),
		between("audit-log-maxage", c.AuditMaxAge, 0, 1<<16))
	rotates := c.AuditMaxBackup != 0 || c.AuditMaxAge != 0 || c.AuditCompress
	switch {
	case c.AuditPath == "" && c.AuditPolicy != "":
		errs = append(errs, errors.New("--audit-policy-file says what is logged: add --audit-log-path, which says where"))
	case c.AuditPath == "" && (rotates || c.AuditMaxSize != defaultAuditSize || c.AuditMode == auditStrict):
		errs = append(errs, errors.New("the settings --audit-log-… are for an audit log: add --audit-log-path, which says where it is"))
	case c.AuditPath == "-" && (rotates || c.AuditMaxSize != defaultAuditSize):
		errs = append(errs, errors.New("--audit-log-path - is stdout, which is not rotated: leave out --audit-log-maxsize, -maxbackup, -maxage and -compress"))
	case c.AuditMaxSize == 0 && rotates:
		errs = append(errs, errors.New("--audit-log-maxsize 0 leaves the rotation to somebody else: leave out --audit-log-maxbackup, -maxage and -compress, or set a size"))
	}
	return errors.Join(errs...)
}

// auditing is the audit log, and what holds for it. Nil is none.
type auditing struct {
	log    *audit.Log
	policy *reload.Value[*audit.Policy] // nil: the default
	strict bool
	logger *slog.Logger
	told   chan os.Signal // SIGHUP: the file is another
}

// openAudit opens the log, and reads the policy.
func (c auditConfig) openAudit(stdout io.Writer, log *slog.Logger) (*auditing, error) {
	if c.AuditPath == "" {
		return nil, nil
	}
	a := &auditing{strict: c.AuditMode == auditStrict, logger: log, told: make(chan os.Signal, 1)}
	var err error
	if c.AuditPolicy != "" {
		a.policy, err = reload.New("the policy of --audit-policy-file", []string{c.AuditPolicy}, log, func() (*audit.Policy, error) {
			return audit.Load(c.AuditPolicy, a.strict)
		})
		if err != nil {
			return nil, fmt.Errorf("--audit-policy-file can't be used, mend it and start again: %w", err)
		}
	}
	if c.AuditPath == "-" {
		a.log = audit.To(stdout, log)
		return a, nil
	}
	a.log, err = audit.Open(audit.Options{Path: c.AuditPath, MaxSize: c.AuditMaxSize, MaxBackups: c.AuditMaxBackup,
		MaxAge: c.AuditMaxAge, Compress: c.AuditCompress, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("--audit-log-path can't be used, choose another or make its folder: %w", err)
	}
	// From now on: who rotates the log does not ask whether the server is ready, and the
	// signal would end it.
	signal.Notify(a.told, syscall.SIGHUP)
	return a, nil
}

// applyTo makes a server write the log.
func (a *auditing) applyTo(o *server.Options) {
	if a == nil {
		return
	}
	usual := audit.DefaultPolicy(a.strict)
	o.Audit = &audit.Recorder{Sink: a.log, Policy: func() *audit.Policy { return usual }, Strict: a.strict}
	o.Concerns = append(o.Concerns, server.Concern{Name: "audit", Look: a.log.Err})
	if a.policy != nil {
		o.Audit.Policy = a.policy.Get
		o.Concerns = append(o.Concerns, server.Concern{Name: "audit-policy", Look: a.policy.Err})
	}
}

// follow reads the policy again when it changes, and goes on in the file that is
// there when it is told to, or the other was taken away, until ctx ends.
func (a *auditing) follow(ctx context.Context) {
	if a == nil {
		return
	}
	if a.policy != nil {
		done := make(chan struct{})
		go func() { defer close(done); a.policy.Run(ctx) }()
		defer func() { <-done }()
	}
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			a.log.Look()
		case <-a.told:
			if err := a.log.Reopen(); err != nil {
				a.logger.Error("the audit log was not opened again", "err", err)
				continue
			}
			a.logger.Info("the audit log was opened again")
		}
	}
}

// close is for when nothing is served any more.
func (a *auditing) close() {
	if a == nil {
		return
	}
	signal.Stop(a.told)
	if err := a.log.Close(); err != nil {
		a.logger.Warn("the audit log was not closed", "err", err)
	}
}
