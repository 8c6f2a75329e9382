// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ors

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/ors/orstest"
)

// newHosted returns a hosting service with the deployment Owner/Sums, which has the environments sums and hard, and
// Owner/Private, which only the key of its owner may use.
func newHosted() *orstest.Hosted {
	hard := newServer()
	hard.Name, hard.Splits = "hard", map[string]int64{"test": 3}
	return &orstest.Hosted{
		Keys: map[string][]string{"user-key": {"Owner/Sums"}, "owner-key": {"Owner/Sums", "Owner/Private"}},
		Deployments: map[string][]*orstest.Server{
			"Owner/Sums": {newServer(), hard}, "Owner/Private": {newServer()},
		},
	}
}

// connectHosted serves the two hosts of a hosting service, each at a listener of its own, and returns a backend that
// finds them by the host names that belong to a base URL.
func connectHosted(t *testing.T, service *orstest.Hosted, name string, options Options) *Backend {
	t.Helper()
	hosts, err := contract.HostsOf("http://hosting.test")
	if err != nil {
		t.Fatalf("HostsOf: %v", err)
	}
	hosted, err := contract.ParseHosted(name)
	if err != nil {
		t.Fatalf("ParseHosted: %v", err)
	}
	listeners := map[string]string{}
	for address, handler := range map[string]http.Handler{hosts.API: service.API(), hosts.Sessions: service} {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		listeners[strings.TrimPrefix(address, "http://")+":80"] = server.Listener.Addr().String()
	}
	options.BaseURL, options.Deployment, options.Environment = hosts.Sessions, hosted.Deployment, hosted.Variant
	options.HTTP = dialing(t, listeners)
	b, err := New(options)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	b.pace = pace{ping: time.Hour, idle: 10 * time.Second, retry: fastRetry}
	return b
}

// TestHosted plays an episode with the default environment of a deployment, and one with a variant.
func TestHosted(t *testing.T) {
	cases := map[string]struct {
		splits []environment.Split
		split  string
		// redirects says that paths name no environment, so that the service redirects them to its first environment.
		redirects bool
	}{
		"Owner/Sums": {splits: []environment.Split{{Name: "test", Tasks: 10}, {Name: "train", Tasks: 90}},
			split: "train", redirects: true},
		"Owner/Sums@hard": {splits: []environment.Split{{Name: "test", Tasks: 3}}, split: "test"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			service := newHosted()
			b := connectHosted(t, service, name, Options{
				APIKey: "user-key", Secrets: []Secret{{Name: "JUDGE", Value: "secret", AllowedHosts: []string{"api.judge.test"}}},
			})
			splits, err := b.Splits(t.Context())
			if diff := cmp.Diff(tc.splits, splits); err != nil || diff != "" {
				t.Errorf("Splits: %v (-want +got):\n%s", err, diff)
			}
			opened, err := b.Open(t.Context(), environment.Task{Split: tc.split, Index: 2})
			if err != nil {
				t.Fatalf("Open: %v", err)
			}
			if _, err := opened.Messages(t.Context()); err != nil {
				t.Errorf("Messages: %v", err)
			}
			if tools, err := opened.Tools(t.Context()); err != nil || len(tools) != 3 {
				t.Errorf("Tools = %v, %v, want three", tools, err)
			}
			opened.(*session).ping(t.Context())
			result, err := opened.Call(t.Context(), chat.ToolCall{Name: "submit", Arguments: `{"answer":"3"}`})
			if diff := cmp.Diff([]environment.Reward{{Value: 1}}, result.Rewards); err != nil || diff != "" || !result.Done {
				t.Errorf("Call = %+v, %v; rewards (-want +got):\n%s", result, err, diff)
			}
			wantSecrets := map[string]orstest.HostedSecret{"JUDGE": {Value: "secret",
				AllowedDomains: []string{"api.judge.test"}}}
			if diff := cmp.Diff(wantSecrets, service.Secrets(opened.(*session).id)); diff != "" {
				t.Errorf("secrets of the session (-want +got):\n%s", diff)
			}
			opened.Close(t.Context())
			if service.Places() != 0 {
				t.Errorf("%d sessions still take a place", service.Places())
			}
			checkHostedRequests(t, service, tc.redirects)
		})
	}
}

