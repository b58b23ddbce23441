package main

import "github.com/spf13/pflag"

// applyFlags decide what apply makes of a manifest; diff takes the same to show
// it.
type applyFlags struct {
	force          bool
	keep           bool
	exact          bool
	serverSide     bool
	forceConflicts bool
	setName        string
	prune          bool
}

func (a *applyFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&a.force, "force", false, "where the live object was changed since the last apply, take the file's value")
	flags.BoolVar(&a.keep, "keep", false, "where the live object was changed since the last apply, keep the live value")
	flags.BoolVar(&a.exact, "exact", false, "remove the keys of data that the file lacks, whoever made them")
	flags.BoolVar(&a.serverSide, "server-side", false, "let the server merge, field by field, and record who applied which")
	flags.BoolVar(&a.forceConflicts, "force-conflicts", false, "with --server-side: take the fields that other managers own")
	flags.StringVar(&a.setName, "set", "", "`NAME` of the set that the objects belong to")
	flags.BoolVar(&a.prune, "prune", false, "delete the objects of the --set that are no longer given")
}

func (a *applyFlags) validate() error {
	switch {
	case a.force && a.keep:
		return usagef("--force and --keep contradict each other")
	case a.forceConflicts && !a.serverSide:
		return usagef("--force-conflicts goes with --server-side")
	case a.forceConflicts && a.keep:
		return usagef("--force-conflicts and --keep contradict each other")
	case a.serverSide && a.exact:
		return usagef("--exact doesn't go with --server-side, which leaves alone what others own")
	case a.prune && a.setName == "":
		return usagef("--prune takes --set NAME: it deletes members of a set that are no longer given, and nothing else")
	}
	return validateSetName(a.setName)
}
