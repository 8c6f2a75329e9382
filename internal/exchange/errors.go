// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import "errors"

// What a Client's calls fail with, besides the context's errors. All but the first two pass by
// themselves: the worker goes on, and calls again.
var (
	// ErrUnauthorized: the learner does not know the token.
	ErrUnauthorized = errors.New("the token is not this run's")
	// ErrForeign: the learner works on another run, or on another spec of it.
	ErrForeign = errors.New("the learner is another run's")
	// ErrFenced: the learner is an earlier attempt's than one that was heard of.
	ErrFenced = errors.New("the learner is of a superseded attempt")
	// ErrHelloRequired: the learner has not had this worker's Hello.
	ErrHelloRequired = errors.New("the learner wants Hello first")
	// ErrUnreachable: no answer came, or none from this run's learner by its certificate.
	ErrUnreachable = errors.New("the learner is out of reach")
	// ErrProtocol: the other side does not speak as agreed.
	ErrProtocol = errors.New("the message is not as agreed")
)

// IsFinal says whether an error of a Client's call will not pass: the worker is not of this run.
func IsFinal(err error) bool {
	return errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrForeign)
}
