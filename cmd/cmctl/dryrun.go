package main

import "github.com/spf13/pflag"

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

// dryly marks what is said about a dry run.
func dryly(said, dryRun string) string {
	if dryRun != dryRunNone {
		return said + " (dry run)"
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
