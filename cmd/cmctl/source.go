package main

import (
	"context"
	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/pflag"
)

// sourceFlags say what objects are to become: whole manifests, or one that is put
// together on the command line.
type sourceFlags struct {
	input inputFlags
	from  fromFlags
	name  string
}

func (s *sourceFlags) add(flags *pflag.FlagSet) {
	s.input.add(flags)
	s.from.add(flags)
}

// take gives the operands of that verb their meaning.
func (s *sourceFlags) take(verb string, args []string) error {
	args, err := s.input.take(args)
	switch {
	case err != nil:
		return err
	case s.input.given() && s.from.given():
		return usagef("-f takes whole manifests; --from-... don't go with it")
	case s.input.given():
		return nil
	}
	names, err := parseNames(args)
	switch {
	case err != nil:
		return err
	case len(names) != 1:
		return usagef("%s takes -f FILE, or one NAME with --from-literal, --from-file or --from-env-file", verb)
	case !s.from.given():
		return usagef("%s %s: say what it holds with --from-literal, --from-file or --from-env-file; manifests are named with -f", verb, names[0])
	}
	s.name = names[0]
	return nil
}

// manifests are the objects, each with its namespace.
func (s *sourceFlags) manifests(ctx context.Context, f *factory, conn *connection) ([]manifest.Manifest, []error) {
	if s.name == "" {
		return s.input.read(ctx, f, conn)
	}
	m := manifest.Manifest{Document: types.NewDocument(conn.namespace, s.name), File: "the command line"}
	if err := s.from.fill(ctx, m.Document, f); err != nil {
		return nil, []error{err}
	}
	return withoutLarge([]manifest.Manifest{m})
}
