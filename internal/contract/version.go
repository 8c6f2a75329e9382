// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"fmt"
)

// FormatVersion is the version in which this build begins runs. It is one number for all that the processes of a run
// exchange: run file, Play, the messages between learner and workers, the files of stored groups, and the digests that
// these contain. A run keeps the version that it began with (RunFile.Version) to its end, over upgrades and
// rollbacks. A build that begins runs in version 2 therefore reads and writes version 1 for the runs that began with
// it: CheckVersion accepts both, and code that differs branches on RunFile.Version.
const FormatVersion = 1

// ExitVersion is the exit code of a worker whose version the learner refuses, or that cannot read files of the learner
// or the manager: a worker of another build is needed.
const ExitVersion = 76

// ExitKeyRefused is the exit code of a worker whose API key is empty, or refused by the endpoint: another pod reads the
// Secret again.
const ExitKeyRefused = 78

// VersionError reports a version that its reader does not accept.
type VersionError struct {
	// Format names the versioned format, and Got is the version that was found.
	Format string
	Got    int
	// Accepted says who accepts which versions.
	Accepted string
}

// Error implements error.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%s has version %d, and %s", e.Format, e.Got, e.Accepted)
}

// IsVersionError reports whether err is due to a version that its reader does not accept.
func IsVersionError(err error) bool {
	_, ok := errors.AsType[*VersionError](err)
	return ok
}

// CheckVersion returns a *VersionError unless the build reads the version of a format.
func CheckVersion(format string, got int, reader string) error {
	if got == FormatVersion {
		return nil
	}
	return &VersionError{Format: format, Got: got, Accepted: fmt.Sprintf("%s reads version %d", reader, FormatVersion)}
}

// CheckRunVersion returns a *VersionError unless a format has the version of its run.
func CheckRunVersion(format string, got, run int) error {
	if got == run {
		return nil
	}
	return &VersionError{Format: format, Got: got, Accepted: fmt.Sprintf("the run has version %d", run)}
}
