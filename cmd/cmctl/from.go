package main

import (
	"context"
	"errors"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/fromfiles"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/pflag"
)

// fromFlags are the ways to give data on the command line.
type fromFlags struct {
	sources   fromfiles.Sources
	eol       string
	envFormat string
	recursive func() bool
}

func (f *fromFlags) add(flags *pflag.FlagSet) {
	s := &f.sources
	flags.StringArrayVar(&s.Literals, "from-literal", nil, "`KEY=VALUE` to store; may be repeated")
	flags.StringArrayVar(&s.Files, "from-file", nil, "`[KEY=]PATH` of a file to store under its name or KEY, or of a folder whose files are stored; KEY=- for stdin; may be repeated")
	flags.StringArrayVar(&s.EnvFiles, "from-env-file", nil, "`PATH` of a file with lines KEY=VALUE; may be repeated")
	f.recursive = addRecursive(flags)
	flags.StringVar(&s.KeySep, "key-sep", "_", "with -R: what stands in a key for the / of a path")
	flags.BoolVar(&s.RequireText, "require-text", false, "fail on what is not UTF-8 text instead of storing it as binary")
	flags.StringVar(&f.eol, "eol", "keep", "line ends of text files: keep, or lf for LF instead of CRLF")
	flags.StringVar(&f.envFormat, "env-format", "kubectl", "how env files are read: kubectl takes values as they stand, dotenv knows quotes, values of several lines, comments and export")
}

// addRecursive adds -R, unless other flags have brought it already.
func addRecursive(flags *pflag.FlagSet) func() bool {
	if flags.Lookup("recursive") == nil {
		flags.BoolP("recursive", "R", false, "read the folders below a folder too")
	}
	return func() bool {
		on, err := flags.GetBool("recursive")
		return on && err == nil
	}
}

func (f *fromFlags) given() bool {
	return len(f.sources.Literals)+len(f.sources.Files)+len(f.sources.EnvFiles) > 0
}

// check refuses values that the flags don't have.
func (f *fromFlags) check() error {
	switch {
	case f.eol != "keep" && f.eol != "lf":
		return usagef("--eol takes keep or lf, not %q", f.eol)
	case f.envFormat != "kubectl" && f.envFormat != "dotenv":
		return usagef("--env-format takes kubectl or dotenv, not %q", f.envFormat)
	case f.sources.KeySep == "" || strings.Contains(f.sources.KeySep, "/"):
		return usagef("--key-sep %q can't stand in a key; take _, - or .", f.sources.KeySep)
	}
	return nil
}

// fill puts the data that the flags name into the document.
func (f *fromFlags) fill(ctx context.Context, doc types.Document, with *factory) error {
	if err := f.check(); err != nil {
		return err
	}
	s := f.sources
	s.Recursive, s.LF, s.Dotenv = f.recursive(), f.eol == "lf", f.envFormat == "dotenv"
	s.Stdin, s.Note = with.In, with.note
	errs := s.Fill(ctx, doc)
	for i, err := range errs {
		var argument *fromfiles.ArgumentError
		if errors.As(err, &argument) {
			errs[i] = usagef("%v", err)
		}
	}
	return oneOrMany(errs)
}
