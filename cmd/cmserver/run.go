package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"example.com/cmctl/cmd/cmserver/internal/serving"
	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
)

// streams are where the program writes.
type streams struct{ out, err io.Writer }

// usageError is a mistake in how the program was called or set up: what was named is
// not what is needed, and nothing was begun.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitCode is 0 for a clean end, 2 if nothing was begun because of how the program was
// called or what it was to use, 7 if a server that was asked went away, 128 and its
// number for a signal, 1 for the rest.
func exitCode(err error) int {
	var usage usageError
	var ended interruption
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		return ended.exitCode()
	case errors.Is(err, errLostServer):
		return 7
	case errors.As(err, &usage):
		return 2
	}
	return 1
}

// run is the whole program but for the process around it. It returns when ctx
// ends and everything is put away.
func run(ctx context.Context, args []string, out streams) error {
	root := rootCommand(out)
	root.SetArgs(args)
	root.SetOut(out.out)
	root.SetErr(out.err)
	return root.ExecuteContext(ctx)
}

func rootCommand(out streams) *cobra.Command {
	serve := func(cmd *cobra.Command, _ []string) error {
		c, err := loadConfig(cmd.Flags())
		if err != nil {
			return usageError{err}
		}
		log := c.logger(out.err)
		addresses, err := c.addresses(cmd.Context(), log)
		if err != nil {
			return usageError{err}
		}
		if c.audit, err = c.openAudit(out.out, log); err != nil {
			return usageError{err}
		}
		defer c.audit.close()
		return c.serve(cmd.Context(), addresses, log)
	}
	root := &cobra.Command{
		Use:   "cmserver",
		Short: "Serve the Kubernetes ConfigMap API from one durable store",
		Long: "cmserver serves the Kubernetes ConfigMap API and keeps every acknowledged write on disk.\n\n" +
			"Each setting can be given as a flag, as a variable CMSERVER_<NAME>, or in a YAML file\n" +
			"(--config, or cmserver/config.yaml in the user's configuration folder), in this order.",
		Args:          noArgs,
		Version:       versionLine(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          serve,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath())}
	})
	addFlags(root.Flags())
	serveCommand := &cobra.Command{Use: "serve", Short: "Serve until SIGTERM or SIGINT (what cmserver does by itself)", Args: noArgs, RunE: serve}
	addFlags(serveCommand.Flags())
	root.AddCommand(serveCommand, &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(out.out, "cmserver", versionLine())
			return err
		},
	}, backupCommand(out), restoreCommand(out), checkCommand(out), migrateCommand(out), initCommand(out), tokenCommand(out))
	return root
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("%s takes no argument %q; see '%s --help'", cmd.CommandPath(), args[0], cmd.CommandPath())}
}

// serve opens the store, listens, serves, and undoes it in reverse.
func (c config) serve(ctx context.Context, addresses []serving.Address, log *slog.Logger) (err error) {
	protected, err := c.protect(log)
	if err != nil {
		return usageError{err}
	}
	protected.upkeep = append(protected.upkeep, c.audit.follow)
	st, err := c.openStore(ctx, log)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := st.Close(); closeErr != nil {
			err = errors.Join(err, fmt.Errorf("close the store: %w", closeErr))
		}
	}()
	if err := c.finished(ctx, st); err != nil {
		return err
	}
	listeners, err := serving.Listen(ctx, addresses, c.socketMode())
	if err != nil {
		return err
	}
	stopCompacting := c.startCompacting(ctx, st, log)
	defer stopCompacting()
	if onDisk, ok := st.(*local.Store); ok && c.site.kind == inDirectory {
		stopBackups := startBackups(ctx, c.site.dir, onDisk, log)
		defer stopBackups()
	}
	stopUpkeep := protected.start(ctx)
	defer stopUpkeep()
	return c.serveOn(ctx, listeners, protected, st, log)
}

// serveOn serves until ctx ends, then lets what is under way finish.
func (c config) serveOn(ctx context.Context, listeners []serving.Listener, protected *protection, st store.Store, log *slog.Logger) error {
	options := server.Options{
		Store:            st,
		Logger:           log,
		UnconditionalPut: server.UnconditionalPut(c.UnconditionalPut),
		StrictNamespaces: c.StrictNamespaces,
		RequestTimeout:   c.RequestTimeout,
		Inject:           c.faults,
		Version:          server.Version(release()),
	}
	c.limit(&options)
	protected.applyTo(&options)
	c.audit.applyTo(&options)
	api := server.New(options)
	if !c.faults.Empty() {
		log.Warn("FAULTS ARE INJECTED: this server misbehaves on purpose, for the tests of clients, and is of no other use", "inject", c.faults)
		defer func() { log.Warn("faults that were injected", "counts", api.Injected()) }()
	}
	if err := api.Start(ctx); err != nil {
		return err
	}
	defer api.Stop()
	front := serving.Server{Handler: api.Handler(), TLS: protected.tls, Log: log, ConnState: c.connections(log).State,
		Stopping: api.EndWatches, DrainTime: c.ShutdownTimeout}
	return front.Run(ctx, listeners)
}
