package main

import (
	"context"
	"fmt"

	"example.com/cmctl/pkg/client"
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
	flags.StringVar(value, "dry-run", dryRunNone, "client: show what would be done, and only read; server: let the server check it, and store nothing")
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

// tellResult prints the line of one object, unless objects are printed in its
// place.
func (f *factory) tellResult(output, dryRun, object, verb string) error {
	verb = dryly(verb, dryRun)
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

// checkUnstored looks whether a dry run of the server's changed the object after
// all: there are servers, and proxies, that pass over what they don't know.
// before is the object as it was, nil if there was none.
func (f *factory) checkUnstored(ctx context.Context, conn *connection, object *client.Object, before types.Document) error {
	now, err := retry.Read(ctx, object, f.retryOptions(f.progress(object)))
	if apierrors.IsNotFound(err) {
		now, err = nil, nil
	}
	if err != nil || versionOf(now) == versionOf(before) {
		return err
	}
	return fmt.Errorf("THE DRY RUN MAY HAVE BEEN STORED: %s on %s was at version %s and is at version %s now: either this server doesn't know dry runs, or somebody wrote at the same moment; look at it with 'cmctl get'",
		object.Object(), conn.Target(), versionOf(before), versionOf(now))
}

// versionOf is an object's version for a message.
func versionOf(d types.Document) string {
	if d == nil {
		return "none"
	}
	return d.ResourceVersion()
}
