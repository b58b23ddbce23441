package main

import (
	"context"
	"fmt"
	"slices"

	"example.com/cmctl/cmd/cmctl/internal/intake"
	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"github.com/spf13/pflag"
)

// inputFlags are the ways to name manifests, for the verbs that take some.
type inputFlags struct {
	files      []string
	kustomize  string
	recursive  func() bool
	stringify  bool
	skipOthers bool
	unnamed    bool // what has a generateName needs no name
}

func (i *inputFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&i.files, "filename", "f", nil, "`FILE`, folder or pattern with manifests, - for stdin; more may follow as operands")
	i.recursive = addRecursive(flags)
	flags.BoolVar(&i.stringify, "stringify", false, "store values without quotes as they are typed: yes, 0755, 1e3")
	flags.BoolVar(&i.skipOthers, "skip-other-kinds", false, "pass over objects that are no ConfigMaps, and say which")
	flags.StringVarP(&i.kustomize, "kustomize", "k", "", "not known here: build a kustomization with kubectl kustomize, and pipe it into -f -")
	flags.Lookup("kustomize").Hidden = true // it is known so that it can be answered
}

// given tells whether manifests are named at all.
func (i *inputFlags) given() bool { return len(i.files) > 0 || i.kustomize != "" }

// take checks the flags. With -f the operands are further files, such as a shell
// makes of -f *.yaml; the rest is for the verb.
func (i *inputFlags) take(operands []string) (rest []string, err error) {
	switch {
	case i.kustomize != "":
		return nil, usagef("-k: a kustomization isn't built here; %s", manifest.Kustomize)
	case slices.Contains(i.files, ""):
		return nil, usagef("-f takes a FILE, not an empty name")
	case len(i.files) == 0:
		return operands, nil
	}
	i.files = append(i.files, operands...)
	first := slices.Index(i.files, "-")
	if first >= 0 && slices.Contains(i.files[first+1:], "-") {
		return nil, usagef("standard input can be read once only")
	}
	return nil, nil
}

// read reads the manifests and gives each its namespace. What can't be used is
// among the errors. If there are objects of other kinds, nothing else is returned:
// a set of manifests is not to be written in part because some are not for cmctl.
func (i *inputFlags) read(ctx context.Context, f *factory, conn *connection) ([]manifest.Manifest, []error) {
	o := manifest.Options{
		Stdin: f.In, Recursive: i.recursive(), Stringify: i.stringify, SkipOtherKinds: i.skipOthers, Unnamed: i.unnamed,
		Skipped: func(what string) { f.note("%s", what) },
	}
	if f.settings.GetInt("verbose") > 0 {
		o.SkippedFile = o.Skipped
	}
	manifests, errs := manifest.Read(ctx, i.files, o)
	if manifest.HasOtherKinds(errs) {
		return nil, append(errs, fmt.Errorf("nothing was done: not all of this is for cmctl; --skip-other-kinds takes the ConfigMaps alone"))
	}
	manifests, misplaced := conn.placeAll(manifests)
	manifests, large := withoutLarge(manifests)
	return manifests, slices.Concat(errs, misplaced, large)
}

// objectRef is an object by its name.
type objectRef struct{ namespace, name string }

// references are objects of one namespace.
func references(namespace string, names []string) []objectRef {
	refs := make([]objectRef, len(names))
	for i, name := range names {
		refs[i] = objectRef{namespace, name}
	}
	return refs
}

// references are the objects that the manifests name, whatever else they say.
func (i *inputFlags) references(ctx context.Context, f *factory, conn *connection) (refs []objectRef, errs []error) {
	manifests, errs := i.read(ctx, f, conn)
	for _, m := range manifests {
		refs = append(refs, objectRef{m.Namespace(), m.Name()})
	}
	return refs, errs
}

// readFileOrStdin reads a file that a flag names; - is standard input.
func (f *factory) readFileOrStdin(ctx context.Context, path string) (text []byte, err error) {
	if path == "-" {
		path = "standard input"
		text, err = intake.All(ctx, f.In, intake.MaxValue)
	} else {
		text, err = intake.File(ctx, path, intake.MaxValue)
	}
	if err != nil {
		return nil, intake.FileError(path, err)
	}
	return text, nil
}

// withoutLarge refuses manifests that are larger than any server takes.
func withoutLarge(manifests []manifest.Manifest) (good []manifest.Manifest, errs []error) {
	for _, m := range manifests {
		if err := tooLarge(m.Document); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.Where(), err))
		} else {
			good = append(good, m)
		}
	}
	return good, errs
}

// withoutValues refuses manifests in which a key has no value: only apply knows
// what that means.
func withoutValues(manifests []manifest.Manifest) (good []manifest.Manifest, errs []error) {
	for _, m := range manifests {
		problems := m.Problems(false)
		for _, p := range problems {
			errs = append(errs, m.FaultAt(p))
		}
		if len(problems) == 0 {
			good = append(good, m)
		}
	}
	return good, errs
}

// placeAll gives manifests their namespaces and refuses those that can't have
// one, and objects that are given twice: the second would undo the first.
func (c *connection) placeAll(manifests []manifest.Manifest) (placed []manifest.Manifest, errs []error) {
	first := map[string]manifest.Manifest{}
	twice := map[string]bool{}
	for _, m := range manifests {
		if err := c.place(m); err != nil {
			errs = append(errs, err)
			continue
		}
		if m.Name() == "" { // each gets a name of its own
			placed = append(placed, m)
			continue
		}
		key := m.Namespace() + "/" + m.Name()
		if before, ok := first[key]; ok {
			twice[key] = true
			errs = append(errs, fmt.Errorf("%s: %q is given twice, here and at %s, and left out", m.Where(), m.Name(), before.Where()))
			continue
		}
		first[key] = m
		placed = append(placed, m)
	}
	placed = slices.DeleteFunc(placed, func(m manifest.Manifest) bool { return twice[m.Namespace()+"/"+m.Name()] })
	return placed, errs
}

// place gives a manifest the namespace to write it to: its own, else the one
// that the command works in. One that contradicts -n is refused.
func (c *connection) place(m manifest.Manifest) error {
	own := m.Namespace()
	if own == "" {
		m.SetMeta("namespace", c.namespace)
		return nil
	}
	if c.explicit && own != c.namespace {
		return fmt.Errorf("%s: %q is in namespace %q, but -n says %q; it is left out", m.Where(), m.Name(), own, c.namespace)
	}
	return nil
}
