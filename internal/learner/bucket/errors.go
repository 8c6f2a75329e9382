// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/aws/smithy-go"
	"gocloud.dev/gcerrors"
)

// explain returns an error with the failed call, the cause and the repair. The text is the same each time for the same
// cause: it has no identifiers of requests.
func (b *Bucket) explain(act, name string, err error) error {
	if err == nil {
		return nil
	}
	what := fmt.Sprintf("%s %s", act, b.at(name))
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: no answer within %v", what, limit)
	}
	if refused, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("%s: %w", what, refused)
	}
	reason := reasonOf(err)
	switch {
	case lacksBucket(err):
		return fmt.Errorf("%s: %s: create the bucket or correct artifacts.url", what, reason)
	case refusesKey(err):
		return fmt.Errorf("%s: %s: correct the keys in the Secret of artifacts.secretRef, or what they are allowed to do",
			what, reason)
	default:
		return fmt.Errorf("%s: %s", what, reason)
	}
}

// codeOf returns the server's own code of an error; empty when the error is not an answer of the server.
func codeOf(err error) string {
	if s3, ok := errors.AsType[smithy.APIError](err); ok {
		return s3.ErrorCode()
	}
	if azure, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return azure.ErrorCode
	}
	return ""
}

// reasonOf returns an error's text without the parts that differ between two requests.
func reasonOf(err error) string {
	if s3, ok := errors.AsType[smithy.APIError](err); ok {
		if s3.ErrorMessage() == "" {
			return s3.ErrorCode()
		}
		return s3.ErrorCode() + ": " + s3.ErrorMessage()
	}
	if azure, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return fmt.Sprintf("%s (HTTP status %d)", azure.ErrorCode, azure.StatusCode)
	}
	if reason, ok := googleReason(err); ok {
		return reason
	}
	if operation, ok := errors.AsType[*smithy.OperationError](err); ok {
		return causeOf(operation).Error()
	}
	return err.Error()
}

// causeOf returns the innermost error.
func causeOf(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// isMissing reports whether an object does not exist.
func isMissing(err error) bool {
	return gcerrors.Code(err) == gcerrors.NotFound && !lacksBucket(err) && !refusesKey(err)
}

func lacksBucket(err error) bool {
	code := codeOf(err)
	return code == "NoSuchBucket" || code == "ContainerNotFound" || googleLacksBucket(err)
}

func refusesKey(err error) bool {
	switch codeOf(err) {
	case "AccessDenied", "Forbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken",
		"AuthenticationFailed", "AuthorizationFailure", "AuthorizationPermissionMismatch":
		return true
	}
	return gcerrors.Code(err) == gcerrors.PermissionDenied || googleRefusesKey(err)
}
