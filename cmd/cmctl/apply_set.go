package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// set is a named set of ConfigMaps that are applied together. Its members carry a
// label, by which they are found, and a proof that the label is meant for them:
// a copy of a member, or a map that happens to have the label, is none.
type set struct {
	name       string
	namespaces []string         // all that the set reaches, sorted
	members    []types.Document // as they were found
	unseen     []error          // namespaces of it that could not be looked at
}

var (
	setLabel      = types.Field{Section: "metadata.labels", Key: types.SetLabel}
	setMember     = annotation(types.SetMember)
	setNamespaces = annotation(types.SetNamespaces)
)

func validateSetName(name string) error {
	if problems := validation.IsValidLabelValue(name); len(problems) > 0 {
		return usagef("%q can't name a set: %s", name, strings.Join(problems, "; "))
	}
	return nil
}

// openSet finds the members that the server has: in the namespaces of the
// manifests, and in those that the members found there know of. It doesn't look
// elsewhere: a set of the same name in the namespaces of another team, or of
// another stage, is another set.
func openSet(ctx context.Context, conn *connection, name string, manifests []manifest.Manifest) (*set, error) {
	s := &set{name: name}
	for _, m := range manifests {
		s.reach(m.Namespace())
	}
	given := len(s.namespaces)
	var inUse []string
	for i := 0; i < len(s.namespaces); i++ { // grows as members are found
		before := len(s.members)
		err := s.look(ctx, conn, s.namespaces[i])
		switch {
		case err != nil && i < given:
			return nil, conn.explainList(s.namespaces[i], fmt.Errorf("the members of set %q can't be listed: %w", name, err))
		case err != nil:
			s.unseen = append(s.unseen, conn.explainList(s.namespaces[i],
				fmt.Errorf("members of set %q may be left here, which it reached before, and can't be listed now: %w", name, err)))
		case i >= given && len(s.members) == before:
			continue // it reaches there no longer
		}
		inUse = append(inUse, s.namespaces[i])
	}
	slices.Sort(inUse)
	s.namespaces = inUse
	return s, nil
}

func (s *set) look(ctx context.Context, conn *connection, namespace string) error {
	list, err := conn.ConfigMaps(namespace).List(ctx, client.ListOptions{LabelSelector: types.SetLabel + "=" + s.name})
	if err != nil {
		return err
	}
	for _, d := range list.Items {
		if !s.has(d) {
			continue
		}
		s.members = append(s.members, d)
		s.reach(d.Namespace())
		if known, ok := d.Annotation(types.SetNamespaces); ok {
			s.reach(strings.Split(known, ",")...)
		}
	}
	return nil
}

func (s *set) reach(namespaces ...string) {
	for _, ns := range namespaces {
		if !slices.Contains(s.namespaces, ns) && len(validation.IsDNS1123Label(ns)) == 0 {
			s.namespaces = append(s.namespaces, ns)
		}
	}
}

// has tells whether an object is a member, by label and proof.
func (s *set) has(d types.Document) bool {
	proof, _ := d.Annotation(types.SetMember)
	name, ok := d.Label(types.SetLabel)
	return ok && name == s.name && proof == s.proof(d)
}

// proof ties the membership to the object's identity.
func (s *set) proof(d types.Document) string {
	sum := sha256.Sum256([]byte(s.name + "\x00" + d.Namespace() + "\x00" + d.Name()))
	return "v1:" + hex.EncodeToString(sum[:16])
}

func (s *set) is(name string) bool { return s != nil && s.name == name }

// claim makes the next version of an object a member. A nil set claims nothing.
func (s *set) claim(next types.Document) {
	if s == nil {
		return
	}
	next.Set(setLabel, s.name)
	next.Set(setMember, s.proof(next))
	next.Set(setNamespaces, nil)
	if len(s.namespaces) > 1 {
		next.Set(setNamespaces, strings.Join(s.namespaces, ","))
	}
}

// other is the set that a live object is in instead, empty if there is none.
func (s *set) other(live types.Document) string {
	if s == nil || live == nil {
		return ""
	}
	name, _ := live.Label(types.SetLabel)
	if name == s.name {
		return ""
	}
	return name
}

// leaving are the members that none of the manifests speaks of, by namespace and
// name. A nil set has none.
func (s *set) leaving(manifests []manifest.Manifest) []types.Document {
	if s == nil {
		return nil
	}
	given := map[string]bool{}
	for _, m := range manifests {
		given[m.Namespace()+"/"+m.Name()] = true
	}
	out := slices.DeleteFunc(slices.Clone(s.members), func(d types.Document) bool { return given[d.Namespace()+"/"+d.Name()] })
	slices.SortFunc(out, func(a, b types.Document) int {
		return strings.Compare(a.Namespace()+"/"+a.Name(), b.Namespace()+"/"+b.Name())
	})
	return out
}
