package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/archive"
	"example.com/cmctl/pkg/server/store/local"
)

// dash stands for standard input or output in place of a file.
const dash = "-"

type backupOptions struct {
	file    string
	dataDir string
	force   bool
	out     streams
}

func backupCommand(out streams) *cobra.Command {
	o := backupOptions{out: out}
	var settings *pflag.FlagSet
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a backup of the data, while the server runs or while it doesn't",
		Long: "backup writes one state of the data directory, with the history that is kept, to a file of\n" +
			"its own, and verifies all of it on the way. A running server goes on taking writes; it is\n" +
			"asked through a socket in its data directory, which its own user alone can open. If no\n" +
			"server has the directory open, backup reads it by itself, and changes nothing in it.\n\n" +
			"The file appears whole or not at all, can be read by its owner alone, and replaces no\n" +
			"other. '-' writes to standard output.\n\n" +
			"Exit code 0: it is a whole backup. 1: there is none, because the data is damaged or the file\n" +
			"can't be written. 2: nothing was begun: FILE or the data directory can't be used, or the call\n" +
			"was wrong. 7: the server went away before it was complete. 130, 143: ended by SIGINT, SIGTERM.",
		Example: "  cmserver backup cmserver-2026-11-30.backup\n" +
			"  cmserver backup --data-dir /var/lib/cmserver /backups/cmserver.backup --force\n" +
			"  cmserver backup - | zstd >cmserver.backup.zst",
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o.file = args[0]
			if o.dataDir, err = dataDirOf(settings); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	settings = addDataDir(cmd)
	cmd.Flags().BoolVar(&o.force, "force", false, "replace FILE if it is there")
	return cmd
}

// addDataDir gives a command the flags that say where the data is. It returns all
// settings: those of a server's configuration file are known, and not shown here.
func addDataDir(cmd *cobra.Command) *pflag.FlagSet {
	settings := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	addFlags(settings)
	for _, name := range []string{"data-dir", configFlag} {
		cmd.Flags().AddFlag(settings.Lookup(name))
	}
	return settings
}

// dataDirOf finds the data directory as the server does.
func dataDirOf(settings *pflag.FlagSet) (string, error) {
	c, err := readConfig(settings)
	switch {
	case err != nil:
	case c.site.kind == inMemory:
		err = errors.New("the settings say in-memory: such a server keeps nothing on disk; --data-dir names a directory")
	case c.site.kind == onEtcd:
		err = fmt.Errorf("the settings say --store %s: such a server keeps nothing on disk; 'etcdctl snapshot save' backs up a cluster, "+
			"'cmserver migrate --from %[1]s --to local:DIR' makes a directory of it, --data-dir names another", c.site)
	}
	if err != nil {
		return "", usageError{err}
	}
	return c.site.dir, nil
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	return usageError{fmt.Errorf("%s takes one argument, the file of the backup; see '%s --help'", cmd.CommandPath(), cmd.CommandPath())}
}

func (o backupOptions) run(ctx context.Context) error {
	target, err := o.target(ctx)
	if err != nil {
		return err
	}
	info, size, err := o.copyTo(ctx, target)
	if err == nil {
		err = target.commit()
	}
	if err != nil {
		target.discard()
		return o.explain(endedBy(ctx, err))
	}
	// It is made, whether that can be told or not.
	fmt.Fprintf(o.out.err, "backed up %d objects in %d versions, up to resourceVersion %d: %s, %d bytes\n",
		info.Objects, info.Versions, info.Revision, target.name(), size)
	return nil
}

// target is where the backup goes.
type target interface {
	io.Writer
	name() string
	commit() error
	discard()
}

func (o backupOptions) target(ctx context.Context) (target, error) {
	if o.file != dash {
		return newBackupFile(o.file, o.force)
	}
	if f, ok := o.out.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return nil, usageError{errors.New("a backup is nothing for a terminal; redirect the output, or name a file")}
	}
	return standardOutput{newLetGoWriter(ctx, o.out.out)}, nil
}

// standardOutput is there as it comes: its reader must look at the exit code, or
// verify what it has.
type standardOutput struct{ letGoWriter }

func (standardOutput) name() string    { return "standard output" }
func (s standardOutput) commit() error { return s.finish() }
func (s standardOutput) discard()      { _ = s.finish() } // what is there is no backup anyway

// copyTo copies a backup to w and verifies what it copies.
func (o backupOptions) copyTo(ctx context.Context, w io.Writer) (info local.BackupInfo, size int64, err error) {
	source, err := o.source(ctx)
	if err != nil {
		return info, 0, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	counted := &counter{w: w}
	bar := newBar(o.out.err, "backup")
	defer bar.clear()
	b, err := local.NewBackupReader(io.TeeReader(source, counted), bar.draw)
	if err == nil {
		err = b.Verify(ctx)
	}
	if err != nil {
		return info, 0, err
	}
	return b.Info, counted.n, nil
}

// source asks the server that runs on the directory, or reads it, if there is none.
func (o backupOptions) source(ctx context.Context) (io.ReadCloser, error) {
	body, err := askForBackup(ctx, o.dataDir)
	if errors.Is(err, errNoServer) {
		return readDir(ctx, o.dataDir), nil
	}
	return body, err
}

// explain says why there is no backup, and what to do about what only this command
// knows.
func (o backupOptions) explain(err error) error {
	none := func(err error) error { return fmt.Errorf("no backup was made of %s: %w", o.dataDir, err) }
	switch {
	case errors.Is(err, store.ErrLocked):
		return usageError{none(fmt.Errorf("%w (a server has it open and offers no backup: it is starting or stopping, so try again, "+
			"or it said at its start why not)", store.ErrLocked))}
	case errors.Is(err, store.ErrNoStore), errors.Is(err, local.ErrUnfinished), errors.Is(err, store.ErrNewerFormat),
		errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR):
		return usageError{none(err)}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		err = fmt.Errorf("%w: nothing is left there: make room, or name a file on another disk", err)
	case lacksFiles(err):
		err = fmt.Errorf("%s: %w", raiseTheLimit, err)
	case errors.Is(err, store.ErrDamaged):
		err = fmt.Errorf("%w; with the server stopped 'cmserver check --data-dir %s' names all that is damaged; keep the backups that you have",
			err, o.dataDir)
	case errors.Is(err, errLostServer) && serverListens(o.dataDir):
		err = fmt.Errorf("%w: the server goes on, and cut it off; its log may say why; try again", err)
	case errors.Is(err, errLostServer):
		err = fmt.Errorf("%w: the server has ended; start it again, or back up what it left without it", err)
	case errors.Is(err, archive.ErrDamaged):
		err = fmt.Errorf("it was changed on its way; try again: %w", err)
	}
	return none(err)
}

// dirBackup is the backup of a directory that no server has open.
type dirBackup struct {
	*io.PipeReader
	cancel context.CancelFunc
	done   chan struct{} // closed when the directory is given back
}

func readDir(ctx context.Context, dir string) io.ReadCloser {
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	b := dirBackup{r, cancel, make(chan struct{})}
	go func() {
		defer close(b.done)
		_, err := local.BackupDir(ctx, local.Options{Dir: dir}, w)
		// It never fails, and no error is the end of the file.
		_ = w.CloseWithError(err)
	}()
	return b
}

func (b dirBackup) Close() error {
	b.cancel()
	err := b.PipeReader.Close()
	<-b.done
	return err
}

// counter counts what goes to w.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
