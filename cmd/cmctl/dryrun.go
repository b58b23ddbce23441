package main

import (
	"context"
	"fmt"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// What --dry-run takes.
const (
	dryRunNone   = "none"
	dryRunClient = "client" // nothing but reading
	dryRunServer = "server" // writes that the server checks and doesn't store
)

func validateDryRun(value string) error {
	switch value {
	case dryRunNone, dryRunClient, dryRunServer:
		return nil
	}
	return usagef("--dry-run takes none, client or server, not %q", value)
}

// addDryRun adds --dry-run, the same for all verbs that write.
func addDryRun(flags *pflag.FlagSet, value *string) {
	flags.StringVar(value, "dry-run", dryRunNone, "`none|client|server`: client shows what would be done, and only reads; server has the server check it, and stores nothing")
}

// dryly marks what is said about a dry run, as kubectl does.
func dryly(said, dryRun string) string {
	switch dryRun {
	case dryRunClient:
		return said + " (dry run)"
	case dryRunServer:
		return said + " (server dry run)"
	}
	return said
}

// would is what a note says is done: in a dry run, that it would be.
func would(done string, dry bool) string {
	if dry {
		return "would be " + done
	}
	return done
}

// tellResult prints the line of one object, unless objects are printed in its
// place, and what is to be known of one that doesn't last.
func (f *factory) tellResult(output, dryRun, object string, done outcome) error {
	f.tellDeletion(done.object, dryRun)
	verb := dryly(done.verb, dryRun)
	switch output {
	case "":
		return f.say("%s %s", object, verb)
	case "name":
		return f.say("%s", object)
	}
	if dryRun != dryRunNone {
		f.note("%s %s", object, verb)
	}
	return nil
}

// checkUnstored finds out whether a dry run of the server's changed the object after
// all: there are servers, and proxies, that pass over what they don't know. before is
// the object as it was, nil if there was none; answer is what the server said that it
// would be, nil of a deletion. A server that stored nothing answers with the version
// that was there, or with none.
func (f *factory) checkUnstored(ctx context.Context, object retry.Target[types.Document], before, answer types.Document) error {
	was := versionOf(before)
	if stored := answer.ResourceVersion(); stored != "" && stored != was {
		return fmt.Errorf("THE DRY RUN WAS STORED, as version %s; before it the version was %s: this server doesn't know dry runs", stored, was)
	}
	now, err := f.readOne(ctx, object)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("whether the dry run stored nothing can't be looked up: %w", err)
	case versionOf(now) == was:
		return nil
	case before != nil && answer != nil:
		f.note("warning: somebody else wrote %s during the dry run, which was made from version %s; the version is %s now", object.Object(), was, versionOf(now))
		return nil
	}
	return fmt.Errorf("THE DRY RUN MAY HAVE BEEN STORED: the version was %s and is %s now: either this server doesn't know dry runs, or somebody wrote at the same moment; look at it with 'cmctl get'", was, versionOf(now))
}

// versionOf is an object's version for a message.
func versionOf(d types.Document) string {
	if d == nil {
		return "none"
	}
	return d.ResourceVersion()
}
