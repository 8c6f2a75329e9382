// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/rubric"
	"github.com/tinker-operator/tinker-operator/internal/environment/singleturn"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Shares of tries, in percent.
const (
	malformedShare   = 5
	environmentShare = 20
	judgeShare       = 10
)

// strikes decides by the seed of a slot, member and try whether a fault with the given share occurs.
func strikes(seed uint64, share uint64) bool {
	hash := fnv.New64a()
	_ = binary.Write(hash, binary.LittleEndian, seed)
	return hash.Sum64()>>8%100 < share
}

// judgedBuilder builds questions of arithmetic that a judge grades by a rubric: whether the response has the answer.
type judgedBuilder struct {
	// faulty makes environment and judge fail in their shares of tries.
	faulty bool
	// stepped is called with each reply; it may be nil.
	stepped func()
}

// Build implements rollout.Builder.
func (b judgedBuilder) Build(_ context.Context, definition contract.Definition) (environment.Environment, error) {
	rows, err := dataset.NewArithmetic(int(definition.Dataset.Arithmetic.MaxOperand))
	if err != nil {
		return nil, err
	}
	grader, err := rubric.New(containsJudge(b), rubric.Options{Scoring: settings.ScorePassRate, MinCoverage: 1})
	return &faultyEnvironment{Environment: singleturn.New(rubricRows{rows}, grader), builder: b}, err
}

// rubricRows adds a rubric to rows.
type rubricRows struct{ dataset.Dataset }

// Row implements dataset.Dataset.
func (r rubricRows) Row(ctx context.Context, split string, index int64) (dataset.Row, error) {
	row, err := r.Dataset.Row(ctx, split, index)
	row.Fields = map[string]any{rubric.FieldRubrics: []any{"The response contains " + row.Answer,
		"The response contains a digit"}}
	return row, err
}

// containsJudge applies criteria to responses by rule. In its share of tries its reply is not a judgement.
type containsJudge judgedBuilder

// Complete implements rubric.Judge.
func (j containsJudge) Complete(_ context.Context, request rubric.Request) (string, rubric.Usage, error) {
	used := rubric.Usage{PromptTokens: 7, SampledTokens: 3}
	if j.faulty && strikes(request.Seed, judgeShare) {
		return "I would rather not say.", used, nil
	}
	text := request.Messages[len(request.Messages)-1].Content
	_, rest, _ := strings.Cut(text, "## Response\n\n")
	response, criteria, _ := strings.Cut(rest, "\n\n## Criteria\n\n")
	var ratings []map[string]any
	for line := range strings.Lines(criteria) {
		_, wanted, ok := strings.Cut(strings.TrimSpace(line), "The response contains ")
		if !ok {
			continue
		}
		rating := "No"
		if strings.Contains(response, wanted) || wanted == "a digit" && strings.ContainsAny(response, "0123456789") {
			rating = "Yes"
		}
		ratings = append(ratings, map[string]any{"criterion": len(ratings) + 1, "rationale": "by rule", "rating": rating})
	}
	data, err := json.Marshal(map[string]any{"ratings": ratings})
	return string(data), used, err
}

// faultyEnvironment fails in its share of tries.
type faultyEnvironment struct {
	environment.Environment
	builder judgedBuilder
}

// Start implements environment.Environment.
func (e *faultyEnvironment) Start(ctx context.Context, task environment.Task) (environment.Episode, error) {
	episode, err := e.Environment.Start(ctx, task)
	return &faultyEpisode{Episode: episode, builder: e.builder, seed: task.Seed}, err
}

type faultyEpisode struct {
	environment.Episode
	builder judgedBuilder
	seed    uint64
}

// Step implements environment.Episode.
func (e *faultyEpisode) Step(ctx context.Context, replies []environment.Reply) (environment.Turn, error) {
	if e.builder.stepped != nil {
		e.builder.stepped()
	}
	if e.builder.faulty && strikes(e.seed, environmentShare) {
		return environment.Turn{}, errors.New("the environment has a fault")
	}
	return e.Episode.Step(ctx, replies)
}

// malformedEndpoint returns some samples with tokens or log-probabilities that cannot be right.
type malformedEndpoint struct{ rollout.Endpoint }

// Sample implements rollout.Endpoint.
func (m malformedEndpoint) Sample(ctx context.Context, request tinker.SampleRequest) (tinker.SampleResult, error) {
	result, err := m.Endpoint.Sample(ctx, request)
	if err != nil || request.SamplingParams.Seed == nil || !strikes(uint64(*request.SamplingParams.Seed), malformedShare) {
		return result, err
	}
	sample := result.Sequences[0]
	switch *request.SamplingParams.Seed % 3 {
	case 0:
		sample.Logprobs = sample.Logprobs[:len(sample.Logprobs)-1]
	case 1:
		sample.Logprobs = slices.Clone(sample.Logprobs)
		sample.Logprobs[0] = float32(math.NaN())
	default:
		sample.Tokens = slices.Clone(sample.Tokens)
		sample.Tokens[0] = 1 << 20
	}
	result.Sequences = []tinker.SampledSequence{sample}
	return result, nil
}

