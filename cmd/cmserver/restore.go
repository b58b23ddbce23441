package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/archive"
	"example.com/cmctl/pkg/server/store/local"
)

type restoreOptions struct {
	file           string
	dataDir        string
	unnamed        bool // dataDir is not from a flag
	advance, above int64
	in             io.Reader
	out            streams
}

func restoreCommand(out streams) *cobra.Command {
	o := restoreOptions{out: out}
	var settings *pflag.FlagSet
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a data directory of a backup",
		Long: "restore verifies a backup and makes a data directory of it, on which cmserver can be started.\n" +
			"The directory must be missing or empty, and is the server's (default: cmserver in the user's\n" +
			"state folder) if none is named. Where the restore fails nothing is left there; where it is\n" +
			"killed, cmserver does not start on what is left, and restore begins anew.\n\n" +
			"Objects come back with the resourceVersions that they had. New ones begin far beyond what can\n" +
			"have been handed out since the backup: 2^20 further, as many again for each second since, and\n" +
			"a random distance, so that two restores of one backup don't share versions either.\n" +
			"A client that remembers a version from after the backup meets a conflict, or is told to list\n" +
			"anew. Deleted objects are not kept. '-' reads from standard input.\n\n" +
			"Exit code 0: restored. 1: it failed. 2: it was not begun: FILE or the directory can't be used,\n" +
			"or the call was wrong. 130, 143: ended by SIGINT, SIGTERM.",
		Example: "  cmserver restore cmserver-2026-11-30.backup --data-dir /var/lib/cmserver\n" +
			"  zstd -d <cmserver.backup.zst | cmserver restore - --data-dir ./data\n" +
			"  cmserver restore old.backup --data-dir ./data --above 5000000000",
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o.file, o.in = args[0], cmd.InOrStdin()
			o.unnamed = !cmd.Flags().Changed("data-dir")
			if o.dataDir, err = dataDirOf(settings); err != nil {
				return err
			}
			if err := o.validate(cmd.Flags()); err != nil {
				return usageError{err}
			}
			return o.run(cmd.Context())
		},
	}
	settings = addDataDir(cmd)
	cmd.Flags().Int64Var(&o.advance, "advance", 0, "go on at least `N` versions beyond the backup's highest (1,048,576 or more, up to 2^62)")
	cmd.Flags().Int64Var(&o.above, "above", 0, "go on beyond the version `V`, up to 2^62, if that is still higher")
	return cmd
}

func (o restoreOptions) validate(flags *pflag.FlagSet) error {
	var err error
	if flags.Changed("advance") {
		err = between("advance", o.advance, local.LeastAdvance, local.HighestBegin)
	}
	if flags.Changed("above") {
		err = errors.Join(err, between("above", o.above, 1, local.HighestBegin))
	}
	return err
}

func (o restoreOptions) run(ctx context.Context) error {
	in, err := openBackup(ctx, o.file, o.in)
	if err != nil {
		return usageError{err}
	}
	defer in.Close() // it was only read
	if o.unnamed {
		fmt.Fprintf(o.out.err, "restoring into %s, for no --data-dir is given\n", o.dataDir)
	}
	bar := newBar(o.out.err, "restore")
	defer bar.clear()
	b, err := local.NewBackupReader(in, bar.draw)
	if err != nil {
		return o.explain(endedBy(ctx, err))
	}
	current, err := b.Restore(ctx, local.RestoreOptions{
		Dir: o.dataDir, Advance: store.Revision(o.advance), Above: store.Revision(o.above),
	})
	bar.clear()
	if err != nil {
		return o.explain(err)
	}
	// It is restored, whether that can be told or not.
	fmt.Fprintf(o.out.err, "restored %d objects, as they were at resourceVersion %d on %s, into %s\nnew versions begin at %d\n",
		b.Info.Objects, b.Info.Revision, b.Info.Made.Local().Format(time.DateTime), o.dataDir, current+1)
	if b.Dropped.Objects > 0 {
		fmt.Fprintf(o.out.err, "left out: deleted objects, of which the backup has %d with %d versions\n", b.Dropped.Objects, b.Dropped.Versions)
	}
	return nil
}

// explain says of an error what became of the directory, and what to do.
func (o restoreOptions) explain(err error) error {
	var full *local.FullError
	what := fmt.Errorf("restore %s into %s: %w", o.file, o.dataDir, err)
	switch {
	case errors.Is(err, local.ErrNotBegun), errors.Is(err, local.ErrNotEmpty), errors.Is(err, archive.ErrForeign), errors.Is(err, archive.ErrNewer):
		return usageError{fmt.Errorf("restore %s into %s: %w", o.file, o.dataDir, withAdvice(err))}
	case errors.Is(err, local.ErrLeft):
		return fmt.Errorf("%w; the next restore there begins anew", what)
	case errors.As(err, &full):
		return fmt.Errorf("%w; nothing is left there: make room, or choose another disk with --data-dir", what)
	}
	return fmt.Errorf("restore %s into %s: %w; nothing is left there", o.file, o.dataDir, withAdvice(err))
}

// openBackup opens a backup to read, until ctx ends.
func openBackup(ctx context.Context, file string, stdin io.Reader) (io.ReadCloser, error) {
	if file == dash {
		return letGoReader(ctx, func() (io.ReadCloser, error) { return io.NopCloser(stdin), nil }), nil
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: there is no such file", file)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory, and no backup", file)
	case !info.Mode().IsRegular():
		return letGoReader(ctx, func() (io.ReadCloser, error) { return os.Open(file) }), nil
	}
	return os.Open(file)
}
