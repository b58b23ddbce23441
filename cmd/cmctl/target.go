package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/command"
	"example.com/cmctl/cmd/internal/settings"
	"example.com/cmctl/pkg/client"
)

// targetError says that no server could be chosen. Nothing was sent.
type targetError struct{ err error }

func (e *targetError) Error() string { return e.err.Error() }
func (e *targetError) Unwrap() error { return e.err }

// destination is the server that a command goes to.
type destination struct {
	*client.Target
	namespace string // that the context, or the pod, is for
	context   string // its name, if it has one
	own       bool   // the context is one of cmctl's
}

// choice is what one source, the flags say, tells of where the server is.
type choice struct {
	rank                        rank
	server, kubeconfig, context string
	inCluster                   bool
}

// target decides which server is meant. What is given closest to the person
// wins: a flag, a variable, the settings file, then the default.
func (f *factory) target() (*destination, error) {
	ranks := []rank{onCommandLine, inVariable, inFile}
	if f.plugin() {
		ranks = ranks[:1] // the rest is for kubectl's own rules
	}
	for _, r := range ranks {
		c := f.chosen(r)
		if err := c.check(); err != nil {
			return nil, err
		}
		switch {
		case c.server != "":
			return f.resolve(client.TargetOptions{Server: c.server}, r)
		case c.inCluster:
			return f.resolve(client.TargetOptions{InCluster: true}, r)
		case c.kubeconfig != "":
			return f.resolve(client.TargetOptions{Kubeconfig: c.kubeconfig, Context: c.context}, r)
		case c.context != "":
			return f.contextTarget(c.context, r)
		}
	}
	return f.resolve(client.TargetOptions{AsKubectl: f.plugin()}, nowhere)
}

// chosen is what the source of that rank says.
func (f *factory) chosen(r rank) choice {
	at := func(name string) string {
		if f.source(name) != r {
			return ""
		}
		return f.settings.GetString(name)
	}
	c := choice{rank: r, server: at("server"), kubeconfig: at("kubeconfig"), context: at("context"),
		inCluster: f.source("in-cluster") == r && f.settings.GetBool("in-cluster")}
	if r == inFile {
		c.context = f.file.Current
	}
	return c
}

// check refuses a source that names two servers. Of variables, CMCTL_SERVER comes
// before CMCTL_CONTEXT.
func (c choice) check() error {
	names := map[rank][]any{
		onCommandLine: {"--server", "--kubeconfig", "--context", "--in-cluster"},
		inVariable:    {"CMCTL_SERVER", "CMCTL_KUBECONFIG", "CMCTL_CONTEXT", "CMCTL_IN_CLUSTER"},
		inFile:        {"the setting server", "the setting kubeconfig", settings.CurrentContext, "the setting in-cluster"},
	}[c.rank]
	two := func(i, j int) error {
		return usagef("%s and %s name two servers; give one of them", names[i], names[j])
	}
	switch {
	case c.server != "" && c.kubeconfig != "":
		return two(0, 1)
	case c.server != "" && c.context != "" && c.rank != inVariable:
		return two(0, 2)
	case c.inCluster && c.server != "":
		return two(3, 0)
	case c.inCluster && c.kubeconfig != "":
		return two(3, 1)
	case c.inCluster && c.context != "":
		return two(3, 2)
	}
	return nil
}

// contextTarget finds a context by its name: one of cmctl's own, else one of the
// kubeconfig. The kubeconfig is looked at only where a person gave the name.
func (f *factory) contextTarget(name string, r rank) (*destination, error) {
	own, isOwn := f.file.Context(name)
	if f.plugin() {
		isOwn = false
	}
	kubeconfig := ""
	if !f.plugin() {
		kubeconfig = f.settings.GetString("kubeconfig")
	}
	switch {
	case isOwn && r > inFile && inKubeconfig(kubeconfig, name):
		return nil, usagef("there are two contexts %q: one in %s, and one in the kubeconfig; rename yours with 'cmctl config rename-context', or give --kubeconfig FILE too to mean the other",
			name, f.path)
	case isOwn:
		return f.ownTarget(own, r)
	case r == inFile:
		return nil, &targetError{fmt.Errorf("settings file %s: %s is %q, and there is no such context among cmctl's own; 'cmctl config use-context' chooses another",
			f.path, settings.CurrentContext, name)}
	}
	d, err := f.resolve(client.TargetOptions{Kubeconfig: kubeconfig, Context: name}, r)
	if err != nil && !inKubeconfig(kubeconfig, name) {
		return nil, f.noContext(name, err)
	}
	return d, err
}

// noContext says that a name is neither that of one of cmctl's contexts nor, by
// err, one of the kubeconfig.
func (f *factory) noContext(name string, err error) error {
	if f.plugin() {
		return err
	}
	if len(f.file.Contexts) > 0 {
		names := make([]string, len(f.file.Contexts))
		for i, c := range f.file.Contexts {
			names[i] = c.Name
		}
		err = &targetError{fmt.Errorf("no context %q among cmctl's own (%s), and %w", name, strings.Join(names, ", "), err)}
	}
	return &hintedError{err, "'cmctl config get-contexts' lists those there are"}
}

