package main

import (
	"context"
	"fmt"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection are the flags that choose objects of a list.
type selection struct {
	allNamespaces bool
	selector      string
	fieldSelector string
	chunkSize     int
}

func (s *selection) add(flags *pflag.FlagSet) {
	flags.BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "take all namespaces")
	addSelector(flags, &s.selector)
	flags.StringVar(&s.fieldSelector, "field-selector", "", "only those whose metadata.name or metadata.namespace match: metadata.name!=flags")
	flags.IntVar(&s.chunkSize, "chunk-size", 500, "how many objects are read at once")
}

// check refuses flags that make no sense, alone or beside names.
func (s *selection) check(names []string) error {
	switch {
	case s.allNamespaces && len(names) > 0:
		return usagef("a name can't be read from all namespaces at once; give -n NAMESPACE instead of -A")
	case s.selector != "" && len(names) > 0:
		return usagef("give either a NAME or -l, not both")
	case s.fieldSelector != "" && len(names) > 0:
		return usagef("give either a NAME or --field-selector, not both")
	case s.chunkSize < 1:
		return usagef("--chunk-size must be at least 1, not %d", s.chunkSize)
	}
	if _, err := parseSelector(s.selector); err != nil {
		return err
	}
	if err := checkFieldSelector(s.fieldSelector); err != nil {
		return usagef("--field-selector %q: %v", s.fieldSelector, err)
	}
	return nil
}

// addSelector adds -l, the same for all verbs that choose by labels.
func addSelector(flags *pflag.FlagSet, selector *string) {
	flags.StringVarP(selector, "selector", "l", "", "only those whose labels match: tier=web,!old")
}

// addAll adds --all, which chooses a whole namespace.
func addAll(flags *pflag.FlagSet, all *bool) {
	flags.BoolVar(all, "all", false, "all ConfigMaps of the namespace")
}

// parseSelector reads what -l takes.
func parseSelector(text string) (labels.Selector, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, usagef("-l %q is no label selector: %v", text, err)
	}
	return selector, nil
}

// matching lists those of the connection's namespace that a selector chooses, all if
// it is empty, and says so if there are none.
func (f *factory) matching(ctx context.Context, conn *connection, selector string) ([]types.Document, error) {
	list, err := conn.ConfigMaps(conn.namespace).List(ctx, client.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, conn.explainList(conn.namespace, err)
	}
	if len(list.Items) == 0 {
		f.note("No ConfigMaps found in namespace %q.", conn.namespace)
	}
	return list.Items, nil
}

func checkFieldSelector(text string) error {
	parsed, err := fields.ParseSelector(text)
	if err != nil {
		return err
	}
	for _, r := range parsed.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return fmt.Errorf("servers select ConfigMaps by metadata.name and metadata.namespace only, not by %q", r.Field)
		}
	}
	return nil
}

// listOptions are what to ask the server for.
func (s *selection) listOptions() client.ListOptions {
	return client.ListOptions{LabelSelector: s.selector, FieldSelector: s.fieldSelector, PageSize: s.chunkSize}
}

// scope is the namespace to list, empty for all.
func (s *selection) scope(conn *connection) string {
	if s.allNamespaces {
		return ""
	}
	return conn.namespace
}

// read reads the named objects or, without names, those that the flags select.
func (s *selection) read(ctx context.Context, conn *connection, names []string) ([]types.Document, []error) {
	if len(names) > 0 {
		return readNamed(ctx, conn, names)
	}
	list, err := conn.ConfigMaps(s.scope(conn)).List(ctx, s.listOptions())
	if err != nil {
		return nil, []error{conn.explainList(s.scope(conn), err)}
	}
	return list.Items, nil
}

// readNamed reads objects one by one; what is wrong with one doesn't keep the
// others back.
func readNamed(ctx context.Context, conn *connection, names []string) (found []types.Document, errs []error) {
	for i, name := range names {
		if err := untried(ctx, len(names)-i); err != nil {
			return found, append(errs, err)
		}
		doc, err := conn.ConfigMaps(conn.namespace).Get(ctx, name)
		if err != nil {
			errs = append(errs, conn.explain(conn.namespace, name, err))
			continue
		}
		found = append(found, doc)
	}
	return found, errs
}
