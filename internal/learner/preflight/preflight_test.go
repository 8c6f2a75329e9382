// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/httpstatus"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

// fake is both an endpoint and a hub, which answer after some failures.
type fake struct {
	server    tinker.ServerCapabilities
	serverErr error
	failures  int
	failure   error
	found     map[capability.Feature]capability.Support
	asked     [][]capability.Feature
	// broker is the broker's answer, and askedBroker has the features for which it was asked.
	broker      tinker.CheckResponse
	askedBroker [][]capability.Feature
	digest      string
	paused      []int
	blocked     []string
	// bases are the base models of checkpoints.
	bases map[string]string
}

func (f *fake) WeightsInfo(_ context.Context, path string) (tinker.WeightsInfo, error) {
	switch base := f.bases[path]; {
	case base != "":
		return tinker.WeightsInfo{BaseModel: base}, nil
	case strings.HasSuffix(path, "/silent"):
		return tinker.WeightsInfo{}, &client.Error{Category: tinker.CategoryUnsupported}
	default:
		return tinker.WeightsInfo{}, &client.Error{Category: tinker.CategoryNotFound}
	}
}

func (f *fake) Capabilities(context.Context) (tinker.ServerCapabilities, error) {
	return f.server, f.serverErr
}

func (f *fake) Ask(_ context.Context, features []capability.Feature) (tinker.CheckResponse, error) {
	f.askedBroker = append(f.askedBroker, features)
	if f.failures > 0 {
		f.failures--
		return tinker.CheckResponse{}, f.failure
	}
	return f.broker, nil
}

func (f *fake) Check(_ context.Context, features []capability.Feature) (capability.Report, error) {
	f.asked = append(f.asked, features)
	if f.failures > 0 {
		f.failures--
		return capability.Report{}, f.failure
	}
	report := capability.Report{Findings: map[capability.Feature]capability.Finding{}}
	for _, feature := range features {
		support := capability.Supported
		if s, ok := f.found[feature]; ok {
			support = s
		}
		report.Findings[feature] = capability.Finding{Support: support}
	}
	return report, nil
}

func (f *fake) Load(context.Context, fetch.Source) (tokenizer.Tokenizer, string, error) {
	if f.failures > 0 {
		f.failures--
		return nil, "", f.failure
	}
	return nil, f.digest, nil
}

var errFinal = errors.New("the key was refused")

func check(f *fake, change func(*contract.RunFile)) *Checker {
	return New(Config{
		File: plain(change), API: f, FeatureChecker: f, Hub: f, Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		Blocked: func(err error) {
			if err == nil {
				f.blocked = append(f.blocked, "")
			} else {
				f.blocked = append(f.blocked, err.Error())
			}
		},
		IsFinal: func(err error) bool { return errors.Is(err, errFinal) },
		Pause: func(ctx context.Context, failures int) error {
			f.paused = append(f.paused, failures)
			return ctx.Err()
		},
	})
}

func reasonOf(err error) problem.Code {
	var rejected *RejectedError
	if errors.As(err, &rejected) {
		return rejected.Code
	}
	return ""
}

func TestCheckModel(t *testing.T) {
	no, yes := false, true
	serves := func(trainable *bool, names ...string) tinker.ServerCapabilities {
		var server tinker.ServerCapabilities
		for _, name := range names {
			server.SupportedModels = append(server.SupportedModels, tinker.SupportedModel{ModelName: name, Trainable: trainable})
		}
		return server
	}
	outage := errors.New("the endpoint is unreachable")
	cases := map[string]struct {
		server tinker.ServerCapabilities
		err    error
		reason problem.Code
		want   error
	}{
		"the model is served":              {server: serves(nil, "x", "m")},
		"the model can be trained":         {server: serves(&yes, "m")},
		"the model cannot be trained":      {server: serves(&no, "m"), reason: problem.ModelUnknown},
		"the model is not served":          {server: serves(nil, "x"), reason: problem.ModelUnknown},
		"an endpoint without a list":       {server: serves(nil)},
		"an endpoint without the call":     {err: &client.Error{Category: tinker.CategoryNotFound}},
		"an endpoint that does not answer": {err: outage, want: outage},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := check(&fake{server: tc.server, serverErr: tc.err}, nil).CheckModel(t.Context())
			if waits := failure.CodeOf(err) == problem.ModelUnknown; waits != (tc.reason == problem.ModelUnknown) {
				t.Errorf("the run waits for its model: %v", waits)
			}
			if reasonOf(err) != tc.reason || (tc.want != nil && !errors.Is(err, tc.want)) ||
				(err == nil) != (tc.reason == "" && tc.want == nil) {
				t.Errorf("CheckModel = %v, want the reason %q or %v", err, tc.reason, tc.want)
			}
		})
	}
}

