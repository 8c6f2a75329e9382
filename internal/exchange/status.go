// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// statuses pairs the codes that a server answers with the errors that a client returns.
var statuses = []struct {
	code codes.Code
	err  error
}{
	{codes.Unauthenticated, ErrUnauthorized},
	{codes.PermissionDenied, ErrForeign},
	{codes.FailedPrecondition, ErrFenced},
	{codes.Aborted, ErrHelloRequired},
	{codes.Unimplemented, ErrVersion},
	{codes.InvalidArgument, ErrProtocol},
	{codes.ResourceExhausted, ErrProtocol},
}

// errOtherRun is the answer to a worker of another run.
var errOtherRun = status.Error(codes.PermissionDenied, "this learner belongs to another run or to another spec")

// errFenced is the answer of a superseded learner to everything.
var errFenced = status.Error(codes.FailedPrecondition, "FENCED")

// clientError turns the error of a call into one of this package's, or ctx's.
func clientError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, own := range []error{ErrFenced, ErrForeign, ErrVersion, ErrProtocol} {
		if errors.Is(err, own) {
			return err
		}
	}
	for _, s := range statuses {
		if status.Code(err) == s.code {
			return fmt.Errorf("%w: %s", s.err, status.Convert(err).Message())
		}
	}
	return fmt.Errorf("%w: %s", ErrUnreachable, status.Convert(err).Message())
}
