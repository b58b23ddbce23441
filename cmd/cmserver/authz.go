package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/authz"
	"example.com/cmctl/pkg/server/reload"
)

const rbacDirFlag = "rbac-dir"

// authzConfig are the settings about who may do what.
type authzConfig struct {
	RBACDir string `mapstructure:"rbac-dir"`
}

// addAuthzFlags declares them.
func addAuthzFlags(f *pflag.FlagSet) {
	f.String(rbacDirFlag, "", "`DIR` of manifests that say who may do what: Role, ClusterRole, RoleBinding and ClusterRoleBinding; read again when they change (default: everybody may do everything)")
}

// checkRBACDir refuses a folder that is given, and is empty text: what is meant to
// close the server must not leave it open.
func (c authzConfig) checkRBACDir(given bool) error {
	if _, inVariable := os.LookupEnv("CMSERVER_RBAC_DIR"); c.RBACDir == "" && (given || inVariable) {
		return errors.New("--rbac-dir is given and empty, which would let everybody do everything: name a folder, or leave it out")
	}
	return nil
}

// access are the rules of --rbac-dir, as they are in force. Nil are no rules.
type access struct{ rules *reload.Value[*authz.Rules] }

// loadAccess reads the rules, and fails if there is anything in them that is not
// understood: what is meant can't be guessed.
func (c authzConfig) loadAccess(log *slog.Logger) (*access, error) {
	if c.RBACDir == "" {
		return nil, nil
	}
	rules, err := reload.New("the folder of --rbac-dir", []string{c.RBACDir}, log, func() (*authz.Rules, error) {
		rules, err := authz.Load(c.RBACDir)
		if err != nil {
			return nil, err
		}
		for _, w := range rules.Warnings {
			log.Warn("rules of access", "warning", w)
		}
		return rules, nil
	})
	if err != nil {
		return nil, fmt.Errorf("--rbac-dir %s can't be used, mend it and start again:\n%w", c.RBACDir, err)
	}
	return &access{rules}, nil
}

// applyTo makes a server obey the rules.
func (a *access) applyTo(o *server.Options) {
	if a == nil {
		return
	}
	o.Authorizer = authz.Current(a.rules.Get)
	o.Concerns = append(o.Concerns, server.Concern{Name: "rbac", Look: a.rules.Err})
}

// follow reads the rules again when they change, until ctx ends.
func (a *access) follow(ctx context.Context) {
	if a != nil {
		a.rules.Run(ctx)
	}
}
