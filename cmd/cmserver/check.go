package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/archive"
	"example.com/cmctl/pkg/server/store/local"
)

type checkOptions struct {
	file    string // a backup; empty: the data directory
	dataDir string
	in      io.Reader
	out     streams
}

func checkCommand(out streams) *cobra.Command {
	o := checkOptions{out: out}
	var settings *pflag.FlagSet
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Verify a data directory that no server has open, or a backup",
		Long: "check reads all of a data directory, or of a backup if a FILE is named, verifies every checksum,\n" +
			"holds the parts against each other, and names what is damaged: the object and its version, or\n" +
			"the file. It changes nothing.\n\n" +
			"Exit code 0: whole. 1: damaged. 2: it could not be checked, because a server has it open, it is\n" +
			"not there, or the call was wrong. 130, 143: ended by SIGINT, SIGTERM.",
		Example: "  cmserver check --data-dir /var/lib/cmserver\n  cmserver check cmserver-2026-11-30.backup",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return nil
			}
			return oneFile(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 1 {
				o.file, o.in = args[0], cmd.InOrStdin()
				if cmd.Flags().Changed("data-dir") {
					return usageError{errors.New("either a backup or a data directory is checked: give FILE or --data-dir")}
				}
				return o.checkFile(cmd.Context())
			}
			if o.dataDir, err = dataDirOf(settings); err != nil {
				return err
			}
			return o.checkDir(cmd.Context())
		},
	}
	settings = addDataDir(cmd)
	return cmd
}

func (o checkOptions) checkFile(ctx context.Context) error {
	if info, err := os.Stat(o.file); err == nil && info.IsDir() {
		return usageError{fmt.Errorf("%s is a directory; to check it as data: cmserver check --data-dir %s", o.file, o.file)}
	}
	in, err := openBackup(ctx, o.file, o.in)
	if err != nil {
		return usageError{err}
	}
	defer in.Close() // it was only read
	bar := newBar(o.out.err, "check")
	defer bar.clear()
	b, err := local.NewBackupReader(in, bar.draw)
	if err == nil {
		err = b.Verify(ctx)
	}
	bar.clear()
	switch err = endedBy(ctx, err); {
	case errors.Is(err, archive.ErrDamaged):
		return fmt.Errorf("%s: %w", o.file, err)
	case err != nil:
		return usageError{fmt.Errorf("%s can't be checked: %w", o.file, withAdvice(err))}
	}
	return o.whole(o.file, b.Info.Objects, b.Info.Versions, b.Info.Revision)
}

func (o checkOptions) checkDir(ctx context.Context) error {
	r, err := local.CheckDir(ctx, local.Options{Dir: o.dataDir})
	switch err = endedBy(ctx, err); {
	case errors.Is(err, store.ErrLocked):
		return usageError{fmt.Errorf("%s can't be checked while a server has it open: stop it, or make a backup, which verifies what it reads",
			o.dataDir)}
	case err != nil:
		return usageError{fmt.Errorf("%s can't be checked: %w", o.dataDir, withAdvice(err))}
	}
	for _, f := range r.Findings {
		// That it is damaged is said below, whether this can be or not.
		fmt.Fprintln(o.out.out, f)
	}
	if n := len(r.Findings); n > 0 {
		return fmt.Errorf("%s is damaged, %s; keep it as it is, and restore a backup into another directory", o.dataDir, findings(n))
	}
	return o.whole(o.dataDir, r.Objects, r.Versions, r.State.Current)
}

// withAdvice adds what to do.
func withAdvice(err error) error {
	switch {
	case lacksFiles(err):
		return fmt.Errorf("%s: %w", raiseTheLimit, err)
	case errors.Is(err, archive.ErrForeign):
		return fmt.Errorf("%w; what cmctl wrote is brought back with 'cmctl apply -f FILE'", err)
	}
	return err
}

func findings(n int) string {
	if n == 1 {
		return "1 finding"
	}
	return fmt.Sprintf("%d findings", n)
}

func (o checkOptions) whole(what string, objects, versions int, current store.Revision) error {
	_, err := fmt.Fprintf(o.out.out, "%s is whole: %d objects in %d versions, up to resourceVersion %d\n", what, objects, versions, current)
	if err != nil {
		return usageError{fmt.Errorf("%s is whole, which can't be told: %w", what, err)}
	}
	return nil
}
