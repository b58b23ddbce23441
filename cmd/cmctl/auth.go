package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/client"
	"github.com/spf13/cobra"
)

func newAuth(f *factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "auth",
		Short: "Ask the server who you are, and what you may do",
		Example: `  cmctl auth can-i update
  cmctl auth whoami`,
		SuggestionsMinimumDistance: 2,
		Args:                       unknownSubcommand,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCanI(f), newWhoami(f))
	return cmd
}

// apiVerbs are what a server may allow or refuse.
var apiVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// history is the subresource with the versions that are kept.
const history = "history"

// neededVerbs are those that cmctl's own commands come down to.
var neededVerbs = map[string]string{
	"edit": "get and update", "apply": "get, create and update", "set": "get and update", "unset": "get and update",
	"label": "get and update", "annotate": "get and update", "replace": "get, create and update", "copy": "get and create",
	"describe": "get", "diff": "get", "write": "create and update", "read": "get and list",
}

type canIOptions struct {
	*factory
	verb          string
	name          string
	subresource   string
	list          bool
	quiet         bool
	allNamespaces bool
}

func newCanI(f *factory) *cobra.Command {
	o := &canIOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "can-i {VERB [NAME] [--subresource=history] | --list}",
		Short: "Ask whether you may do something with ConfigMaps",
		Long: `Ask the server whether you may do something with ConfigMaps, and print yes or no.
The exit code is 0 for yes and 1 for no.

VERB is one of the API's: ` + strings.Join(apiVerbs, ", ") + `, or * for all. The versions that cmserver keeps are read by whoever may
get the subresource history.`,
		Example: `  cmctl auth can-i update
  cmctl auth can-i get flags -n team-a
  cmctl auth can-i get flags --subresource=history
  cmctl auth can-i list -A
  cmctl auth can-i update --as=system:serviceaccount:team-a:deployer
  cmctl auth can-i --list`,
		Args:              o.take,
		ValidArgsFunction: f.completeCanI,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&o.subresource, "subresource", "", "ask about this `part` of ConfigMaps instead: history")
	cmd.Flags().BoolVar(&o.list, "list", false, "show all that you may do with ConfigMaps in the namespace")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "print nothing; the exit code tells")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "in all namespaces at once")
	return cmd
}

func (o *canIOptions) take(_ *cobra.Command, args []string) error {
	if o.list {
		if len(args) > 0 || o.allNamespaces || o.subresource != "" {
			return usagef("--list is for a namespace, and shows all; it takes neither VERB, --subresource nor -A")
		}
		return nil
	}
	if len(args) == 0 {
		return usagef("can-i takes a VERB, or --list")
	}
	o.verb = strings.ToLower(args[0])
	if needs, ok := neededVerbs[o.verb]; ok {
		return usagef("%q is no verb of the API: it needs %s; ask about those", o.verb, needs)
	}
	if len(args) > 1 && isOtherKind(args[1]) {
		return usagef("%q: cmctl asks about ConfigMaps only (one of that name is cm/%s)", args[1], args[1])
	}
	names, err := parseNames(args[1:])
	if err != nil {
		return err
	}
	if len(names) > 1 {
		return usagef("can-i takes one NAME")
	}
	o.name = strings.Join(names, "")
	if o.name != "" && o.allNamespaces {
		return usagef("a NAME is in one namespace; give -n NAMESPACE instead of -A")
	}
	return nil
}

