package server

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// The Kubernetes release whose API is served, and the oldest one whose clients
// it is made for.
const (
	apiMajor    = "1"
	apiMinor    = "37"
	oldestMinor = "36"
)

// Version is what /version answers for a release of this project. Clients compare
// major and minor with their own.
func Version(release string) version.Info {
	set := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			set[s.Key] = s.Value
		}
	}
	return version.Info{
		Major:                 apiMajor,
		Minor:                 apiMinor,
		EmulationMajor:        apiMajor,
		EmulationMinor:        apiMinor,
		MinCompatibilityMajor: apiMajor,
		MinCompatibilityMinor: oldestMinor,
		GitVersion:            "v" + apiMajor + "." + apiMinor + ".0+cmserver-" + strings.Trim(release, "()"),
		GitCommit:             set["vcs.revision"],
		GitTreeState:          map[string]string{"true": "dirty", "false": "clean"}[set["vcs.modified"]],
		BuildDate:             cmp.Or(set["vcs.time"], "1970-01-01T00:00:00Z"),
		GoVersion:             runtime.Version(),
		Compiler:              runtime.Compiler,
		Platform:              runtime.GOOS + "/" + runtime.GOARCH,
	}
}
