// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"fmt"
)

// The versions of the formats that processes of different builds exchange. A build writes its own version, and reads
// that and the one before it.
const (
	// ExchangeVersion is the version of the protocol between learner and workers.
	ExchangeVersion = 1
	// PlayVersion is the version of Play.
	PlayVersion = 1
	// GroupVersion is the version of the files that workers keep finished groups in.
	GroupVersion = 1
)

// ExitVersion is the exit code of a worker whose version the learner refuses, or that cannot read what the learner or
// the manager wrote: a worker of another build is needed.
const ExitVersion = 76

// VersionError reports a version that this build does not read.
type VersionError struct {
	// Format is what has the version, and Reader the one who cannot read it.
	Format, Reader string
	// Got is the version that was found, and Own the one that the reader writes.
	Got, Own int
}

// Error implements error.
func (e *VersionError) Error() string {
	if e.Own <= 1 {
		return fmt.Sprintf("%s has version %d, and %s reads version %d", e.Format, e.Got, e.Reader, e.Own)
	}
	return fmt.Sprintf("%s has version %d, and %s reads versions %d and %d", e.Format, e.Got, e.Reader, e.Own-1, e.Own)
}

// IsVersionError reports whether err is due to a version that this build does not read.
func IsVersionError(err error) bool {
	var version *VersionError
	return errors.As(err, &version)
}

// CheckVersion returns a *VersionError unless the version of a format is the reader's own or the one before it.
// Versions count from 1.
func CheckVersion(format string, got, own int, reader string) error {
	if got >= 1 && (got == own || got == own-1) {
		return nil
	}
	return &VersionError{Format: format, Reader: reader, Got: got, Own: own}
}
