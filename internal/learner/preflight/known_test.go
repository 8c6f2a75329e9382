// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// TestSharedCheck checks that the endpoint is asked only about features that another run has not found there, and that
// the other run is published together with the result.
func TestSharedCheck(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	all := featuresOf(plain(nil), needsOf(plain(nil)))
	missing := []capability.Feature{capability.GradientSum, capability.Repeats}
	shared := func(change func(*contract.Capabilities)) *contract.Capabilities {
		c := &contract.Capabilities{
			BaseURL: "http://u", Model: "m", ClientVersion: "v1", Connection: "c",
			SharedFrom: &contract.SharedCheck{Name: "first", CheckedAt: "2026-11-23T11:00:00Z"},
		}
		for _, f := range all {
			if !slices.Contains(missing, f) {
				c.Supported = append(c.Supported, string(f))
			}
		}
		if change != nil {
			change(c)
		}
		return c
	}
	for name, tc := range map[string]struct {
		shared, own *contract.Capabilities
		found       map[capability.Feature]capability.Support
		asked       [][]capability.Feature
		want        contract.Capabilities
	}{
		"nobody has checked": {
			asked: [][]capability.Feature{all},
			want:  contract.Capabilities{CheckedAt: "2026-11-23T12:00:00Z", ClientVersion: "v1", Connection: "c"},
		},
		"another run has": {
			shared: shared(nil), asked: [][]capability.Feature{missing},
			want: contract.Capabilities{CheckedAt: "2026-11-23T12:00:00Z", ClientVersion: "v1", Connection: "c",
				SharedFrom: shared(nil).SharedFrom},
		},
		"another run has, and the endpoint has changed": {
			shared: shared(nil), asked: [][]capability.Feature{missing},
			found: map[capability.Feature]capability.Support{capability.GradientSum: capability.Ignored},
			want: contract.Capabilities{CheckedAt: "2026-11-23T12:00:00Z", ClientVersion: "v1", Connection: "c",
				SharedFrom: shared(nil).SharedFrom, Ignored: []string{"gradient_sum"}},
		},
		"another version of the client has": {
			shared: shared(func(c *contract.Capabilities) { c.ClientVersion = "v0" }), asked: [][]capability.Feature{all},
			want: contract.Capabilities{CheckedAt: "2026-11-23T12:00:00Z", ClientVersion: "v1", Connection: "c"},
		},
		"a run at another endpoint has": {
			shared: shared(func(c *contract.Capabilities) { c.BaseURL = "http://other" }), asked: [][]capability.Feature{all},
			want: contract.Capabilities{CheckedAt: "2026-11-23T12:00:00Z", ClientVersion: "v1", Connection: "c"},
		},
		"an earlier attempt has, by the check of another run, with another version": {
			own: func() *contract.Capabilities {
				c := shared(func(c *contract.Capabilities) {
					c.ClientVersion, c.Connection, c.CheckedAt = "v0", "old", "2026-11-20T12:00:00Z"
				})
				c.Supported = append(c.Supported, "gradient_sum", "repeats")
				return c
			}(),
			want: contract.Capabilities{CheckedAt: "2026-11-20T12:00:00Z", ClientVersion: "v0", Connection: "old",
				SharedFrom: shared(nil).SharedFrom},
		},
		"an earlier attempt has, of a version that did not say when": {
			own:   &contract.Capabilities{BaseURL: "http://u", Model: "m", Supported: shared(nil).Supported},
			asked: [][]capability.Feature{missing},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{found: tc.found}
			c := check(f, func(file *contract.RunFile) {
				file.Version, file.Connection, file.SharedCapabilities, file.Capabilities = contract.FormatVersion, "c", tc.shared,
					tc.own
			})
			c.ClientVersion, c.Now = "v1", func() time.Time { return at }
			report, err := c.CheckFeatures(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range f.asked {
				slices.Sort(f.asked[i])
			}
			for i := range tc.asked {
				tc.asked[i] = slices.Sorted(slices.Values(tc.asked[i]))
			}
			if diff := cmp.Diff(tc.asked, f.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			got := c.Capabilities(report)
			if len(got.Supported)+len(got.Ignored) != len(all) {
				t.Errorf("%d features are published, want %d", len(got.Supported)+len(got.Ignored), len(all))
			}
			tc.want.BaseURL, tc.want.Model, tc.want.Supported = got.BaseURL, got.Model, got.Supported
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("published (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSharedCheckOfJSON checks that a check by another run does not make the learner assume that the endpoint reads
// protobuf.
func TestSharedCheckOfJSON(t *testing.T) {
	c := check(&fake{}, func(file *contract.RunFile) {
		file.SharedCapabilities = &contract.Capabilities{BaseURL: "http://u", Model: "m",
			Supported: []string{"optimizer_restore"}}
	})
	if known := c.Known(); known.Of(capability.OptimizerRestore) != capability.Supported ||
		known.Of(capability.Protobuf) != capability.Unknown {
		t.Errorf("known are %v, want optimizer_restore alone", known.Findings)
	}
}
