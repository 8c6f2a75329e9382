// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/learner/bucket"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket/buckettest"
)

func TestObjectsAtGoogle(t *testing.T) {
	buckettest.StartGoogle(t, nil)
	b, other := open(t, buckettest.GoogleURL(buckettest.Name, "a/b")), open(t, buckettest.GoogleURL(buckettest.Name, "a"))
	checkObjects(t, b)
	if data, err := other.Get(t.Context(), "b/x/1"); string(data) != "x/1" {
		t.Errorf("the object below another prefix is %q (%v)", data, err)
	}
}

// TestErrorsOfGoogle checks that refusals are reported as such. Google's driver takes them for missing objects.
func TestErrorsOfGoogle(t *testing.T) {
	refusing := func(status int) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_, _ = w.Write([]byte(`{"error": {"message": "The message."}}`))
			})
		}
	}
	cases := map[string]struct {
		change func(http.Handler) http.Handler
		bucket string
		want   string
	}{
		"no bucket": {nil, "no-bucket", "create the bucket or correct artifacts.url"},
		"forbidden": {refusing(http.StatusForbidden), buckettest.Name,
			"The message. (HTTP status 403): correct the keys in the Secret of artifacts.secretRef"},
		"unauthorized": {refusing(http.StatusUnauthorized), buckettest.Name,
			"The message. (HTTP status 401): correct the keys"},
		"another error": {refusing(http.StatusBadRequest), buckettest.Name, "The message. (HTTP status 400)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			buckettest.StartGoogle(t, tc.change)
			b := open(t, buckettest.GoogleURL(tc.bucket, "p"))
			if err := b.Put(t.Context(), "x", nil); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Put = %v, want %q", err, tc.want)
			}
			if err := b.Check(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Check = %v, want %q", err, tc.want)
			}
			if tc.change == nil {
				return // Google's client reports a missing bucket only when it writes or lists.
			}
			if _, err := b.Get(t.Context(), "x"); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Get = %v, which hides the cause", err)
			}
			if _, err := b.List(t.Context(), ""); err == nil {
				t.Error("List = nil, want an error")
			}
		})
	}
}

func TestKeysOfGoogle(t *testing.T) {
	variables := map[string]string{"GOOGLE_CREDENTIALS": "{}"}
	if _, err := bucket.Open(t.Context(), buckettest.GoogleURL("b", ""),
		func(name string) string { return variables[name] }); err == nil ||
		!strings.Contains(err.Error(), "artifacts.secretRef") {
		t.Errorf("Open with an invalid key = %v, want the repair", err)
	}
}
