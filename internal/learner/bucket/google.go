// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/googleapi"
)

const (
	schemeGoogle = "gs"
	// googleKey is the variable with the JSON of a service account's key. Google's libraries read keys only from files,
	// and artifacts.secretRef provides variables.
	googleKey = "GOOGLE_CREDENTIALS"
)

// openGoogle opens a bucket of Google Cloud Storage with the key in the environment, or else with the account of the
// pod.
func openGoogle(ctx context.Context, name string, variable func(string) string) (*blob.Bucket, error) {
	client, err := googleClient(ctx, variable)
	if err != nil {
		return nil, err
	}
	return gcsblob.OpenBucket(ctx, client, name, nil)
}

func googleClient(ctx context.Context, variable func(string) string) (*gcp.HTTPClient, error) {
	if variable("STORAGE_EMULATOR_HOST") != "" { // as Google's libraries do, which then send no key
		return gcp.NewAnonymousHTTPClient(gcp.DefaultTransport()), nil
	}
	key := variable(googleKey)
	if key == "" {
		found, err := google.FindDefaultCredentials(ctx, storage.ScopeReadWrite)
		if err != nil {
			return nil, fmt.Errorf("%w: give %s in the Secret of artifacts.secretRef, or "+
				"podOverrides[].serviceAccountName", err, googleKey)
		}
		return gcp.NewHTTPClient(gcp.DefaultTransport(), found.TokenSource)
	}
	given, err := google.CredentialsFromJSONWithType(ctx, []byte(key), google.ServiceAccount, storage.ScopeReadWrite)
	if err != nil {
		return nil, fmt.Errorf(
			"reading %s: %w: give the JSON of a service account's key in the Secret of artifacts.secretRef", googleKey, err)
	}
	return gcp.NewHTTPClient(gcp.DefaultTransport(), given.TokenSource)
}

// googleReason returns the text of an error of Google Cloud Storage, and whether it is one.
func googleReason(err error) (reason string, ok bool) {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Sprintf("%s (no token for the key)", refused.ErrorCode), true
	}
	if answer, ok := errors.AsType[*googleapi.Error](err); ok {
		return fmt.Sprintf("%s (HTTP status %d)", answer.Message, answer.Code), true
	}
	return "", false
}

// googleRefusesKey reports whether Google refuses the key. Its driver calls that a missing object.
func googleRefusesKey(err error) bool {
	if _, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return true
	}
	answer, ok := errors.AsType[*googleapi.Error](err)
	return ok && (answer.Code == http.StatusUnauthorized || answer.Code == http.StatusForbidden)
}

// googleLacksBucket reports whether the bucket does not exist. Only the text distinguishes this from a missing object.
func googleLacksBucket(err error) bool {
	if errors.Is(err, storage.ErrBucketNotExist) {
		return true
	}
	answer, ok := errors.AsType[*googleapi.Error](err)
	return ok && answer.Code == http.StatusNotFound && answer.Message == "The specified bucket does not exist."
}