// startFaultyWorker starts a worker with faults in its episodes.
func (w *fixture) startFaultyWorker(name string, stepped func()) (kill func()) {
	w.t.Helper()
	return w.startRolloutWorkerWith(name, func(c *rollout.Config) {
		c.Environments, c.Endpoint = judgedBuilder{faulty: true, stepped: stepped}, malformedEndpoint{c.Endpoint}
	})
}

// predicted is the result that a slot must have with its faults.
type predicted struct {
	outcome                                              rl.Outcome
	usable, faulted, invalid, retries, calls, unreadable int
}

// questions returns a function that returns the digest of the content of a slot's requests in a judged run.
func (w *fixture) questions() func(slot int64) rl.Digest {
	w.t.Helper()
	env, seed := w.file.Fixed.Environments[0], uint64(w.file.Fixed.Algorithm.Seed)
	split := env.Splits[0]
	stream, err := rl.NewStream(seed, []rl.Source{{Environment: env.Name, Split: split.Name, Tasks: split.Tasks,
		Shuffle: split.Shuffle}})
	if err != nil {
		w.t.Fatal(err)
	}
	built, err := judgedBuilder{}.Build(w.t.Context(), env.Definition)
	if err != nil {
		w.t.Fatal(err)
	}
	format, err := families.ForModel(w.file.Fixed.Model.Name)
	if err != nil {
		w.t.Fatal(err)
	}
	return func(slot int64) rl.Digest {
		task := stream.Task(slot)
		episode, err := built.Start(w.t.Context(), environment.Task{Split: task.Split, Index: task.Index})
		if err != nil {
			w.t.Fatal(err)
		}
		prompts, err := episode.Prompts(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		ids, err := format.Prompt(renderer.Conversation{Messages: prompts[0].Messages})
		if err != nil {
			w.t.Fatal(err)
		}
		stop := format.Stop()
		return rl.Content{Prompt: ids, MaxTokens: int(env.Sampling.MaxTokens), Temperature: *env.Sampling.Temperature,
			TopP: env.Sampling.TopP, StopTokens: stop.Tokens, StopStrings: stop.Strings}.Digest()
	}
}

// predict derives the result of a slot from its faults. question is the digest of the content of the slot's requests.
func predict(env contract.Environment, seed uint64, slot int64, question rl.Digest) predicted {
	var p predicted
	causes := map[rl.Outcome]bool{}
	for member := range env.GroupSize {
		for try := 0; ; try++ {
			outcome := rl.Usable
			request := rl.Request{Slot: slot, Member: member, Try: try, Content: question}
			switch {
			case strikes(request.Seed(rl.UsePolicy, seed), malformedShare):
				outcome = rl.InvalidTokens
			case strikes(rl.EpisodeSeed(seed, rl.Train, slot, member, try), environmentShare):
				outcome = rl.EnvironmentFault
			default:
				p.calls++
				if strikes(request.Seed(rl.UseJudge, seed), judgeShare) {
					p.unreadable++
					outcome = rl.JudgeFault
				}
			}
			if isFault := outcome == rl.EnvironmentFault || outcome == rl.JudgeFault; isFault && try < env.Retries {
				p.retries++
				continue
			}
			switch outcome {
			case rl.Usable:
				p.usable++
			case rl.InvalidTokens:
				p.invalid++
			default:
				p.faulted++
			}
			if outcome != rl.Usable {
				causes[outcome] = true
			}
			break
		}
	}
	if p.usable < env.MinMembers {
		p.outcome = rl.BelowFloor
		if len(causes) == 1 {
			for cause := range causes {
				p.outcome = cause
			}
		}
	}
	return p
}

// judged changes the small run for the environments of judgedBuilder: a group needs 3 members, and a failed try is
// repeated once.
func judged(f *contract.RunFile) {
	env := &f.Fixed.Environments[0]
	env.MinMembers, env.Retries = 3, 1
	f.Fixed.Algorithm.TasksPerStep = 8
	test := arithmetic("test", 80, 4, 8)
	test.PassAt = []int{1, 4}
	f.Evaluation = &contract.Evaluation{Before: true, Environments: []contract.Environment{test}}
}

// TestFaultsTogether raises an environment error in 20% of all tries, a judgement that cannot be read in 10%, and a
// malformed sample in 5%, by slot, member and try. All counters are as these faults predict, no reward is invented,
// the mean reward is within the confidence interval of a run without faults, and a run that loses its learner and its
// worker ends with the same weights.
func TestFaultsTogether(t *testing.T) {
	t.Parallel()
	sound := newFixture(t, judged)
	sound.startRolloutWorkerOf("w0", judgedBuilder{})
	sound.waitFor(sound.startLearner(1, nil), contract.CauseCompleted)

	undisturbed := newFixture(t, judged)
	undisturbed.startFaultyWorker("w0", nil)
	want := undisturbed.outcome(undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted))
	undisturbed.checkPrediction()
	undisturbed.checkMeanReward(sound)

	w := newFixture(t, judged)
	var replies atomic.Int64
	reached := make(chan struct{})
	kill := w.startFaultyWorker("w0", func() {
		if replies.Add(1) == 20 {
			close(reached)
		}
	})
	first := w.startLearner(1, w.dieAt("step.submitted", 2))
	<-reached
	kill()
	w.startFaultyWorker("w1", nil)
	w.startFaultyWorker("w2", nil)
	<-first.done
	w.compareWeights(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
	if diff := cmp.Diff(undisturbed.goldenRows(), w.goldenRows()); diff != "" {
		t.Errorf("rows (-undisturbed +got):\n%s", diff)
	}
	w.checkPrediction()
}

// checkPrediction compares the outcomes of all slots and the counters of all steps with what predict returns for the
// slots.
func (w *fixture) checkPrediction() {
	w.t.Helper()
	env, seed := w.file.Fixed.Environments[0], uint64(w.file.Fixed.Algorithm.Seed)
	content := w.questions()
	lines := map[int64]map[string]float64{}
	for _, line := range w.metrics() {
		if _, trained := line["progress/batch"]; trained {
			lines[int64(line["step"])+1] = line
		}
	}
	outcomes := map[string]int{}
	for _, row := range w.rows() {
		counted := map[string]float64{}
		for _, slot := range row.Manifest {
			p := predict(env, seed, slot.Slot, content(slot.Slot))
			outcomes[slot.Outcome]++
			if slot.Outcome != p.outcome.String() {
				w.t.Errorf("slot %d is %s, want %s", slot.Slot, slot.Outcome, p.outcome)
			}
			counted["batch/members"] += float64(env.GroupSize)
			counted["batch/members_left_out"] += float64(p.faulted + p.invalid)
			counted["batch/retries"] += float64(p.retries)
			counted["batch/judge_calls"] += float64(p.calls)
			counted["batch/judge_unreadable"] += float64(p.unreadable)
			counted["batch/judge_prompt_tokens"] += float64(7 * p.calls)
			counted["env/all/fault_ratio"] += float64(p.faulted)
			if p.outcome == rl.Usable {
				counted["env/all/total_episodes"] += float64(p.usable)
				counted["batch/groups_usable"]++
			}
		}
		counted["env/all/fault_ratio"] /= counted["batch/members"]
		for name, want := range counted {
			if got := lines[row.Step][name]; math.Abs(got-want) > 1e-12 {
				w.t.Errorf("%s of step %d is %v, want %v", name, row.Step, got, want)
			}
		}
	}
	if outcomes["Usable"] == 0 || len(outcomes) < 2 {
		w.t.Errorf("the slots have the outcomes %v, want usable ones and others", outcomes)
	}
}

// checkMeanReward checks that the mean reward of the first weights is within the confidence interval of a run without
// faults, and that an evaluation counts each member once, as sampled or as left out.
func (w *fixture) checkMeanReward(sound *fixture) {
	w.t.Helper()
	evaluated := func(f *fixture) map[string]float64 {
		for _, line := range f.metrics() {
			if _, ok := line["test/pass@1"]; ok {
				return line
			}
		}
		w.t.Fatal("evaluations.jsonl has no evaluation")
		return nil
	}
	got, want := evaluated(w), evaluated(sound)
	for _, name := range []string{"test/env/all/reward/total", "test/pass@1", "test/env/all/pass_rate"} {
		low, high := want[name+"/ci95_low"], want[name+"/ci95_high"]
		if value := got[name]; low >= high || value < low || value > high {
			w.t.Errorf("%s is %.4f with faults, without any %.4f (%.4f to %.4f)", name, value, want[name], low, high)
		}
	}
	members := float64(4 * 80)
	if got["test/env/all/total_episodes"] >= members || want["test/env/all/total_episodes"] != members ||
		want["test/env/all/fault_ratio"] != 0 {
		w.t.Errorf("%v of %v episodes count with faults, %v without any", got["test/env/all/total_episodes"], members,
			want["test/env/all/total_episodes"])
	}
	w.t.Logf("mean reward %.4f with faults, %.4f without", got["test/env/all/reward/total"],
		want["test/env/all/reward/total"])
}