func (f *factory) completeCanI(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return apiVerbs, cobra.ShellCompDirectiveNoFileComp
	case 1:
		return f.completeNames(cmd, nil, begun)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// errNo is the answer no. It was printed.
var errNo = errors.New("the server says no")

func (o *canIOptions) run(ctx context.Context) error {
	conn, err := o.connect("auth")
	if err != nil {
		return err
	}
	if o.list {
		return o.listRules(ctx, conn)
	}
	if !slices.Contains(apiVerbs, o.verb) && o.verb != "*" {
		o.note("warning: %q is no verb that servers know for ConfigMaps", o.verb)
	}
	if o.subresource != "" && o.subresource != history {
		o.note("warning: ConfigMaps have no subresource %q that servers know; cmserver's is %s", o.subresource, history)
	}
	if o.name == history && o.subresource == "" {
		o.note("this asks about a ConfigMap called %[1]s; about the versions that are kept ask with --subresource=%[1]s", history)
	}
	question := client.Access{Verb: o.verb, Subresource: o.subresource, Name: o.name, Namespace: conn.namespace}
	if o.allNamespaces {
		question.Namespace = ""
	}
	answer, err := conn.CanI(ctx, question)
	if errors.Is(err, client.ErrNoAccessControl) {
		o.noteOpen(conn)
		answer, err = client.AccessAnswer{Allowed: true}, nil
	}
	if err != nil {
		return conn.explainServer("what you may do", err)
	}
	return o.answer(answer)
}

// noteOpen says why everything is allowed.
func (o *canIOptions) noteOpen(conn *connection) {
	if !o.quiet {
		o.note("%s has no access control: it allows every request that reaches it.", conn.Target())
	}
}

func (o *canIOptions) answer(a client.AccessAnswer) error {
	text := "no"
	if a.Allowed {
		text = "yes"
	}
	if a.Reason != "" && !a.Allowed {
		text += " - " + a.Reason
	}
	if !o.quiet {
		if err := o.say("%s", text); err != nil {
			return err
		}
		if a.Allowed && a.Reason != "" {
			o.note("%s", a.Reason)
		}
	}
	if !a.Allowed {
		return &saidError{exitFailed, errNo}
	}
	return nil
}

func (o *canIOptions) listRules(ctx context.Context, conn *connection) error {
	rules, complete, err := conn.AccessRules(ctx, conn.namespace)
	if errors.Is(err, client.ErrNoAccessControl) {
		o.noteOpen(conn)
		rules, complete, err = []client.AccessRule{{Resources: []string{"*"}, Verbs: []string{"*"}}}, true, nil
	}
	if err != nil {
		return conn.explainServer("what you may do", err)
	}
	if !complete {
		o.note("warning: the server says that there may be more")
	}
	if o.quiet {
		return nil
	}
	laid := output.Table{Header: []string{"RESOURCES", "VERBS", "NAMES"}, Colors: o.colors(o.Out)}
	for _, r := range rules {
		names := "all"
		if len(r.Names) > 0 {
			names = strings.Join(r.Names, ",")
		}
		laid.Rows = append(laid.Rows, []string{strings.Join(r.Resources, ","), strings.Join(r.Verbs, ","), names})
	}
	return laid.Print(o.Out)
}

type whoamiOptions struct {
	*factory
	output string
}

func newWhoami(f *factory) *cobra.Command {
	o := &whoamiOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Ask the server who it takes you for",
		Example: `  cmctl auth whoami
  cmctl auth whoami --context=prod -o yaml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(o.output, "yaml", "json"); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "how to print: yaml or json (default a table)")
	return cmd
}

func (o *whoamiOptions) run(ctx context.Context) error {
	conn, err := o.connect("auth")
	if err != nil {
		return err
	}
	user, err := conn.WhoAmI(ctx)
	if errors.Is(err, client.ErrNoAccessControl) {
		return fmt.Errorf("%s does not tell callers apart: it takes everybody alike", conn.Target())
	}
	if err != nil {
		return conn.explainServer("who you are", err)
	}
	if o.output != "" {
		return printValue(o.Out, o.output, user)
	}
	laid := output.Table{NoHeaders: true, Rows: [][]string{{"USERNAME", user.Username}}}
	if user.UID != "" {
		laid.Rows = append(laid.Rows, []string{"UID", user.UID})
	}
	if len(user.Groups) > 0 {
		laid.Rows = append(laid.Rows, []string{"GROUPS", strings.Join(user.Groups, ",")})
	}
	return laid.Print(o.Out)
}
