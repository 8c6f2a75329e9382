// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"errors"
	"net"
)

// IsDialError reports whether a request failed before there was a connection to send it over, so that it cannot have
// had an effect.
func IsDialError(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "dial"
}