func TestCheckFeatures(t *testing.T) {
	outage := errors.New("the endpoint is unreachable")
	all := &contract.Capabilities{BaseURL: "http://u", Model: "m"}
	for _, feature := range capability.All() {
		all.Supported = append(all.Supported, string(feature))
	}
	refused := &contract.Capabilities{BaseURL: "http://u", Model: "m", Ignored: []string{"adam.beta1", "optimizer_restore",
		"seed"}}
	for _, feature := range all.Supported {
		if !slices.Contains(refused.Ignored, feature) {
			refused.Supported = append(refused.Supported, feature)
		}
	}
	cases := map[string]struct {
		fake  fake
		known *contract.Capabilities
		asked int
		// features are the features that are checked. They are not compared if it is nil.
		features []capability.Feature
		paused   []int
		reason   problem.Code
		err      error
	}{
		"all is supported":             {asked: 1},
		"what is known is not checked": {known: all},
		"an outage is waited for":      {fake: fake{failures: 2, failure: outage}, asked: 3, paused: []int{1, 2}},
		"a failure that lasts":         {fake: fake{failures: 1, failure: errFinal}, asked: 1, err: errFinal},
		"a feature that is needed": {
			fake: fake{found: map[capability.Feature]capability.Support{capability.Adam("beta1"): capability.Ignored}}, asked: 1,
			reason: problem.UnsupportedByEndpoint,
		},
		"an optimizer that is lost": {
			fake:   fake{found: map[capability.Feature]capability.Support{capability.OptimizerRestore: capability.Ignored}},
			asked:  1,
			reason: problem.OptimizerNotRestored,
		},
		"what an earlier attempt was refused for is checked again": {known: refused, asked: 1,
			features: []capability.Feature{capability.Adam("beta1"), capability.OptimizerRestore}},
		"a feature that is only reported": {fake: fake{found: map[capability.Feature]capability.Support{
			capability.Seed: capability.Ignored}}, asked: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := check(&tc.fake, func(f *contract.RunFile) { f.Capabilities = tc.known })
			report, err := c.CheckFeatures(t.Context())
			if reasonOf(err) != tc.reason || (tc.err != nil && !errors.Is(err, tc.err)) ||
				(err == nil) != (tc.reason == "" && tc.err == nil) {
				t.Errorf("CheckFeatures = %v, want the reason %q or %v", err, tc.reason, tc.err)
			}
			if len(tc.fake.asked) != tc.asked {
				t.Errorf("the endpoint is asked %d times, want %d", len(tc.fake.asked), tc.asked)
			} else if diff := cmp.Diff(tc.features, slices.Sorted(
				slices.Values(slices.Concat(tc.fake.asked...)))); tc.features != nil && diff != "" {
				t.Errorf("features (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.paused, tc.fake.paused); diff != "" {
				t.Errorf("pauses (-want +got):\n%s", diff)
			}
			if published := c.Capabilities(report) != nil; published != (tc.err == nil) {
				t.Errorf("capabilities are reported: %v", published)
			}
		})
	}
}

