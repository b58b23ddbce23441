package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
)

type restoreOptions struct {
	file           string
	dataDir        string
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
			"The directory must be missing or empty. Where the restore fails nothing is left there; where\n" +
			"it is cut off, or the disk is full, cmserver does not start on what is left, and restore\n" +
			"begins anew.\n\n" +
			"Objects come back with the resourceVersions that they had. New ones begin far beyond what can\n" +
			"have been handed out since the backup: 2^20 further, as many again for each second since, and\n" +
			"a random distance, so that two restores of one backup don't share versions either.\n" +
			"A client that remembers a version from after the backup meets a conflict, or is told to list\n" +
			"anew. Deleted objects are not kept. '-' reads from standard input.",
		Example: "  cmserver restore cmserver-2026-11-30.backup --data-dir /var/lib/cmserver\n" +
			"  zstd -d <cmserver.backup.zst | cmserver restore - --data-dir ./data\n" +
			"  cmserver restore old.backup --data-dir ./data --above 5000000000",
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o.file, o.in = args[0], cmd.InOrStdin()
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
	cmd.Flags().Int64Var(&o.advance, "advance", 0, "go on at least `N` versions beyond the backup's highest (1048576 or more)")
	cmd.Flags().Int64Var(&o.above, "above", 0, "go on beyond the version `V`, if that is still higher")
	return cmd
}

func (o restoreOptions) validate(flags *pflag.FlagSet) error {
	if flags.Changed("advance") && o.advance < local.LeastAdvance {
		return fmt.Errorf("--advance %d: must be at least %d", o.advance, local.LeastAdvance)
	}
	if flags.Changed("above") && o.above < 1 {
		return fmt.Errorf("--above %d: must be a version", o.above)
	}
	return nil
}

func (o restoreOptions) run(ctx context.Context) error {
	in, err := openBackup(o.file, o.in)
	if err != nil {
		return usageError{err}
	}
	defer in.Close() // it was only read
	bar := newBar(o.out.err, "restore")
	defer bar.clear()
	b, err := local.NewBackupReader(in, bar.draw)
	if err != nil {
		return fmt.Errorf("restore %s: %w", o.file, err)
	}
	current, err := b.Restore(ctx, local.RestoreOptions{
		Dir: o.dataDir, Advance: store.Revision(o.advance), Above: store.Revision(o.above),
	})
	bar.clear()
	switch {
	case errors.Is(err, store.ErrFailed):
		return fmt.Errorf("restore %s: %w; make it possible to write there and restore again, which begins anew", o.file, err)
	case err != nil:
		return fmt.Errorf("restore %s: %w", o.file, err)
	}
	_, err = fmt.Fprintf(o.out.err, "restored %d objects, as they were at resourceVersion %d on %s, into %s\nnew versions begin at %d\n",
		b.Info.Objects, b.Info.Revision, b.Info.Made.Local().Format(time.DateTime), o.dataDir, current+1)
	return err
}

// openBackup opens a backup to read.
func openBackup(file string, stdin io.Reader) (io.ReadCloser, error) {
	if file == dash {
		return io.NopCloser(stdin), nil
	}
	return os.Open(file)
}
