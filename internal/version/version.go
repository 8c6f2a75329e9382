// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package version has the version of this build. It imports no other package of the project.
package version

import "runtime/debug"

// version is set by the linker (-X) for released builds.
var version = ""

// String returns the released version, or the commit of the build if it was not released, or "devel" if neither is
// known.
func String() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
			return "devel-" + setting.Value[:12]
		}
	}
	return "devel"
}

// UserAgent returns the User-Agent of an HTTP client of the project.
func UserAgent(program string) string { return program + "/" + String() }