// inKubeconfig tells whether the kubeconfig has a context of that name. One that
// can't be read has none that could be meant.
func inKubeconfig(path, name string) bool {
	contexts, err := client.KubeContexts(path)
	if err != nil {
		return false
	}
	for _, c := range contexts {
		if c.Name == name {
			return true
		}
	}
	return false
}

// ownTarget is that of one of cmctl's contexts. What the file has beside its
// contexts is for another server.
func (f *factory) ownTarget(c settings.Context, r rank) (*destination, error) {
	d, err := f.resolve(client.TargetOptions{
		Server: string(c.Server), Kubeconfig: c.Kubeconfig, Context: c.KubeContext, InCluster: c.InCluster, Name: c.Name,
		Credentials: client.Credentials{
			Token: c.Token, TokenFile: c.TokenFile, ClientCertificate: c.ClientCertificate, ClientKey: c.ClientKey,
			CertificateAuthority: c.CertificateAuthority, InsecureSkipTLSVerify: c.InsecureSkipTLSVerify,
			TLSServerName: c.TLSServerName, As: c.As, AsGroups: c.AsGroups, AsUID: c.AsUID,
		},
	}, max(r, inVariable))
	if err != nil {
		return nil, err
	}
	d.namespace, d.own = cmp.Or(c.Namespace, d.namespace), true
	return d, nil
}

// resolve adds the credentials that may go to that server: those given where the
// server was named, or closer to the person, so that what is meant for one
// server never goes to another.
func (f *factory) resolve(o client.TargetOptions, named rank) (*destination, error) {
	f.addCredentials(&o.Credentials, named)
	target, err := client.ResolveTarget(o)
	if err != nil {
		return nil, &targetError{err}
	}
	return &destination{Target: target, namespace: target.Namespace(), context: target.Context()}, nil
}

func (f *factory) addCredentials(c *client.Credentials, named rank) {
	own := f.credentialSource(named)
	// What replaces one thing replaces what says the opposite.
	if token, file := own("token"), own("token-file"); token.given || file.given {
		token, file = closest(token, file)
		c.Token, c.TokenFile = token.value, file.value
	}
	if certificate, key := own("client-certificate"), own("client-key"); certificate.given || key.given {
		c.ClientCertificate, c.ClientKey = certificate.value, key.value
	}
	if file, insecure := own("certificate-authority"), own("insecure-skip-tls-verify"); file.given || insecure.given {
		file, insecure = closest(file, insecure)
		c.CertificateAuthority = file.value
		c.InsecureSkipTLSVerify, _ = strconv.ParseBool(insecure.value) // checked before
	}
	if name := own("tls-server-name"); name.given {
		c.TLSServerName = name.value
	}
	// Whom to act as restricts what can be done, and is no secret. It is not
	// dropped for any server.
	if as, _ := f.flags.GetString("as"); as != "" {
		c.As, c.AsGroups, c.AsUID = as, nil, ""
	}
	if groups, _ := f.flags.GetStringArray("as-group"); len(groups) > 0 {
		c.AsGroups = groups
	}
	if uid, _ := f.flags.GetString("as-uid"); uid != "" {
		c.AsUID = uid
	}
}

// credential is a setting that may be sent to the server that is meant.
type credential struct {
	given bool
	rank  rank
	value string
}

// credentialSource gives out settings that were given at least as close to the
// person as the server was named.
func (f *factory) credentialSource(named rank) func(name string) credential {
	if f.plugin() {
		named = onCommandLine
	}
	return func(name string) credential {
		r := f.source(name)
		if r == nowhere || r < named {
			return credential{}
		}
		return credential{given: true, rank: r, value: f.settings.GetString(name)}
	}
}

// closest takes the value out of the one given farther away.
func closest(a, b credential) (credential, credential) {
	switch {
	case a.rank > b.rank:
		b.value = ""
	case a.rank < b.rank:
		a.value = ""
	}
	return a, b
}

// workNamespace is the one to work in. That of one of cmctl's contexts comes before
// the settings file's own; that of a kubeconfig is a default like any other.
func (f *factory) workNamespace(d *destination) string {
	given := f.settings.GetString("namespace")
	switch r := f.source("namespace"); {
	case r == onCommandLine, r == inVariable && !f.plugin():
		return given
	case f.plugin():
		given = ""
	case d.own:
		return cmp.Or(d.namespace, given, "default")
	}
	return cmp.Or(given, d.namespace, "default")
}

// where repeats the flags that chose the server, so that a command which a
// message proposes goes to the same place. Those messages speak of cmctl, which
// doesn't follow kubectl's rules: for it they are spelled out.
func (f *factory) where(d *destination) string {
	text := ""
	for _, name := range []string{"config", "server", "kubeconfig", "context", "in-cluster", "token-file", "certificate-authority", "client-certificate", "client-key", "tls-server-name", "as", "as-uid"} {
		if f.source(name) == onCommandLine {
			text += flagText(name, f.settings.GetString(name))
		}
	}
	if f.plugin() && f.chosen(onCommandLine) == (choice{rank: onCommandLine}) && d.context != "" {
		text += flagText("context", d.context)
	}
	return text
}

// flagText is a flag as a shell takes it.
func flagText(name, value string) string {
	return " --" + name + "=" + command.Quote(value)
}
