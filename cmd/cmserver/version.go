package main

import "runtime/debug"

// release is the version of this program, as the build recorded it.
func release() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
