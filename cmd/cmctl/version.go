package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// buildVersion is set by release builds; otherwise the module's own is used.
var buildVersion string

func version() string {
	if buildVersion != "" {
		return buildVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

type versionOptions struct {
	*factory
	clientOnly bool
	output     string
}

// versions is what -o prints.
type versions struct {
	ClientVersion string `json:"clientVersion"`
	Go            string `json:"goVersion"`
	Server        string `json:"server,omitempty"`
	ServerVersion string `json:"serverVersion,omitempty"`
}

func newVersion(f *factory) *cobra.Command {
	o := &versionOptions{factory: f}
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the versions of cmctl and of the server, and which server is meant",
		Example: "  cmctl version\n  cmctl version --client",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(o.output, "yaml", "json"); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.clientOnly, "client", false, "only cmctl's own version; asks no server")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "how to print: yaml or json (default text)")
	return cmd
}

func (o *versionOptions) run(ctx context.Context) error {
	v := versions{ClientVersion: version(), Go: runtime.Version()}
	var failed error
	if !o.clientOnly {
		conn, err := o.connect("version")
		if err != nil {
			return err
		}
		v.Server = conn.Target().String()
		info, err := conn.ServerVersion(ctx)
		if err != nil {
			failed = err // cmctl's own version is shown all the same
		} else {
			v.ServerVersion = info.GitVersion
		}
	}
	if err := o.print(v); err != nil {
		return err
	}
	return failed
}

func (o *versionOptions) print(v versions) error {
	if o.output != "" {
		return printValue(o.Out, o.output, v)
	}
	text := fmt.Sprintf("cmctl %s (%s)\n", v.ClientVersion, v.Go)
	if v.ServerVersion != "" {
		text += fmt.Sprintf("server %s at %s\n", v.ServerVersion, v.Server)
	}
	_, err := io.WriteString(o.Out, text)
	return err
}
