// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/download"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport/transporttest"
)

func TestProbeArithmetic(t *testing.T) {
	got, _ := Probe(t.Context(), registry.Builder{}, contract.Definition{
		Dataset: &contract.Dataset{Dataset: settings.Dataset{Arithmetic: &settings.ArithmeticData{MaxOperand: 99}}},
		Reward:  &settings.Reward{RewardRule: settings.RewardRule{ExactMatch: &settings.ExactMatch{}}},
	})
	want := contract.ProbeResult{
		OK: true, CanaryReward: new(1.0),
		Splits: []contract.ProbeSplit{{Name: "test", Tasks: 2006}, {Name: "train", Tasks: 7994}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Probe (-want +got):\n%s", diff)
	}
}

func TestProbeWorkflows(t *testing.T) {
	for name, tc := range map[string]struct {
		interaction settings.Interaction
		// reward is the sum of the rewards of all conversations for the right answer.
		reward float64
	}{
		"solvers and a judge": {settings.Interaction{SolverJudge: &settings.SolverJudge{Solvers: 2}}, 2},
		"self-refinement":     {settings.Interaction{SelfRefine: &settings.SelfRefine{}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := Probe(t.Context(), registry.Builder{}, contract.Definition{
				Dataset:     &contract.Dataset{Dataset: settings.Dataset{Arithmetic: &settings.ArithmeticData{MaxOperand: 99}}},
				Reward:      &settings.Reward{RewardRule: settings.RewardRule{ExactMatch: &settings.ExactMatch{}}},
				Interaction: &tc.interaction,
			})
			if !got.OK || *got.CanaryReward != tc.reward {
				t.Errorf("Probe = %+v, want a reward of %v", got, tc.reward)
			}
		})
	}
}

// TestProbeFindsTools checks that tools that the model's format declares are distinguished from tools that a system
// prompt lists.
func TestProbeFindsTools(t *testing.T) {
	for prompt, want := range map[string]bool{"": true, "Answer briefly.": true, "The tools are:\n$(tools)": false} {
		got, _ := Probe(t.Context(), registry.Builder{}, contract.Definition{
			Dataset: &contract.Dataset{Dataset: settings.Dataset{Arithmetic: &settings.ArithmeticData{MaxOperand: 99}}},
			Reward:  &settings.Reward{RewardRule: settings.RewardRule{ExactMatch: &settings.ExactMatch{}}},
			Interaction: &settings.Interaction{ToolUse: &settings.ToolUse{
				SystemPrompt: prompt, ParseErrors: settings.ParseErrors{MaxConsecutive: new(int32(2)),
					Train: settings.KeepParseErrors},
			}},
		})
		if !got.OK || got.DeclaresTools != want {
			t.Errorf("with the system prompt %q Probe = %+v, want DeclaresTools to be %v", prompt, got, want)
		}
	}
}

// TestProbeOfAnExpression plays an episode for which no answer is known, and checks that a defect of the expression is
// reported.
func TestProbeOfAnExpression(t *testing.T) {
	splits := []contract.ProbeSplit{{Name: "test", Tasks: 21}, {Name: "train", Tasks: 79}}
	cases := map[string]struct {
		want  contract.ProbeResult
		names string
		final bool
	}{
		"reply.lastNumber() == double(row.answer) ? 1.0 : 0.0": {want: contract.ProbeResult{OK: true, Splits: splits}},
		"reply.last() == 1.0": {want: contract.ProbeResult{Reason: problem.Invalid}, final: true,
			names: "spec.reward.expression is not valid CEL: line 1, column 11"},
		"double(row.solution)": {want: contract.ProbeResult{Reason: problem.DataInvalid}, final: true,
			names: `row 1 of split "test": grading a reply: reward.expression reads row.solution`},
		"reply.lastNumber()": {want: contract.ProbeResult{Reason: problem.EnvironmentFault, Splits: splits}, final: true,
			names: "gave NaN"},
	}
	for expression, tc := range cases {
		t.Run(expression, func(t *testing.T) {
			got, final := Probe(t.Context(), registry.Builder{}, contract.Definition{
				Dataset: &contract.Dataset{Dataset: settings.Dataset{Arithmetic: &settings.ArithmeticData{MaxOperand: 9}}},
				Reward:  &settings.Reward{RewardRule: settings.RewardRule{Expression: expression}},
			})
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(contract.ProbeResult{}, "Message")); diff != "" ||
				final != tc.final {
				t.Errorf("Probe: final %v (-want +got):\n%s", final, diff)
			}
			if !strings.Contains(got.Message, tc.names) {
				t.Errorf("Probe: message %q, want %q", got.Message, tc.names)
			}
		})
	}
}

// judged is a data set with a criterion for a judge in each row.
type judged struct{ doubled }

