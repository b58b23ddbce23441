package main

import (
	"path/filepath"
	"reflect"
	"strings"

	"example.com/cmctl/cmd/internal/settings"
	"github.com/spf13/cobra"
)

type setContextOptions struct {
	*factory
	current bool
}

func newSetContext(f *factory) *cobra.Command {
	o := &setContextOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "set-context {NAME | --current}",
		Short: "Make a context, or change one",
		Long: `Make a context, or change one.

The context holds what the flags say that this command is given: the server
(--server, or --kubeconfig with or without --context, or --in-cluster), the
namespace, and credentials. A change leaves alone what no flag names; an empty
value takes it out. A context that is led to another server loses the
credentials it had for the old one.`,
		Example: `  cmctl config set-context lab --server=http://127.0.0.1:8080 --namespace=team-a
  cmctl config set-context prod --kubeconfig=$HOME/.kube/config --context=prod-eu
  cmctl config set-context shop --server=https://cm.example --token-file=$HOME/.shop-token
  cmctl config set-context --current --namespace=team-b`,
		Args: func(_ *cobra.Command, args []string) error {
			if o.current == (len(args) > 0) || len(args) > 1 {
				return usagef("set-context takes one NAME, or --current")
			}
			return nil
		},
		ValidArgsFunction: f.completeOwnContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			return o.run(strings.Join(args, ""))
		},
	}
	cmd.Flags().BoolVar(&o.current, "current", false, "change the current context")
	return cmd
}

func (o *setContextOptions) run(name string) error {
	verb := ""
	err := o.editSettings(func(d *settings.Document) error {
		file, err := d.File()
		if err != nil {
			return err
		}
		if o.current {
			if name = file.Current; name == "" {
				return usagef("no context is current; choose one with 'cmctl config use-context'")
			}
		}
		before, there := file.Context(name)
		before.Name = name
		after, err := o.changed(before)
		if err != nil {
			return err
		}
		verb = "changed"
		if !there {
			verb = "created"
		}
		return d.SetContext(after)
	})
	if err != nil {
		return err
	}
	return o.say("context %q %s", name, verb)
}

// changed is the context with what the flags say, if that can be used.
func (o *setContextOptions) changed(before settings.Context) (settings.Context, error) {
	after := before
	if err := o.takeServer(&after); err != nil {
		return after, err
	}
	if !after.SameServer(before) {
		kept, bare := after, settings.Context{Name: after.Name, Namespace: after.Namespace,
			Server: after.Server, Kubeconfig: after.Kubeconfig, KubeContext: after.KubeContext, InCluster: after.InCluster}
		if !reflect.DeepEqual(kept, bare) {
			o.note("note: the credentials of context %q were for another server, and are dropped", after.Name)
		}
		after = bare
	}
	if err := o.takeCredentials(&after); err != nil {
		return after, err
	}
	if after.Server == "" && after.Kubeconfig == "" && !after.InCluster {
		return after, usagef("context %q needs a server: give --server, --kubeconfig or --in-cluster", after.Name)
	}
	if !after.InCluster { // which is known in a pod alone
		if _, err := o.ownTarget(after, onCommandLine); err != nil {
			return after, err
		}
	}
	return after, nil
}

// takeServer takes the flags that say where the server is.
func (o *setContextOptions) takeServer(c *settings.Context) error {
	flags := o.chosen(onCommandLine)
	if flags.context != "" && flags.kubeconfig == "" && flags.server == "" && c.Kubeconfig == "" {
		return usagef("--context names a context of a kubeconfig; say with --kubeconfig of which")
	}
	if err := flags.check(); err != nil {
		return err
	}
	switch {
	case flags.server != "", flags.inCluster:
		c.Server, c.InCluster, c.Kubeconfig, c.KubeContext = settings.Addresses(flags.server), flags.inCluster, "", ""
	case flags.kubeconfig != "":
		file, err := filepath.Abs(flags.kubeconfig)
		if err != nil {
			return err
		}
		c.Server, c.InCluster, c.Kubeconfig, c.KubeContext = "", false, file, flags.context
	case flags.context != "":
		c.KubeContext = flags.context
	}
	return nil
}

// takeCredentials takes the other flags that a context can hold.
func (o *setContextOptions) takeCredentials(c *settings.Context) error {
	given := func(name string) bool { return o.source(name) == onCommandLine }
	if given("namespace") {
		c.Namespace = o.settings.GetString("namespace")
		if err := checkSetting("namespace", c.Namespace); err != nil {
			return err
		}
	}
	// What replaces one thing takes out what says the opposite.
	if given("token") || given("token-file") {
		c.Token, c.TokenFile = "", ""
	}
	if given("certificate-authority") || given("insecure-skip-tls-verify") {
		c.CertificateAuthority, c.InsecureSkipTLSVerify = "", false
	}
	for name, field := range map[string]*string{
		"token": &c.Token, "token-file": &c.TokenFile, "client-certificate": &c.ClientCertificate, "client-key": &c.ClientKey,
		"certificate-authority": &c.CertificateAuthority, "tls-server-name": &c.TLSServerName,
	} {
		if !given(name) {
			continue
		}
		*field = o.settings.GetString(name)
		if settings.IsPath(name) && *field != "" {
			path, err := filepath.Abs(*field)
			if err != nil {
				return err
			}
			*field = path
		}
	}
	if given("insecure-skip-tls-verify") {
		c.InsecureSkipTLSVerify = o.settings.GetBool("insecure-skip-tls-verify")
	}
	if given("as") || given("as-group") || given("as-uid") {
		c.As, _ = o.flags.GetString("as")
		c.AsGroups, _ = o.flags.GetStringArray("as-group")
		c.AsUID, _ = o.flags.GetString("as-uid")
	}
	return nil
}
