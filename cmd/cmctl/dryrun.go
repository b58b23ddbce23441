package main

import (
	"example.com/cmctl/pkg/client"
	"github.com/spf13/pflag"
)

// dryRunFlag is --dry-run, the same for all verbs that write.
type dryRunFlag string

func (d *dryRunFlag) add(flags *pflag.FlagSet) {
	flags.StringVar((*string)(d), "dry-run", "none", "client: show what would be done; server: let the server check it too; nothing is stored")
}

func (d dryRunFlag) validate() error {
	switch d {
	case "none", "client", "server":
		return nil
	}
	return usagef("--dry-run takes none, client or server, not %q", string(d))
}

// client tells that no write is to be sent at all.
func (d dryRunFlag) client() bool { return d == "client" }

// server makes every write of a client a dry run, if that was asked for.
func (d dryRunFlag) server(o *client.Options) { o.DryRun = d == "server" }

// suffix is what is said after the result.
func (d dryRunFlag) suffix() string {
	switch d {
	case "client":
		return " (dry run)"
	case "server":
		return " (server dry run)"
	}
	return ""
}