func (j judged) Row(ctx context.Context, split string, index int64) (dataset.Row, error) {
	row, err := j.doubled.Row(ctx, split, index)
	row.Fields = map[string]any{"rubrics": []any{"The reply is 4."}}
	return row, err
}

// TestProbeOfAPrivateAuthority probes environments whose servers have certificates of an authority that is not trusted.
func TestProbeOfAPrivateAuthority(t *testing.T) {
	server := transporttest.PrivateServer(t)
	loader := source.New(source.Config{Dir: t.TempDir(), Space: 1 << 20, Client: &download.Client{Tries: 1}})
	open := func(ctx context.Context, definition contract.Dataset) (dataset.Dataset, error) {
		if definition.JSONL.URL == "" {
			return judged{doubled{"a"}}, nil
		}
		return loader.Open(ctx, definition)
	}
	exact := &settings.Reward{RewardRule: settings.RewardRule{ExactMatch: &settings.ExactMatch{}}}
	judging := settings.Rubric{MinCoverage: new(1.0), Scoring: settings.ScorePassRate, Judge: settings.Judge{
		OpenAI:  &settings.OpenAIJudge{BaseURL: server.URL, Model: "m"},
		Retries: new(int32(0)), TimeoutSeconds: 10,
		Sampling: settings.JudgeSampling{Temperature: new(0.0), MaxTokens: 16}}}
	for name, definition := range map[string]contract.Definition{
		"data": {Reward: exact, Dataset: &contract.Dataset{Dataset: settings.Dataset{
			JSONL:  &settings.JSONL{URL: server.URL},
			Splits: []settings.DataSplit{{Name: "train", Source: "a.jsonl", SHA256: strings.Repeat("a", 64)}}}}},
		"an environment server": {ORS: &contract.ORS{ORS: settings.ORS{URL: server.URL}}},
		"a judge": {Dataset: &contract.Dataset{Dataset: settings.Dataset{JSONL: &settings.JSONL{}}},
			Reward: &settings.Reward{RewardRule: settings.RewardRule{Rubric: &judging}}},
	} {
		got, _ := Probe(t.Context(), registry.Builder{Data: open, Now: time.Now}, definition)
		if got.Reason != problem.EnvironmentAuthorityUnknown || !strings.Contains(got.Message, "x509") {
			t.Errorf("%s: Probe = %+v, want %s", name, got, problem.EnvironmentAuthorityUnknown)
		}
	}
}

// doubled is a data set with one row for each id of the list. Ids may occur twice.
type doubled []string

func (d doubled) Splits(context.Context) ([]environment.Split, error) {
	return []environment.Split{{Name: "train", Tasks: int64(len(d))}}, nil
}

func (d doubled) Row(_ context.Context, _ string, index int64) (dataset.Row, error) {
	row := dataset.NewRow("2+2?", "4")
	row.ID = d[index]
	return row, nil
}

// TestProbeWarnsOfIDs probes an environment that is usable although rows have the same id.
func TestProbeWarnsOfIDs(t *testing.T) {
	for warning, ids := range map[string]doubled{
		"": {"a", "b", "c"},
		`1 rows of split "train" have the id of an earlier row, such as row 3, which has the id "a" of row 1: both are ` +
			"used, since tasks are told apart by their place": {"a", "b", "a"},
	} {
		builder := registry.Builder{Data: func(context.Context, contract.Dataset) (dataset.Dataset, error) {
			return ids, nil
		}}
		got, _ := Probe(t.Context(), builder, contract.Definition{
			Dataset: &contract.Dataset{Dataset: settings.Dataset{JSONL: &settings.JSONL{}}},
			Reward:  &settings.Reward{RewardRule: settings.RewardRule{ExactMatch: &settings.ExactMatch{}}},
		})
		if !got.OK || (warning == "") != (got.Message == "") || !strings.HasPrefix(got.Message, warning) {
			t.Errorf("Probe = %+v, want the warning %q", got, warning)
		}
	}
}

func TestProbeOfNoDefinition(t *testing.T) {
	if got, final := Probe(t.Context(), registry.Builder{}, contract.Definition{}); got.OK ||
		got.Reason != problem.Invalid || !final {
		t.Errorf("Probe = %+v, final %v", got, final)
	}
}

// fakeEnvironment is an environment whose fields decide its behaviour.
type fakeEnvironment struct {
	splits      []environment.Split
	splitsError error
	startError  error
	// right and wrong are the rewards of the answers.
	right, wrong float64
	goesOn       bool
	// unknown means that the answers are not known.
	unknown bool
	// panics is the method that panics; it is empty if none does.
	panics string
	closed int
}

func (d *fakeEnvironment) at(method string) {
	if d.panics == method {
		panic("a nil row")
	}
}

