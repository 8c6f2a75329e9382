// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/environment/rubric"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// sums is a data set of sums whose rows have criteria.
type sums struct{ criteria func(a, b int) []any }

func (s sums) Splits(context.Context) ([]environment.Split, error) {
	return []environment.Split{{Name: "test", Tasks: 100}, {Name: "train", Tasks: 100}}, nil
}

func (s sums) Row(_ context.Context, _ string, index int64) (dataset.Row, error) {
	a, b := int(index%10)+11, int(index/10)+21
	row := dataset.NewRow(fmt.Sprintf("What is %d + %d?", a, b), "")
	row.Fields = map[string]any{rubric.FieldRubrics: s.criteria(a, b)}
	return row, nil
}

// digitsOf returns a criterion for the sum and one for each of its digits.
func digitsOf(a, b int) []any {
	sum := strconv.Itoa(a + b)
	criteria := []any{"The response contains " + sum + "."}
	for _, digit := range sum {
		criteria = append(criteria, fmt.Sprintf("The response contains %q.", string(digit)))
	}
	return criteria
}

// judged makes a model on Tinker the judge of a learner's groups.
func judged(b *scriptedLearner, change func(*settings.Rubric)) {
	definition := settings.Rubric{Scoring: settings.ScorePassRate, MinCoverage: new(1.0), Judge: settings.Judge{
		Tinker: &settings.TinkerJudge{Model: tinkersim.JudgeName}, Retries: new(int32(3)),
		TimeoutSeconds: 60, Sampling: settings.JudgeSampling{Temperature: new(0.7), MaxTokens: 4096}}}
	if change != nil {
		change(&definition)
	}
	set := func(list []contract.Environment) {
		for i := range list {
			list[i].Definition = contract.Definition{
				Dataset: &contract.Dataset{Dataset: settings.Dataset{JSONL: &settings.JSONL{ConfigMapRef: &ref.ConfigMap{
					Name: "c"}},
					Splits: []settings.DataSplit{{Name: "train", Source: "rows.jsonl"}}}},
				Reward: &settings.Reward{RewardRule: settings.RewardRule{Rubric: &definition}},
			}
			list[i].Retries = 1
		}
	}
	set(b.play.Environments)
	for _, list := range b.play.Evaluations {
		set(list)
	}
}

// withJudges configures a worker with judges on Tinker, each of which wrap may replace.
func withJudges(data dataset.Dataset, wrap func(rubric.Judge) rubric.Judge) func(*Config) {
	return func(config *Config) {
		config.Judges = &Judges{Renderer: func(_ context.Context, model, _ string) (renderer.Renderer,
			error) {
			return families.ForModel(model)
		}}
		config.Environments = registry.Builder{
			Data:         func(context.Context, contract.Dataset) (dataset.Dataset, error) { return data, nil },
			JudgeProblem: config.Judges.Report,
			TinkerJudge: func(definition settings.Judge) (rubric.Judge, error) {
				made, err := config.Judges.New(definition)
				if wrap != nil && err == nil {
					made = wrap(made)
				}
				return made, err
			},
		}
	}
}

// judgedGroups plays the keys with workers of these names, and returns the groups.
func (s *simulator) judgedGroups(keys []rl.Key, during func(*scriptedLearner), wrap func(rubric.Judge) rubric.Judge,
	workers ...string) map[rl.Key]rl.Group {
	s.t.Helper()
	place := newLearnerService(s.t)
	b := s.board(keys...)
	judged(b, nil)
	place.serve(b, 1)
	for _, name := range workers {
		r := place.start(name, s.client, withJudges(sums{digitsOf}, wrap))
		defer func() {
			if err := r.stop(); err != nil {
				s.t.Errorf("Run: %v", err)
			}
		}()
	}
	if during != nil {
		during(b)
	}
	arrive(s.t, b, keys...)
	groups := map[rl.Key]rl.Group{}
	for _, key := range keys {
		groups[key], _ = b.group(key)
	}
	return groups
}

func digestsOf(groups map[rl.Key]rl.Group) map[rl.Key]rl.Digest {
	digests := map[rl.Key]rl.Digest{}
	for key, group := range groups {
		digests[key] = group.Digest()
	}
	return digests
}

// TestJudgedGroupsAreTheSame checks that the groups are equal, whoever plays them and whatever the endpoint does.
func TestJudgedGroupsAreTheSame(t *testing.T) {
	sim := newSimulator(t)
	keys := append(slots(4), rl.Key{Kind: rl.Evaluate, Lineage: version0, Evaluation: "plan"})
	groups := sim.judgedGroups(keys, nil, nil, "worker-0")
	rewards := map[float64]bool{}
	for key, group := range groups {
		members := int64(len(group.Members))
		if group.Outcome != rl.Usable || group.Judge.Calls != members || group.Judge.PromptTokens < 500*members ||
			group.Judge.SampledTokens < 100*members {
			t.Errorf("slot %d is %v (%s), with the judge's usage %+v", key.Slot, group.Outcome, group.Reason, group.Judge)
		}
		for _, m := range group.Members {
			rewards[m.Reward] = true
			if n := len(m.Trajectories[0].Judgements); n != int(m.Metrics[rubric.MetricNumRubrics]) || n == 0 ||
				m.Metrics[rubric.MetricPassRate] != m.Reward {
				t.Errorf("slot %d: %d judgements, reward %v, metrics %v", key.Slot, n, m.Reward, m.Metrics)
			}
		}
	}
	if len(rewards) < 2 {
		t.Errorf("the rewards are %v: the judge distinguishes nothing", rewards)
	}
	want := digestsOf(groups)
	cases := map[string]struct {
		rules   []fault.Rule
		workers []string
	}{
		"another worker": {workers: []string{"worker-1"}},
		"three workers":  {workers: []string{"worker-0", "worker-1", "worker-2"}},
		"futures are lost": {workers: []string{"worker-0"},
			rules: []fault.Rule{{Op: "asample", Do: fault.LoseFuture, Count: 9}}},
		"samples fail": {workers: []string{"worker-0"},
			rules: []fault.Rule{{Op: "asample", Do: fault.Fail, Category: "server", Count: 5}}},
		"the endpoint throttles": {workers: []string{"worker-0"},
			rules: []fault.Rule{{Op: "asample", Do: fault.Refuse, Status: 429, RetryAfterSeconds: 0.01, Count: 5}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sim.t = t
			sim.addFaults(tc.rules...)
			defer sim.server.Faults().Clear()
			if diff := cmp.Diff(want, digestsOf(sim.judgedGroups(keys, nil, nil, tc.workers...))); diff != "" {
				t.Errorf("digests (-undisturbed +this):\n%s", diff)
			}
		})
	}
}

