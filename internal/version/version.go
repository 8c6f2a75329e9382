// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package version says which build this is. It imports nothing of the project.
package version

import "runtime/debug"

// version is set by the linker (-X) for released builds.
var version = ""

// String returns the released version, else the commit that was built, else "devel".
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