func (d *fakeEnvironment) Splits(context.Context) ([]environment.Split, error) {
	d.at("Splits")
	return d.splits, d.splitsError
}

func (d *fakeEnvironment) Start(context.Context, environment.Task) (environment.Episode, error) {
	d.at("Start")
	if d.startError != nil {
		return nil, d.startError
	}
	return doubleEpisode{d}, nil
}

func (d *fakeEnvironment) Answers(context.Context, environment.Task) (right, wrong string, err error) {
	d.at("Answers")
	if d.unknown {
		return "", "", environment.ErrNoAnswers
	}
	return "right", "wrong", nil
}

type doubleEpisode struct{ *fakeEnvironment }

func (e doubleEpisode) Prompts(context.Context) ([]environment.Prompt, error) {
	e.at("Prompts")
	return make([]environment.Prompt, 1), nil
}

func (e doubleEpisode) Step(_ context.Context, replies []environment.Reply) (environment.Turn, error) {
	e.at("Step")
	reward := e.wrong
	if replies[0].Message.Content == "right" {
		reward = e.right
	}
	return environment.Turn{Done: !e.goesOn, Prompts: make([]environment.Prompt, 1),
		Rewards: []environment.Reward{{Value: reward}}}, nil
}

func (e doubleEpisode) Finish(context.Context) (environment.Turn, error) {
	return environment.Turn{Done: true}, nil
}

func (e doubleEpisode) Close(context.Context) { e.closed++ }

// unknownAnswers is an environment that knows no answers.
type unknownAnswers struct{ environment.Environment }

func TestProbe(t *testing.T) {
	some := []environment.Split{{Name: "empty"}, {Name: "train", Tasks: 3}}
	splits := []contract.ProbeSplit{{Name: "empty"}, {Name: "train", Tasks: 3}}
	away := errors.New("nobody answers")
	cases := map[string]struct {
		env    environment.Environment
		want   contract.ProbeResult
		final  bool
		closed int
	}{
		"one that is well": {env: &fakeEnvironment{splits: some, right: 2, wrong: -1},
			want: contract.ProbeResult{OK: true, Splits: splits, CanaryReward: new(2.0)}, closed: 2},
		"one that does not answer": {env: &fakeEnvironment{splitsError: away},
			want: contract.ProbeResult{Reason: problem.EnvironmentFault}},
		"one whose judge does not answer": {env: &fakeEnvironment{splits: some,
			startError: &environment.Fault{Kind: environment.JudgeFault, Err: away}},
			want: contract.ProbeResult{Reason: problem.JudgeFault, Splits: splits}},
		"one that will never do": {env: &fakeEnvironment{splits: some,
			startError: &environment.Fault{Permanent: true, Err: away}},
			want: contract.ProbeResult{Reason: problem.EnvironmentFault, Splits: splits}, final: true},
		"one without tasks": {env: &fakeEnvironment{splits: some[:1]},
			want: contract.ProbeResult{Reason: problem.NoTasks, Splits: splits[:1]}, final: true},
		"one that rewards both answers alike": {env: &fakeEnvironment{splits: some, right: 1, wrong: 1},
			want: contract.ProbeResult{Reason: problem.CanaryFailed, Splits: splits}, final: true, closed: 2},
		"one that rewards the wrong one": {env: &fakeEnvironment{splits: some, wrong: 1},
			want: contract.ProbeResult{Reason: problem.CanaryFailed, Splits: splits}, final: true, closed: 2},
		"one that never ends": {env: &fakeEnvironment{splits: some, right: 1, goesOn: true},
			want: contract.ProbeResult{Reason: problem.CanaryFailed, Splits: splits}, final: true, closed: 1},
		"one that knows no answers": {env: unknownAnswers{&fakeEnvironment{splits: some}},
			want: contract.ProbeResult{OK: true, Splits: splits}},
		"one that does not know this answer": {env: &fakeEnvironment{splits: some, unknown: true},
			want: contract.ProbeResult{OK: true, Splits: splits}, closed: 1},
		"one that continues without an answer": {env: unknownAnswers{&fakeEnvironment{splits: some, goesOn: true}},
			want: contract.ProbeResult{OK: true, Splits: splits}},
		"one that fails without an answer": {env: unknownAnswers{&fakeEnvironment{splits: some, startError: away}},
			want: contract.ProbeResult{Reason: problem.EnvironmentFault, Splits: splits}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, final := probe(t.Context(), nil, tc.env)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(contract.ProbeResult{}, "Message")); diff != "" {
				t.Errorf("probe (-want +got):\n%s", diff)
			}
			if final != tc.final || (got.Message != "") == got.OK {
				t.Errorf("final %v with message %q, want %v", final, got.Message, tc.final)
			}
			if d, ok := tc.env.(*fakeEnvironment); ok && d.closed != tc.closed {
				t.Errorf("%d episodes were closed, want %d", d.closed, tc.closed)
			}
		})
	}
}