// faulty makes two judgements in ten invalid, which the requests alone decide, and counts the usage.
type faulty struct {
	rubric.Judge
	count *judgeCounts
}

type judgeCounts struct {
	mu    sync.Mutex
	usage rl.JudgeUsage
}

func (f faulty) Complete(ctx context.Context, request rubric.Request) (string, rubric.Usage, error) {
	text, usage, err := f.Judge.Complete(ctx, request)
	f.count.mu.Lock()
	defer f.count.mu.Unlock()
	sum := &f.count.usage
	sum.Calls++
	sum.PromptTokens += usage.PromptTokens
	sum.SampledTokens += usage.SampledTokens
	if err != nil {
		return text, usage, err
	}
	switch digestNumber("fault", nil, request.Seed, uint64(request.Call), uint64(request.Try)) % 10 {
	case 0:
		sum.Unreadable++
		return "I cannot tell.", usage, nil
	case 1:
		sum.Unreadable++
		return strings.Replace(text, `"Yes"`, `"perhaps"`, 1), usage, &rubric.ReplyError{Err: errors.New("cut")}
	default:
		return text, usage, nil
	}
}

// TestJudgeFaultsScoreNothing plays with a judge that fails often, and without retries. Members without a judgement
// are left out and counted, the others have the same rewards as without faults, and every counter is exact.
func TestJudgeFaultsScoreNothing(t *testing.T) {
	sim := newSimulator(t)
	keys := slots(12)
	place := newLearnerService(t)
	play := func(wrap func(rubric.Judge) rubric.Judge) map[rl.Key]rl.Group {
		b := sim.board(keys...)
		judged(b, func(r *settings.Rubric) { r.Judge.Retries = new(int32(0)) })
		b.play.Environments[0].Retries, b.play.Environments[0].MinMembers = 0, 1
		for i := range b.open {
			b.open[i].MinMembers = 1
		}
		end := place.serve(b, 1)
		defer end()
		r := place.start("worker-0", sim.client, withJudges(sums{digitsOf}, wrap))
		arrive(t, b, keys...)
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		groups := map[rl.Key]rl.Group{}
		for _, key := range keys {
			groups[key], _ = b.group(key)
		}
		return groups
	}
	sound := play(nil)
	count := &judgeCounts{}
	groups := play(func(inner rubric.Judge) rubric.Judge { return faulty{inner, count} })
	var usage rl.JudgeUsage
	left := int64(0)
	for key, group := range groups {
		usage.Calls += group.Judge.Calls
		usage.Errors += group.Judge.Errors
		usage.Unreadable += group.Judge.Unreadable
		usage.PromptTokens += group.Judge.PromptTokens
		usage.SampledTokens += group.Judge.SampledTokens
		for i, m := range group.Members {
			if m.Outcome == rl.JudgeFault {
				left++
				if len(m.Trajectories) != 0 {
					t.Errorf("slot %d, member %d: has trajectories without a judgement", key.Slot, i)
				}
				continue
			}
			if want := sound[key].Members[i].Reward; m.Outcome != rl.Usable || m.Reward != want {
				t.Errorf("slot %d, member %d: %v with reward %v, want %v", key.Slot, i, m.Outcome, m.Reward, want)
			}
		}
	}
	if diff := cmp.Diff(count.usage, usage); diff != "" || left != usage.Unreadable || left == 0 {
		t.Errorf("%d members are left out; usage (-judge's own +groups'):\n%s", left, diff)
	}
}

// TestUnknownJudgeIsReported checks that a run waits for a judge that the endpoint does not know, and that the worker
// reports why.
func TestUnknownJudgeIsReported(t *testing.T) {
	sim := newSimulator(t)
	place, b := newLearnerService(t), sim.board(slots(1)...)
	judged(b, func(r *settings.Rubric) {
		r.Judge.Tinker.Checkpoint, r.Judge.Tinker.Model = "tinker://missing/sampler_weights/v0", ""
	})
	place.serve(b, 1)
	var judges *Judges
	r := place.start("worker-0", sim.client, func(config *Config) {
		withJudges(sums{digitsOf}, nil)(config)
		judges = config.Judges
		judges.Renderer = func(context.Context, string, string) (renderer.Renderer, error) { return families.ForModel(model) }
		judges.BaseModel = func(context.Context, string) (string, error) { return model, nil }
	})
	eventually(t, "the judge is reported", func() bool {
		return strings.Contains(judges.reported().Evidence, "correct the judge's tinker.model or tinker.checkpoint")
	})
	if _, ok := b.group(slots(1)[0]); ok {
		t.Error("the group was finished without a judge")
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}
