package main

import (
	"fmt"
	"runtime/debug"

	"example.com/cmctl/pkg/server"
)

// buildVersion is set by release builds; otherwise the module's own is used.
var buildVersion string

// release is the version of this program, as the build recorded it.
func release() string {
	if buildVersion != "" {
		return buildVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// versionLine names the release, and the Kubernetes release whose API it serves.
func versionLine() string {
	return fmt.Sprintf("%s (Kubernetes API %s)", release(), server.Version(release()).GitVersion)
}