// TestProbeOfPanics checks that a probe reports the panic of an environment.
func TestProbeOfPanics(t *testing.T) {
	calls := &environment.Calls{Logger: slog.New(slog.DiscardHandler)}
	for _, method := range []string{"Splits", "Answers", "Start", "Prompts", "Step"} {
		env := &fakeEnvironment{splits: []environment.Split{{Name: "train", Tasks: 3}}, right: 1, panics: method}
		got, final := probe(t.Context(), calls, env)
		if got.Reason != problem.EnvironmentFault || final || !strings.HasSuffix(got.Message, "panicked: a nil row") {
			t.Errorf("%s: reason %s, final %v, message %q, want %s with the panic", method, got.Reason, final, got.Message,
				problem.EnvironmentFault)
		}
	}
	builder := registry.Builder{Logger: calls.Logger, Data: func(context.Context, contract.Dataset) (dataset.Dataset,
		error) {
		panic("a nil page")
	}}
	got, _ := Probe(t.Context(), builder, contract.Definition{
		Dataset: &contract.Dataset{Dataset: settings.Dataset{JSONL: &settings.JSONL{URL: "https://data.test/rows.jsonl"},
			Splits: []settings.DataSplit{{Name: "train", Source: "train", SHA256: strings.Repeat("0", 64)}}}},
		Reward: &settings.Reward{RewardRule: settings.RewardRule{ExactMatch: &settings.ExactMatch{}}},
	})
	if want := "building the environment panicked: a nil page"; got.Message != want {
		t.Errorf("message is %q, want %q", got.Message, want)
	}
}

// tried is an environment that knows examples of replies, but no answers.
type tried struct {
	environment.Environment
	replies []string
	// earns returns the reward of a reply; n is the reply's number.
	earns func(n int, text string) (float64, error)
}

func (e *tried) Splits(context.Context) ([]environment.Split, error) {
	return []environment.Split{{Name: "train", Tasks: 1}}, nil
}

func (e *tried) Examples(context.Context, environment.Task) ([]string, error) {
	return []string{"4", ""}, nil
}

func (e *tried) Start(context.Context, environment.Task) (environment.Episode, error) {
	return triedEpisode{e}, nil
}

type triedEpisode struct{ *tried }

func (triedEpisode) Prompts(context.Context) ([]environment.Prompt, error) {
	return []environment.Prompt{{}}, nil
}

func (e triedEpisode) Step(_ context.Context, replies []environment.Reply) (environment.Turn, error) {
	text := replies[0].Message.Content
	e.replies = append(e.replies, text)
	value, err := e.earns(len(e.replies), text)
	return environment.Turn{Rewards: []environment.Reward{{Value: value}}, Done: true}, err
}

func (triedEpisode) Finish(context.Context) (environment.Turn, error) {
	return environment.Turn{Done: true}, nil
}

func (triedEpisode) Close(context.Context) {}

// TestProbePlaysExamples plays a known answer twice and an empty reply, whatever they earn.
func TestProbePlaysExamples(t *testing.T) {
	raises := &environment.Fault{Permanent: true, Err: errors.New("user_code.py:2: IndexError")}
	cases := map[string]struct {
		earns func(n int, text string) (float64, error)
		want  contract.ProbeResult
		final bool
	}{
		"a function": {
			earns: func(int, string) (float64, error) { return 0.25, nil },
			want:  contract.ProbeResult{OK: true, CanaryReward: new(0.25), Deterministic: new(true)},
		},
		"one that draws numbers": {
			earns: func(n int, _ string) (float64, error) { return float64(n), nil },
			want:  contract.ProbeResult{OK: true, CanaryReward: new(1.0), Deterministic: new(false)},
		},
		"one that raises for an empty reply": {
			earns: func(_ int, text string) (float64, error) {
				if text == "" {
					return 0, raises
				}
				return 1, nil
			},
			want: contract.ProbeResult{Reason: problem.EnvironmentFault,
				Message: "playing an empty reply, which a policy may write and which must earn a reward: " +
					"user_code.py:2: IndexError"},
			final: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			env := &tried{earns: tc.earns}
			got, final := probe(t.Context(), nil, env)
			tc.want.Splits = []contract.ProbeSplit{{Name: "train", Tasks: 1}}
			if diff := cmp.Diff(tc.want, got); diff != "" || final != tc.final {
				t.Errorf("final %v (-want +got):\n%s", final, diff)
			}
			if diff := cmp.Diff([]string{"4", "4", ""}, env.replies); diff != "" {
				t.Errorf("replies (-want +got):\n%s", diff)
			}
		})
	}
}