// TestUnknownFeatureIsCheckedAgain checks that an undecided feature is neither a reason to refuse the run nor reported
// to the manager, so that the next attempt checks it again.
func TestUnknownFeatureIsCheckedAgain(t *testing.T) {
	undecided := capability.Temperature
	sampled := func(f *contract.RunFile) { f.Evaluation.Environments[0].Sampling.Temperature = new(0.6) }
	first := &fake{found: map[capability.Feature]capability.Support{undecided: capability.Unknown}}
	checker := check(first, sampled)
	report, err := checker.CheckFeatures(t.Context())
	if err != nil {
		t.Fatalf("CheckFeatures = %v", err)
	}
	if len(first.asked) != 2 || !slices.Equal(first.asked[1], []capability.Feature{undecided}) {
		t.Errorf("the endpoint is asked for %v", first.asked)
	}
	known := checker.Capabilities(report)
	for _, list := range [][]string{known.Supported, known.Ignored, known.Unsupported} {
		if slices.Contains(list, string(undecided)) {
			t.Errorf("%s is reported: %+v", undecided, known)
		}
	}
	known.BaseURL, known.Model = "http://u", "m" // as the real checker reports them
	second := &fake{}
	checker = check(second, func(f *contract.RunFile) { sampled(f); f.Capabilities = known })
	report, err = checker.CheckFeatures(t.Context())
	if err != nil || len(second.asked) != 1 || !slices.Equal(second.asked[0], []capability.Feature{undecided}) {
		t.Errorf("the second attempt asks for %v, %v", second.asked, err)
	}
	if reported := checker.Capabilities(report); !slices.Contains(reported.Supported, string(undecided)) {
		t.Errorf("the second attempt reports %+v", reported)
	}
}

func TestPinTokenizer(t *testing.T) {
	outage := errors.New("the hub is unreachable")
	cases := map[string]struct {
		fake    fake
		given   *contract.Tokenizer
		earlier string
		want    string
		blocked []string
	}{
		"a model without its own": {},
		"the first attempt reads": {fake: fake{digest: "d"}, given: &contract.Tokenizer{}, want: "d",
			blocked: []string{""}},
		"a later one uses what it read": {given: &contract.Tokenizer{}, earlier: "d", want: "d"},
		"the spec's digest comes first": {given: &contract.Tokenizer{SHA256: "s"}, earlier: "d", want: "s"},
		"an outage is waited for": {
			fake: fake{digest: "d", failures: 1, failure: outage}, given: &contract.Tokenizer{}, want: "d",
			blocked: []string{outage.Error(), ""},
		},
		"a file that is missing is waited for": {
			fake:  fake{digest: "d", failures: 1, failure: &httpstatus.Error{Status: 404, Advice: "check it"}},
			given: &contract.Tokenizer{}, want: "d", blocked: []string{"the server answers 404 Not Found: check it", ""},
		},
		"a file that may not be read yet is waited for": {
			fake:  fake{digest: "d", failures: 1, failure: &httpstatus.Error{Status: 403, Advice: "accept its licence"}},
			given: &contract.Tokenizer{}, want: "d", blocked: []string{"the server answers 403 Forbidden: accept its licence",
				""},
		},
		"a file that has changed is waited for": {
			fake:  fake{digest: "d", failures: 2, failure: &fetch.DigestError{Got: "e"}},
			given: &contract.Tokenizer{SHA256: "d"}, want: "d", blocked: []string{(&fetch.DigestError{Got: "e"}).Error(),
				(&fetch.DigestError{Got: "e"}).Error(), ""},
		},
		"a file that is no tokenizer is waited for": {
			fake:  fake{digest: "d", failures: 1, failure: &fetch.ParseError{Err: outage}},
			given: &contract.Tokenizer{}, want: "d", blocked: []string{(&fetch.ParseError{Err: outage}).Error(), ""},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := check(&tc.fake, func(f *contract.RunFile) { f.Fixed.Model.Tokenizer, f.TokenizerSHA256 = tc.given, tc.earlier })
			got, err := c.PinTokenizer(t.Context())
			if got != tc.want || err != nil {
				t.Errorf("PinTokenizer = %q (%v), want %q", got, err, tc.want)
			}
			if diff := cmp.Diff(tc.blocked, tc.fake.blocked); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
