// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/learner/bucket"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket/buckettest"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport/transporttest"
)

func open(t *testing.T, address string) *bucket.Bucket {
	t.Helper()
	b, err := bucket.Open(t.Context(), address, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestObjects(t *testing.T) {
	checkObjects(t, open(t, buckettest.Start(t, nil).URL("a/b")))
}

// checkObjects checks the guarantees of a store.
func checkObjects(t *testing.T, b *bucket.Bucket) {
	t.Helper()
	ctx := t.Context()
	if err := b.Check(ctx, "check"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(ctx, "x/1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an object that does not exist is read: %v", err)
	}
	if err := b.Create(ctx, "x/1", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := b.Create(ctx, "x/1", []byte("two")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("an object is created twice: %v", err)
	}
	if data, err := b.Get(ctx, "x/1"); string(data) != "one" {
		t.Errorf("the object is %q (%v)", data, err)
	}
	for _, name := range []string{"x/1", "x/2", "y"} {
		if err := b.Put(ctx, name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	names, err := b.List(ctx, "x/")
	if diff := cmp.Diff([]string{"x/1", "x/2"}, names); diff != "" || err != nil {
		t.Errorf("objects below x/ (-want +got; %v):\n%s", err, diff)
	}
	if err := errors.Join(b.Delete(ctx, "y"), b.Delete(ctx, "y")); err != nil {
		t.Errorf("deleting twice: %v", err)
	}
}

func TestPrefixesAreSeparate(t *testing.T) {
	server := buckettest.Start(t, nil)
	first, second := open(t, server.URL("one")), open(t, server.URL("two"))
	if err := first.Create(t.Context(), "x", nil); err != nil {
		t.Fatal(err)
	}
	if err := second.Create(t.Context(), "x", nil); err != nil {
		t.Errorf("an object of another prefix is in the way: %v", err)
	}
}

// TestCheckRefusesServers starts servers that lack something that concurrent learners depend on.
func TestCheckRefusesServers(t *testing.T) {
	cases := map[string]struct {
		change func(next http.Handler) http.Handler
		want   string
	}{
		"without conditional writes": {func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Del("If-None-Match")
				next.ServeHTTP(w, r)
			})
		}, "If-None-Match"},
		"that reads what was before": {func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet && !r.URL.Query().Has("list-type") {
					r.URL.Path += ".before"
				}
				next.ServeHTTP(w, r)
			})
		}, "does not return an object that was just written"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := open(t, buckettest.Start(t, tc.change).URL("")).Check(t.Context(), "check")
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "artifacts.claimName") {
				t.Errorf("Check = %v, want the reason %q and the repair", err, tc.want)
			}
		})
	}
}

func TestErrorsNameTheRepair(t *testing.T) {
	server := buckettest.Start(t, nil)
	refusing := func(status int, code string) func(http.Handler) http.Handler {
		var requests atomic.Int64
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Amz-Request-Id", strings.Repeat("x", int(requests.Add(1))))
				w.WriteHeader(status)
				_, _ = w.Write([]byte("<Error><Code>" + code + "</Code><Message>The message.</Message></Error>"))
			})
		}
	}
	cases := map[string]struct {
		address string
		want    string
	}{
		"no bucket": {strings.Replace(server.URL("p"), "s3://"+buckettest.Name, "s3://no-bucket", 1),
			"create the bucket or correct artifacts.url"},
		"refused key": {buckettest.Start(t, refusing(http.StatusForbidden, "AccessDenied")).URL("p"),
			"AccessDenied: The message.: correct the keys in the Secret of artifacts.secretRef"},
		"other error": {buckettest.Start(t, refusing(http.StatusBadRequest, "InvalidRequest")).URL("p"),
			"InvalidRequest: The message."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := open(t, tc.address)
			first, second := b.Put(t.Context(), "x", nil), b.Put(t.Context(), "x", nil)
			if first == nil || !strings.Contains(first.Error(), tc.want) {
				t.Errorf("Put = %v, want %q", first, tc.want)
			} else if first.Error() != second.Error() {
				t.Errorf("one cause has two texts:\n%v\n%v", first, second)
			}
			if _, err := b.Get(t.Context(), "x"); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Get = %v, which hides the cause", err)
			}
		})
	}
}

// TestAuthorityThatIsNotTrusted checks that the error of a store with a certificate of a private authority has the
// code for that.
func TestAuthorityThatIsNotTrusted(t *testing.T) {
	server := transporttest.PrivateServer(t)
	plain := buckettest.Start(t, nil).URL("p")
	address, err := url.Parse(plain)
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Set("endpoint", server.URL)
	address.RawQuery = query.Encode()
	err = open(t, address.String()).Put(t.Context(), "x", nil)
	if got := transport.Refine(problem.ArtifactsBlocked, err); got != problem.ArtifactsAuthorityUnknown {
		t.Errorf("Put = %v, with the code %s, want %s", err, got, problem.ArtifactsAuthorityUnknown)
	}
}

// TestServerThatIsBusy answers every second request with a 503.
func TestServerThatIsBusy(t *testing.T) {
	var requests atomic.Int64
	b := open(t, buckettest.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1)%2 == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = w.Write([]byte("<Error><Code>SlowDown</Code></Error>"))
				return
			}
			next.ServeHTTP(w, r)
		})
	}).URL("p"))
	if err := b.Put(t.Context(), "x", []byte("data")); err != nil {
		t.Fatal(err)
	}
	if data, err := b.Get(t.Context(), "x"); string(data) != "data" {
		t.Errorf("the object is %q (%v)", data, err)
	}
}
