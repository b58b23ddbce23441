package main

import "github.com/spf13/cobra"

var annotationMarks = marks{
	verb: "annotate", noun: "annotation", section: "metadata.annotations",
	set: "annotated", removed: "annotated", faults: func(string) []string { return nil },
}

func newAnnotate(f *factory) *cobra.Command {
	o := &markOptions{factory: f, marks: annotationMarks}
	cmd := &cobra.Command{
		Use:   "annotate {NAME... | -f FILE... | -l SELECTOR | --field-selector SELECTOR | --all} KEY=VALUE... KEY-...",
		Short: "Set and remove annotations of ConfigMaps",
		Long: `Set and remove annotations of ConfigMaps. KEY- removes one. VALUE is everything
after the first =, commas included. An annotation that has another value already is
left as it is, and that is an error, unless --overwrite is given.`,
		Example: `  cmctl annotate flags owner=team-a
  cmctl annotate flags owner=team-b --overwrite
  cmctl annotate -f cm.yaml commit=4f1c
  cmctl annotate --all owner-
  cmctl annotate flags --list`,
		RunE: o.runE,
	}
	o.addFlags(cmd.Flags())
	return cmd
}
