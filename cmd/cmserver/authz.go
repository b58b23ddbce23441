package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

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

// addRules adds what decides who may do what, and fails if there is anything in the
// rules that is not understood: what is meant can't be guessed. Without rules whoever
// is known may do everything, and where nobody is asked everybody.
func (p *protection) addRules(c config, log *slog.Logger) error {
	if c.RBACDir == "" {
		if c.asks() {
			log.Warn("everyone who is authenticated may do everything: there are no rules of access (--rbac-dir)")
			p.authorizer = authz.Authenticated{}
		}
		return nil
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
		return fmt.Errorf("--rbac-dir %s can't be used, mend it and start again:\n%w", c.RBACDir, err)
	}
	if !c.authenticates() && c.onTCP() {
		log.Warn("nobody is asked who they are but on unix sockets, so the rules of access (--rbac-dir) judge everyone else as system:anonymous: " +
			"add " + authFlags)
	}
	keep(p, "rbac", rules)
	p.authorizer = authz.Current(rules.Get)
	return nil
}
