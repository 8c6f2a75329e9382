// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// TestCheckOfBroker checks that the broker is asked only for findings that the run file lacks, and that the learner
// itself checks only features that the broker could not decide, that another version of the client has checked, or for
// which the run would be refused.
func TestCheckOfBroker(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	all := featuresOf(plain(nil), needsOf(plain(nil)))
	texts := func(features []capability.Feature) []string {
		var names []string
		for _, f := range features {
			names = append(names, string(f))
		}
		return slices.Sorted(slices.Values(names))
	}
	without := func(left ...string) []string {
		return slices.DeleteFunc(texts(all), func(name string) bool { return slices.Contains(left, name) })
	}
	const checkedAt = "2026-11-23T11:00:00Z"
	from := &contract.SharedCheck{Name: "prod", CheckedAt: checkedAt}
	found := func(ignored, unsupported, unknown []string) tinker.CheckResponse {
		return tinker.CheckResponse{Endpoint: "prod", ClientVersion: "v1", CheckedAt: checkedAt, Ignored: ignored,
			Unsupported: unsupported, Supported: without(slices.Concat(ignored, unsupported, unknown)...)}
	}
	shared := func(response tinker.CheckResponse) *contract.Capabilities {
		return &contract.Capabilities{BaseURL: "http://u", Model: "m", ClientVersion: "v1", SharedFrom: from,
			Supported: response.Supported, Ignored: response.Ignored, Unsupported: response.Unsupported}
	}
	other := found(nil, nil, nil)
	other.ClientVersion = "v0"
	for name, tc := range map[string]struct {
		shared *contract.Capabilities
		broker tinker.CheckResponse
		server map[capability.Feature]capability.Support
		// asked are the features for which the broker is asked, and checked the features that the learner itself checks.
		asked, checked []string
		ignored        []string
		from           *contract.SharedCheck
		refused        string
	}{
		"all is known by the run file": {shared: shared(found([]string{"ttl", "gradient_sum"}, nil, nil)),
			ignored: []string{"gradient_sum", "ttl"}, from: from},
		"nothing is": {broker: found([]string{"ttl"}, nil, nil), asked: texts(all), ignored: []string{"ttl"}, from: from},
		"a part is": {shared: shared(found(nil, nil, []string{"seed", "ttl"})), broker: found([]string{"ttl"}, nil, nil),
			asked: []string{"seed", "ttl"}, ignored: []string{"ttl"}, from: from},
		"one could not be decided": {broker: found(nil, nil, []string{"seed"}), asked: texts(all),
			checked: []string{"seed"}, from: from},
		"another version of the client has checked": {broker: other, asked: texts(all), checked: texts(all)},
		"what the run needs was repaired": {broker: found(nil, []string{"adam.beta1"}, nil), asked: texts(all),
			checked: []string{"adam.beta1"}, from: from},
		"what the run needs is refused": {broker: found(nil, []string{"adam.beta1"}, nil), asked: texts(all),
			server:  map[capability.Feature]capability.Support{"adam.beta1": capability.Unsupported},
			checked: []string{"adam.beta1"}, from: from, refused: "algorithm.optimizer.beta1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{broker: tc.broker, found: tc.server, failures: 2,
				failure: &client.Error{Category: tinker.CategoryServer}}
			if tc.asked == nil {
				f.failures = 0
			}
			c := check(f, func(file *contract.RunFile) { file.SharedCapabilities = tc.shared })
			c.Broker, c.ClientVersion, c.Now = f, "v1", func() time.Time { return at }
			report, err := c.CheckFeatures(t.Context())
			if tc.refused == "" && err != nil || tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)) {
				t.Fatalf("refused with %v, want %q", err, tc.refused)
			}
			one := func(calls [][]capability.Feature) []string {
				if len(calls) == 0 {
					return nil
				}
				return texts(calls[len(calls)-1])
			}
			if diff := cmp.Diff(tc.asked, one(f.askedBroker)); diff != "" {
				t.Errorf("asked the broker (-want +got):\n%s", diff)
			}
			if tc.asked != nil && len(f.askedBroker) != 3 {
				t.Errorf("the broker was asked %d times, want 3: it failed twice", len(f.askedBroker))
			}
			if diff := cmp.Diff(tc.checked, one(f.asked)); diff != "" || len(f.asked) > 1 {
				t.Errorf("checked in %d calls (-want +got):\n%s", len(f.asked), diff)
			}
			got := c.Capabilities(report)
			if diff := cmp.Diff(tc.from, got.SharedFrom); diff != "" || (got.CheckedAt == "") != (tc.checked == nil) {
				t.Errorf("published is a check of its own at %q and one of (-want +got):\n%s", got.CheckedAt, diff)
			}
			if diff := cmp.Diff(tc.ignored, got.Ignored); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
		})
	}
}
