package main

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