// checkHostedRequests checks that all requests went to the host of sessions with the key and the deployment, that
// secrets went nowhere but into new sessions, and that each redirected request arrived again as it was.
func checkHostedRequests(t *testing.T, service *orstest.Hosted, redirects bool) {
	t.Helper()
	requests := service.Requests()
	redirected := 0
	for i, r := range requests {
		if r.Host != "sessions.hosting.test" || r.Header.Get("X-API-Key") != "user-key" ||
			r.Header.Get("X-Deployment") != "Owner/Sums" {
			t.Errorf("%s %s went to %s with key %q for deployment %q", r.Method, r.Path, r.Host, r.Header.Get("X-API-Key"),
				r.Header.Get("X-Deployment"))
		}
		if begins := r.Path == "/create_session" || r.Path == "/create"; begins != (r.Header.Get("X-Secrets") != "") {
			t.Errorf("%s %s has the secrets %q", r.Method, r.Path, r.Header.Get("X-Secrets"))
		}
		if r.Status != http.StatusPermanentRedirect {
			continue
		}
		redirected++
		next := requests[i+1]
		if next.Method != r.Method || next.Body != r.Body || next.Path != "/sums"+r.Path ||
			next.Header.Get("X-Session-ID") != r.Header.Get("X-Session-ID") {
			t.Errorf("%s %s with body %s was followed by %s %s with body %s", r.Method, r.Path, r.Body, next.Method, next.Path,
				next.Body)
		}
	}
	if (redirected > 0) != redirects {
		t.Errorf("%d requests were redirected", redirected)
	}
}

// TestHostedRefusals checks that an error for a refusal of the service names the field and the repair, whether splits
// are listed, the service is checked or a session is opened.
func TestHostedRefusals(t *testing.T) {
	cases := map[string]struct {
		name, key string
		want      []string
		permanent bool
	}{
		"without a key": {name: "Owner/Sums", want: []string{"401", "ors.apiKeySecretKeyRef is not set",
			"give the Secret"}},
		"with a wrong key": {name: "Owner/Sums", key: "old-key", want: []string{"401", "Invalid API key",
			"check the key that ors.apiKeySecretKeyRef names"}},
		"with another owner's key": {name: "Owner/Private", key: "user-key", want: []string{"403", "ors.apiKeySecretKeyRef",
			`may not use "Owner/Private"`, "ors.name"}},
		"for an unknown deployment": {name: "Owner/Sumz", key: "user-key", permanent: true,
			want: []string{"404", "Deployment not found", `ors.name is "Owner/Sumz"`, "check its spelling"}},
		"for an unknown environment": {name: "Owner/Sums@easy", key: "user-key", permanent: true,
			want: []string{"404", `ors.name is "Owner/Sums@easy"`, "sums, hard"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			service := newHosted()
			b := connectHosted(t, service, tc.name, Options{APIKey: tc.key})
			_, splitsErr := b.Splits(t.Context())
			_, openErr := b.Open(t.Context(), environment.Task{Split: "test", Index: 2})
			errs := map[string]error{"Splits": splitsErr, "Open": openErr}
			if !strings.Contains(tc.name, "@") { // A check makes a session and begins no task.
				errs["Check"] = b.Check(t.Context())
			}
			for method, err := range errs {
				var fault *environment.Fault
				if !errors.As(err, &fault) || fault.Permanent != tc.permanent {
					t.Errorf("%s: %v, want a fault whose Permanent is %v", method, err, tc.permanent)
					continue
				}
				for _, want := range tc.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %v, want an error with %q", method, err, want)
					}
				}
				if key := tc.key; key != "" && strings.Contains(err.Error(), key) {
					t.Errorf("%s: %v, which shows the key", method, err)
				}
			}
			if service.Places() != 0 {
				t.Errorf("%d sessions still take a place", service.Places())
			}
		})
	}
}

// TestHostedCapacity fills the only place of a service: a second session waits as long as the service asks for, and is
// opened once the place is free.
func TestHostedCapacity(t *testing.T) {
	t.Parallel()
	service := newHosted()
	// The service's clock differs from this machine's.
	service.Capacity, service.RetryAfter, service.Date = 1, "Sun, 22 Nov 2026 12:00:01 GMT",
		"Sun, 22 Nov 2026 12:00:00 GMT"
	b := connectHosted(t, service, "Owner/Sums", Options{APIKey: "user-key", CreateTimeout: time.Minute})
	first, err := b.Open(t.Context(), environment.Task{Split: "train"})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	requests := len(service.Requests())
	if err := b.Check(t.Context()); err != nil {
		t.Errorf("Check of a service at its capacity: %v", err)
	}
	if sent := len(service.Requests()) - requests; sent != 1 {
		t.Errorf("Check sent %d requests to a service at its capacity, which is available; want one", sent)
	}
	// The first session ends once the second was refused.
	var once sync.Once
	service.Refused = func() { once.Do(func() { go first.Close(context.Background()) }) }
	before := time.Now()
	second, err := b.Open(t.Context(), environment.Task{Split: "train"})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	second.Close(t.Context())
	if took := time.Since(before); took < time.Second {
		t.Errorf("the session was asked for again within %v, though the service asked for a second", took)
	}
}
