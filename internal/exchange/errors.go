// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import "errors"

// The errors of a Client's calls, besides the context's. All but the first three pass by themselves: the worker
// continues, and calls again.
var (
	// ErrUnauthorized means that the learner does not know the token.
	ErrUnauthorized = errors.New("the token is not this run's")
	// ErrForeign means that the learner works on another run, or on another spec of it.
	ErrForeign = errors.New("the learner belongs to another run")
	// ErrVersion means that learner and worker have run files of different versions: another worker is needed.
	ErrVersion = errors.New("learner and worker do not use the same format version")
	// ErrFenced means that a later attempt of the learner is known.
	ErrFenced = errors.New("the learner belongs to a superseded attempt")
	// ErrHelloRequired means that the learner has not received this worker's Hello.
	ErrHelloRequired = errors.New("the learner requires Hello first")
	// ErrUnreachable means that no reply came, or that the server does not have the certificate of this run's learner.
	ErrUnreachable = errors.New("the learner is unreachable")
	// ErrProtocol means that a message breaks the protocol.
	ErrProtocol = errors.New("the message breaks the protocol")
)

// IsFinal reports whether an error of a Client's call will not pass: the worker does not belong to this run, or is of
// the wrong build for it.
func IsFinal(err error) bool {
	return errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrForeign) || errors.Is(err, ErrVersion)
}
