// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// withPenalty adds a KL penalty to the small run.
func withPenalty(reference algorithm.Reference) func(*contract.RunFile) {
	return func(f *contract.RunFile) {
		f.Fixed.Algorithm.KL = &algorithm.KL{Coefficient: 0.2, Discount: 0.5, Reference: &reference}
	}
}

// TestKLPenalty trains with a penalty against the base model. Learner and worker die; digests, weights, metrics and
// used tokens equal the undisturbed run's.
func TestKLPenalty(t *testing.T) {
	t.Parallel()
	base := algorithm.Reference{Model: tinkersim.ModelName}
	free := newFixture(t, nil)
	free.startRolloutWorker("w0")
	without := free.outcome(free.waitFor(free.startLearner(1, nil), contract.CauseCompleted))

	undisturbed := newFixture(t, withPenalty(base))
	undisturbed.startRolloutWorker("w0")
	want := undisturbed.outcome(undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted))
	if want.adapter == without.adapter {
		t.Errorf("the weights equal the weights of a run without a penalty: got %v for both", want.adapter)
	}
	checkPenaltyMetrics(t, want.metrics)
	// The first step has the same samples as without a penalty. The tokens of the reference count apart.
	first, plain := want.metrics[0], without.metrics[0]
	for _, name := range []string{"batch/prompt_tokens", "batch/sampled_tokens"} {
		if first[name] != plain[name] {
			t.Errorf("step 1 has %s of %v, without a penalty %v", name, first[name], plain[name])
		}
	}
	read := 0.0
	for _, line := range want.metrics {
		read += line["batch/reference_tokens"] + line["batch/members"] // a sampled token comes with each sequence
	}
	if got := want.usage.ReferenceTokens; float64(got) < read || read == 0 || without.usage.ReferenceTokens != 0 {
		t.Errorf("%d tokens of the reference were used, and %d without a penalty; want %v at least, and 0", got,
			without.usage.ReferenceTokens, read)
	}
	for _, point := range []string{"open.saved", "step.sampled", "row.written", "save.answered"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, withPenalty(base))
			kill := w.startRolloutWorker("w0")
			w.startRolloutWorker("w1")
			step := int64(2)
			if point == "open.saved" {
				step = -1
			}
			<-w.startLearner(1, w.dieAt(point, step)).done
			kill()
			w.startRolloutWorker("w2")
			w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
			if diff := cmp.Diff(undisturbed.goldenRows(), w.goldenRows()); diff != "" {
				t.Errorf("rows (-undisturbed +got):\n%s", diff)
			}
		})
	}
}

// checkPenaltyMetrics expects the distance from the base model to be 0 at the first step, when the policy is the base
// model except for rounding, and then to grow.
func checkPenaltyMetrics(t *testing.T, lines []map[string]float64) {
	t.Helper()
	var distances []float64
	for _, line := range lines {
		if value, ok := line["kl_policy_base"]; ok {
			distances = append(distances, value)
		}
	}
	if len(distances) != 3 || math.Abs(distances[0]) > 1e-4 || math.Abs(distances[2]) < 1e-3 {
		t.Errorf("kl_policy_base is %v, want 3 values, the first almost 0 and the last not", distances)
	}
}

// TestKLPenaltyWithRoles runs episodes of several segments with faults, and kills a worker within groups. The reference
// is the sampler weights of another run.
func TestKLPenaltyWithRoles(t *testing.T) {
	t.Parallel()
	source := newFixture(t, nil)
	source.startRolloutWorker("s0")
	newest := source.waitFor(source.startLearner(1, nil), contract.CauseCompleted).Progress.Checkpoints[0]
	var want []goldenRow
	for _, name := range []string{"undisturbed", "disturbed"} {
		t.Run(name, func(t *testing.T) {
			w := *source
			w.shared, w.workers, w.t = &shared{}, nil, t
			w.artifacts = t.TempDir()
			w.file.ArtifactsDir = w.artifacts
			w.identify(map[string]string{"undisturbed": "1", "disturbed": "2"}[name] + "f3a9c2b-0000-4000-8000-000000000001")
			// The run must not share its environments, algorithm and evaluation with the source.
			w.file.Fixed.Environments = slices.Clone(w.file.Fixed.Environments)
			alg, evaluation := *w.file.Fixed.Algorithm, *w.file.Evaluation
			evaluation.Environments = slices.Clone(evaluation.Environments)
			w.file.Fixed.Algorithm, w.file.Evaluation = &alg, &evaluation
			withRoles("")(&w.file)
			withPenalty(algorithm.Reference{Checkpoint: newest.Sampler})(&w.file)
			url := w.file.Fixed.BaseURL
			w.file.Fixed.BaseURL = ""
			var err error
			if w.file.SpecDigest, err = contract.SpecDigest(w.file.Fixed); err != nil {
				t.Fatal(err)
			}
			w.file.Fixed.BaseURL = url
			if name == "undisturbed" {
				w.startRolloutWorkerOf("w0", rolesBuilder{})
				w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
				want = w.goldenRows()
				return
			}
			var judges atomic.Int64
			reached := make(chan struct{})
			kill := w.startRolloutWorkerOf("w0", rolesBuilder{judging: func() {
				if judges.Add(1) == 3 {
					close(reached)
				}
			}})
			first := w.startLearner(1, w.dieAt("step.submitted", 2))
			<-reached
			kill()
			w.startRolloutWorkerOf("w1", rolesBuilder{})
			w.startRolloutWorkerOf("w2", rolesBuilder{})
			<-first.done
			w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
			if diff := cmp.Diff(want, w.goldenRows()); diff != "" {
				t.Errorf("rows (-undisturbed +got):\n%s", diff)
			}
		})
	}
}

// TestMissingReferenceOfAKLPenalty expects a run to report that its reference does not exist, and to wait for it before
// anything is sampled.
func TestMissingReferenceOfAKLPenalty(t *testing.T) {
	t.Parallel()
	for name, reference := range map[string]algorithm.Reference{
		"algorithm.kl.reference.model": {Model: "nobody/knows"},
		"algorithm.kl.reference.checkpoint": {
			Checkpoint: "tinker://0034d8c9-0a88-52a9-b2b7-bce7cb1e6fef:train:0/sampler_weights/s"},
	} {
		t.Run(name, func(t *testing.T) {
			code := problem.ModelUnknown
			if reference.Checkpoint != "" {
				code = problem.CheckpointMissing
			}
			w := newFixture(t, withPenalty(reference))
			w.startRolloutWorker("w0")
			a := w.startLearner(1, nil)
			if found := w.awaitProblem(a, code).Evidence; !strings.Contains(found, name) {
				t.Errorf("the learner reports %q, want the field %s", found, name)
			}
			tried := w.models()
			w.until("the learner tries again", func() bool { return w.models() >= tried+3 })
			if calls := w.sim.Stats().Calls; calls["asample"] > 0 {
				t.Errorf("samples were bought: %v", slices.Sorted(maps.Keys(calls)))
			}
		})
	}
}
