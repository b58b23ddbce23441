package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
	"example.com/cmctl/pkg/server/store/transfer"
)

type migrateOptions struct {
	config   config // of both stores
	from, to site
	out      streams
}

func migrateCommand(out streams) *cobra.Command {
	o := migrateOptions{out: out}
	var settings *pflag.FlagSet
	var from, to string
	cmd := &cobra.Command{
		Use:   "migrate --from STORE --to STORE",
		Short: "Copy all data from one store to another: to or from an etcd cluster",
		Long: "migrate copies every object, with the history that is kept of it, from one store into another,\n" +
			"which must be empty, and holds the two against each other afterwards. The servers of both\n" +
			"must be stopped: a local store that is in use can't be opened, and a cluster that was written\n" +
			"to meanwhile is noticed. The source is not changed.\n\n" +
			"STORE is local:DIR or etcd://HOST:PORT,HOST:PORT/PREFIX, as --store of the server takes it.\n\n" +
			"Versions in the target begin beyond those of the source: a client that remembers one of them\n" +
			"meets a conflict, or is told to list anew. Objects that were deleted stay behind.\n\n" +
			"A migration that was interrupted, or whose source was written to, is finished by another one;\n" +
			"cmserver does not start on a target before.\n\n" +
			"Exit code 0: all of it is in the target. 1: it failed. 2: nothing was begun: a store can't be used,\n" +
			"or the call was wrong. 130, 143: ended by SIGINT, SIGTERM.",
		Example: "  cmserver migrate --from local:/var/lib/cmserver --to etcd://10.0.0.1:2379,10.0.0.2:2379/cmserver \\\n" +
			"    --etcd-ca-file ca.pem --etcd-cert-file cmserver.pem --etcd-key-file cmserver-key.pem\n" +
			"  cmserver migrate --from etcd://127.0.0.1/cmserver --to local:./data",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := o.complete(settings, from, to); err != nil {
				return usageError{err}
			}
			return o.run(cmd.Context())
		},
	}
	settings = addEtcdAccess(cmd)
	cmd.Flags().StringVar(&from, "from", "", "`STORE` to copy")
	cmd.Flags().StringVar(&to, "to", "", "`STORE` to copy into, which must be empty")
	return cmd
}

// addEtcdAccess gives a command the flags that say how etcd is reached. It returns all
// settings: those of a server's configuration file are known, and not shown here.
func addEtcdAccess(cmd *cobra.Command) *pflag.FlagSet {
	settings := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	addFlags(settings)
	access := pflag.NewFlagSet("access", pflag.ContinueOnError)
	addEtcdAccessFlags(access)
	access.VisitAll(func(f *pflag.Flag) { cmd.Flags().AddFlag(settings.Lookup(f.Name)) })
	for _, name := range []string{"etcd-timeout", "history-limit", configFlag} {
		cmd.Flags().AddFlag(settings.Lookup(name))
	}
	return settings
}

// complete finds out what to copy where.
func (o *migrateOptions) complete(settings *pflag.FlagSet, from, to string) error {
	for flag, s := range map[string]struct {
		text string
		site *site
	}{"from": {from, &o.from}, "to": {to, &o.to}} {
		if s.text == "" {
			return fmt.Errorf("--%s is needed: local:DIR or etcd://HOST:PORT/PREFIX", flag)
		}
		var err error
		if *s.site, err = parseSite(s.text); err != nil {
			return fmt.Errorf("--%s %w", flag, err)
		}
		switch {
		case s.site.kind == inMemory:
			return fmt.Errorf("--%s memory: what a server has in memory is gone once it stops; name local:DIR or etcd://…", flag)
		case s.site.kind == inDirectory && s.site.dir == "":
			return fmt.Errorf("--%s local: needs its directory, local:DIR", flag)
		}
	}
	if o.from.String() == o.to.String() {
		return fmt.Errorf("--from and --to are the same store, %s", o.from)
	}
	var err error
	if o.config, err = readConfig(settings); err != nil {
		return err
	}
	return errors.Join(o.config.validateEtcdAccess(), between("history-limit", o.config.HistoryLimit, 1, maxHistoryLimit),
		between("etcd-timeout", o.config.EtcdTimeout, minEtcdTimeout, maxEtcdTimeout))
}

func (o migrateOptions) run(ctx context.Context) (err error) {
	log := slog.New(slog.NewTextHandler(o.out.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	closed := func(st store.Store) { err = errors.Join(err, st.Close()) }
	from, err := o.openSource(ctx, log)
	if err != nil {
		return usageError{fmt.Errorf("nothing was copied: %w", endedBy(ctx, err))}
	}
	defer closed(from)
	// Beyond what the source hands out until its servers are stopped, if they are not.
	first := from.State().Current + local.LeastAdvance
	to, err := o.config.open(ctx, o.to, first, log)
	if err != nil {
		return usageError{fmt.Errorf("nothing was copied: %w", endedBy(ctx, err))}
	}
	defer closed(to)
	bar := newBar(o.out.err, "migrate")
	defer bar.clear()
	r, err := transfer.Copy(ctx, from, to, bar.draw)
	bar.clear()
	if err != nil {
		return o.explain(endedBy(ctx, err))
	}
	fmt.Fprintf(o.out.err, "migrated %d objects, with %d versions, from %s to %s; both hold the same\n"+
		"resourceVersions were up to %d, and go on at %d\n", r.Objects, r.Versions, o.from, o.to, r.From, r.To+1)
	return nil
}

// openSource opens a store that must be there, and changes nothing in it.
func (o migrateOptions) openSource(ctx context.Context, log *slog.Logger) (store.Store, error) {
	if o.from.kind == inDirectory {
		return local.OpenReadOnly(local.Options{Dir: o.from.dir, Logger: log})
	}
	return o.config.openEtcd(ctx, o.from, 0, true, log)
}

// explain says of an error what became of the target, and what to do.
func (o migrateOptions) explain(err error) error {
	what := fmt.Errorf("migrate %s to %s: %w", o.from, o.to, err)
	switch {
	case errors.Is(err, transfer.ErrNotEmpty), errors.Is(err, transfer.ErrBehind):
		return usageError{fmt.Errorf("%w; name another directory, or another prefix of the cluster", what)}
	case errors.Is(err, transfer.ErrMoved):
		return fmt.Errorf("%w: stop its servers, and run the same command again, which brings over what is missing", what)
	case errors.Is(err, transfer.ErrDiffers):
		return fmt.Errorf("%w: keep the source, and don't use the target", what)
	}
	return fmt.Errorf("%w; the source is as it was; the same command goes on where this one ended", what)
}

// finished refuses a store to which not all was copied.
func (c config) finished(ctx context.Context, st store.Store) error {
	unfinished, err := transfer.Unfinished(ctx, st)
	if unfinished {
		err = fmt.Errorf("%s is the target of a migration that is not finished: run 'cmserver migrate' again", c.site)
	}
	return err
}
