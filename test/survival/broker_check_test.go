// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// withoutCheck removes the run's capabilities, so that the learner asks the broker of the endpoint shared.
func (b *brokered) withoutCheck() *brokered {
	b.file.Capabilities, b.endpoint = nil, "shared"
	return b
}

// probes are the tokens that the broker used to check the server.
func (b *brokered) probes() int64 {
	b.t.Helper()
	var used int64
	for _, day := range b.meter.Days() {
		for _, row := range b.meter.Usage(day) {
			if row.UID == broker.CheckUID {
				used += row.Tokens.Train + row.Tokens.Forward + row.Tokens.Prefill + row.Tokens.Sample
			}
		}
	}
	return used
}

// afterCheck counts the tokens of the check as the platform's: the run's share of the simulator's bill begins after it.
func (b *brokered) afterCheck() hook {
	return b.at("open.probed", -1, func(context.Context, func() error, string, int64) error {
		b.billed = b.sim.Stats().Billed
		return nil
	})
}

// checkUnprobed checks that no learner has checked the server: each model of a check is the broker's own.
func (b *brokered) checkUnprobed() {
	b.t.Helper()
	probes := 0
	upstream, err := client.New(client.Config{BaseURL: b.url, APIKey: apiKey})
	if err != nil {
		b.t.Fatal(err)
	}
	for run, err := range upstream.TrainingRuns(b.t.Context()) {
		if err != nil {
			b.t.Fatal(err)
		}
		if run.UserMetadata["purpose"] != "probe" {
			continue
		}
		if probes++; run.UserMetadata[broker.MetadataRun] != broker.CheckUID {
			b.t.Errorf("the model %s of a check is of the run %s", run.TrainingRunID, run.UserMetadata[broker.MetadataRun])
		}
	}
	if probes == 0 {
		b.t.Error("no model of a check is listed")
	}
}

// TestBrokerChecks starts a learner that knows nothing of its endpoint. The learner asks the broker, which checks once:
// the learner makes the models of its run alone, and its usage has no token of the check. A second run takes the
// results of the first check from the endpoint's status.
func TestBrokerChecks(t *testing.T) {
	t.Parallel()
	b := newBrokered(t).withoutCheck()
	b.startWorker("w0", behavior{})
	verdict := b.waitFor(b.startLearner(1, b.afterCheck()), contract.CauseCompleted)
	b.checkSame(verdict)
	b.checkUnprobed()
	found := verdict.Progress.Capabilities
	if found == nil || found.SharedFrom == nil || found.SharedFrom.Name != "shared" || found.CheckedAt != "" ||
		len(found.Ignored)+len(found.Unsupported) > 0 {
		t.Fatalf("the run reports %+v, want that the broker has checked", found)
	}
	b.checkUsage(verdict)

	report := b.current.Load().Report()
	of := &v1alpha1.TinkerEndpoint{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	for _, check := range report.Checks {
		of.Status.Capabilities = append(of.Status.Capabilities, v1alpha1.EndpointCapabilities{Model: check.Model,
			TrainModules: []v1alpha1.TrainModule{"Attention", "MLP", "Unembed"}, Supported: check.Supported,
			CheckedAt: &metav1.Time{Time: check.CheckedAt}, ClientVersion: check.ClientVersion,
			Connection: endpoint.ServerConnection(of)})
	}
	model := v1alpha1.Model{Name: b.file.Fixed.Model.Name,
		TrainModules: []v1alpha1.TrainModule{"Attention", "MLP", "Unembed"}}
	b.file.SharedCapabilities = endpoint.ShareCheck(endpoint.CheckOf(of, model, time.Now()), of.Name, b.front)
	if b.file.SharedCapabilities == nil {
		t.Fatalf("of %+v nothing is shared", report.Checks)
	}
	made := b.models()
	n := fixtures.Add(1)
	b.identify(fmt.Sprintf("%08x-0000-4000-8000-%012x", 0x1f3a9c2b+n, n))
	b.file.ArtifactsDir = t.TempDir()
	b.takeToken()
	b.roll()
	second := b.startLearner(1, b.dieAt("open.probed", -1))
	<-second.done
	if n := b.models() - made; n != 0 {
		t.Errorf("the check of the second run made %d models, want none", n)
	}
	if diff := cmp.Diff(found, second.verdict.Progress.Capabilities); diff != "" {
		t.Errorf("the second run knows (-first +second):\n%s", diff)
	}
}

// checkUsage checks that the broker counted the tokens that the run reports and, separately, the tokens of its own
// check.
func (b *brokered) checkUsage(verdict contract.Verdict) {
	b.t.Helper()
	b.ahead.Store(6)
	b.current.Load().FetchUnpolled(b.t.Context())
	var counted int64
	for _, day := range b.meter.Days() {
		for _, row := range b.meter.Usage(day) {
			if row.UID == b.file.Run.UID {
				counted += row.Tokens.Train + row.Tokens.Forward + row.Tokens.Prefill + row.Tokens.Sample
			}
		}
	}
	used := verdict.Progress.Usage
	if all := used.PromptTokens + used.SampledTokens + used.TrainedTokens; counted != all {
		b.t.Errorf("the broker counted %d tokens of the run, and the run %d", counted, all)
	}
	if b.probes() == 0 {
		b.t.Error("the usage of the check is not counted")
	}
}

// TestBrokerThatDiesDuringItsCheck kills the broker while it checks. The next broker checks again, and the run ends
// with the same weights.
func TestBrokerThatDiesDuringItsCheck(t *testing.T) {
	t.Parallel()
	b := newBrokered(t).withoutCheck()
	b.addFaults(fault.Rule{ID: "in the check", Op: "optim_step", Do: fault.Hold})
	b.startWorker("w0", behavior{})
	learner := b.startLearner(1, b.afterCheck())
	b.until("the check takes a step", func() bool {
		return slices.ContainsFunc(b.sim.Faults().List(), func(s fault.RuleStatus) bool { return s.Hits > 0 })
	})
	b.die()
	if err := b.sim.Faults().Release("in the check"); err != nil {
		t.Fatal(err)
	}
	verdict := b.waitFor(learner, contract.CauseCompleted)
	b.checkSame(verdict)
	b.checkUnprobed()
	if from := verdict.Progress.Capabilities.SharedFrom; from == nil || from.Name != "shared" {
		encoded, _ := json.Marshal(verdict.Progress.Capabilities)
		t.Errorf("the run reports %s, want that the broker has checked", encoded)
	}
}
