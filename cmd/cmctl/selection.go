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

// selectors choose objects by what they are: by their labels, names and namespaces.
type selectors struct {
	selector      string
	fieldSelector string
}

func (s *selectors) add(flags *pflag.FlagSet) {
	addSelector(flags, &s.selector)
	flags.StringVar(&s.fieldSelector, "field-selector", "", "only those whose metadata.name or metadata.namespace match: metadata.name!=flags")
}

// given tells whether they choose at all.
func (s selectors) given() bool { return s.selector != "" || s.fieldSelector != "" }

// check refuses what is no selector.
func (s selectors) check() error {
	if _, err := parseSelector(s.selector); err != nil {
		return err
	}
	if err := checkFieldSelector(s.fieldSelector); err != nil {
		return usagef("--field-selector %q: %v", s.fieldSelector, err)
	}
	return nil
}

// choose tells whether a copy of an object is among those that are meant, as the
// server would.
func (s selectors) choose(d types.Document) (bool, error) {
	byLabels, err := labels.Parse(s.selector)
	if err != nil {
		return false, err
	}
	byFields, err := fields.ParseSelector(s.fieldSelector)
	if err != nil {
		return false, err
	}
	object, err := client.ToConfigMap(d)
	if err != nil {
		return false, err
	}
	place := fields.Set{"metadata.name": object.Name, "metadata.namespace": object.Namespace}
	return byLabels.Matches(labels.Set(object.Labels)) && byFields.Matches(place), nil
}

// selection are the flags that choose objects of a list.
type selection struct {
	selectors
	allNamespaces bool
	chunkSize     int
}

func (s *selection) add(flags *pflag.FlagSet) {
	flags.BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "take all namespaces")
	s.selectors.add(flags)
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
	return s.selectors.check()
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

// matching lists those of the connection's namespace that are chosen, all if nothing
// is said of them, and says so if there are none.
func (f *factory) matching(ctx context.Context, conn *connection, s selectors) ([]types.Document, error) {
	list, err := conn.ConfigMaps(conn.namespace).List(ctx, client.ListOptions{LabelSelector: s.selector, FieldSelector: s.fieldSelector})
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
		return readNamed(ctx, conn, references(conn.namespace, names))
	}
	list, err := conn.ConfigMaps(s.scope(conn)).List(ctx, s.listOptions())
	if err != nil {
		return nil, []error{conn.explainList(s.scope(conn), err)}
	}
	return list.Items, nil
}

// readNamed reads objects one by one; what is wrong with one doesn't keep the
// others back.
func readNamed(ctx context.Context, conn *connection, refs []objectRef) (found []types.Document, errs []error) {
	for i, r := range refs {
		if err := untried(ctx, len(refs)-i); err != nil {
			return found, append(errs, err)
		}
		doc, err := conn.ConfigMaps(r.namespace).Get(ctx, r.name)
		if err != nil {
			errs = append(errs, conn.explain(r.namespace, r.name, err))
			continue
		}
		found = append(found, doc)
	}
	return found, errs
}
