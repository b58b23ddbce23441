package main

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/version"
)

// The Kubernetes release whose API is served.
const (
	apiMajor = "1"
	apiMinor = "37"
)

// release is the version of this program, as the build recorded it.
func release() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// versionInfo is what /version answers. Clients compare major and minor with
// their own.
func versionInfo() version.Info {
	set := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			set[s.Key] = s.Value
		}
	}
	tree := map[string]string{"true": "dirty", "false": "clean"}[set["vcs.modified"]]
	build := "devel"
	if r := release(); r != "(devel)" {
		build = r
	}
	return version.Info{
		Major:        apiMajor,
		Minor:        apiMinor,
		GitVersion:   "v" + apiMajor + "." + apiMinor + ".0+cmserver-" + build,
		GitCommit:    set["vcs.revision"],
		GitTreeState: tree,
		BuildDate:    cmp.Or(set["vcs.time"], "1970-01-01T00:00:00Z"),
		GoVersion:    runtime.Version(),
		Compiler:     runtime.Compiler,
		Platform:     runtime.GOOS + "/" + runtime.GOARCH,
	}
}
