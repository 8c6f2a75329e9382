// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workflow

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// sums has one row whose answer is 7.
type sums struct{}

func (sums) Splits(context.Context) ([]environment.Split, error) {
	return []environment.Split{{Name: "train", Tasks: 1}}, nil
}

func (sums) Row(context.Context, string, int64) (dataset.Row, error) {
	row := dataset.NewRow("What is 3 + 4?", "7")
	row.Messages = append([]chat.Message{{Role: "system", Content: "Be exact."}}, row.Messages...)
	return row, nil
}

// play plays the replies, batch by batch, and returns the prompts of each batch, all rewards and the last metrics.
func play(t *testing.T, env environment.Environment,
	replies [][]string) (prompts [][]environment.Prompt, rewards []environment.Reward, metrics map[string]float64) {
	t.Helper()
	episode, err := env.Start(t.Context(), environment.Task{Split: "train"})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	defer episode.Close(t.Context())
	next, err := episode.Prompts(t.Context())
	if err != nil {
		t.Fatalf("Prompts: %v", err)
	}
	metrics = map[string]float64{}
	for _, batch := range replies {
		prompts = append(prompts, next)
		given := make([]environment.Reply, len(batch))
		for i, text := range batch {
			given[i] = environment.Reply{Role: next[i].Role, Conversation: next[i].Conversation,
				Message: chat.Message{Role: "assistant", Content: text}}
		}
		turn, err := episode.Step(t.Context(), given)
		if err != nil {
			t.Fatalf("Step: %v", err)
		}
		rewards = append(rewards, turn.Rewards...)
		for name, value := range turn.Metrics {
			metrics[name] = value
		}
		next = turn.Prompts
		if turn.Done != (len(next) == 0) {
			t.Fatalf("the turn has %d prompts, and Done is %v", len(next), turn.Done)
		}
	}
	if len(next) != 0 {
		t.Fatalf("the episode asks for more: %v", next)
	}
	return prompts, rewards, metrics
}

func newSolverJudge(t *testing.T, options settings.SolverJudge) *SolverJudge {
	t.Helper()
	options.Solvers = max(options.Solvers, 2) // The schema has this default.
	env, err := NewSolverJudge(sums{}, verify.ExactMatch{}, options)
	if err != nil {
		t.Fatalf("NewSolverJudge: %v", err)
	}
	return env
}

func TestSolverJudge(t *testing.T) {
	cases := map[string]struct {
		solvers []string
		judge   string
		// rewards are the rewards of the two solvers and of the judge.
		rewards [3]float64
		acc     float64
	}{
		"the judge finds the right answer": {solvers: []string{"<answer>6</answer>", "3 + 4 is <ANSWER> 7\n</ANSWER>"},
			judge: "<answer>2</answer>", rewards: [3]float64{0, 1, 1}, acc: 0.5},
		"the judge takes the wrong one": {solvers: []string{"<answer>6</answer>", "<answer>7</answer>"},
			judge: "<answer> 1 </answer>", rewards: [3]float64{0, 1, 0}, acc: 0.5},
		"the first index counts": {solvers: []string{"<answer>7</answer>", "<answer>7</answer>"},
			judge: "<answer>1</answer> or <answer>5</answer>", rewards: [3]float64{1, 1, 1}, acc: 1},
		"the index 0": {solvers: []string{"<answer>7</answer>", "<answer>7</answer>"},
			judge: "<answer>0</answer>", rewards: [3]float64{1, 1, 0}, acc: 1},
		"a negative index": {solvers: []string{"<answer>7</answer>", "<answer>7</answer>"},
			judge: "<answer>-1</answer>", rewards: [3]float64{1, 1, 0}, acc: 1},
		"an index beyond the solutions": {solvers: []string{"<answer>7</answer>", "<answer>7</answer>"},
			judge: "<answer>3</answer>", rewards: [3]float64{1, 1, 0}, acc: 1},
		"an index that is not a number": {solvers: []string{"<answer>7</answer>", "<answer>7</answer>"},
			judge: "<answer>first</answer>", rewards: [3]float64{1, 1, 0}, acc: 1},
		"a judge without an index": {solvers: []string{"<answer>7</answer>", "<answer>7</answer>"}, judge: "7",
			rewards: [3]float64{1, 1, 0}, acc: 1},
		"a solver without an answer": {solvers: []string{"The sum is 7.", "<answer>7</answer>"},
			judge: "<answer>1</answer>", rewards: [3]float64{0, 1, 0}, acc: 0.5},
		"the first answer of a reply counts": {solvers: []string{"<answer>6</answer> <answer>7</answer>",
			"<answer>7</answer>"}, judge: "<answer>1</answer>", rewards: [3]float64{0, 1, 0}, acc: 0.5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, rewards, metrics := play(t, newSolverJudge(t, settings.SolverJudge{}), [][]string{tc.solvers, {tc.judge}})
			want := []environment.Reward{
				{Conversation: "solver-1", Value: tc.rewards[0]}, {Conversation: "solver-2", Value: tc.rewards[1]},
				{Conversation: "judge", Value: tc.rewards[2]},
			}
			if diff := cmp.Diff(want, rewards); diff != "" {
				t.Errorf("rewards (-want +got):\n%s", diff)
			}
			wantMetrics := map[string]float64{"solver_acc": tc.acc, "judge_acc": tc.rewards[2], "correct": tc.rewards[2]}
			if diff := cmp.Diff(wantMetrics, metrics); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSolverJudgePrompts(t *testing.T) {
	env := newSolverJudge(t, settings.SolverJudge{Solvers: 3, JudgePrompt: "$(prompt)|$(solutions)"})
	prompts, _, _ := play(t, env, [][]string{{"<answer>1</answer>", "none", "<answer>7</answer>"}, {"<answer>3</answer>"}})
	system := chat.Message{Role: "system", Content: "Be exact."}
	solver := []chat.Message{system, {Role: "user",
		Content: "What is 3 + 4?. Output the final answer within <answer>...</answer>"}}
	judge := []chat.Message{system, {Role: "user",
		Content: "What is 3 + 4?|\nSolution 1:\n<answer>1</answer>\n\nSolution 2:\nNo solution found\n\nSolution " +
			"3:\n<answer>7</answer>"}}
	want := [][]environment.Prompt{
		{
			{Role: "solver", Conversation: "solver-1", Messages: solver},
			{Role: "solver", Conversation: "solver-2", Messages: solver},
			{Role: "solver", Conversation: "solver-3", Messages: solver},
		},
		{{Role: "judge", Conversation: "judge", Messages: judge}},
	}
	if diff := cmp.Diff(want, prompts); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
}

// TestSolverJudgeDefaultPrompt checks that the prompt has the parts of rLLM's prompt, in the same order.
func TestSolverJudgeDefaultPrompt(t *testing.T) {
	prompts, _, _ := play(t, newSolverJudge(t, settings.SolverJudge{}), [][]string{{"<answer>1</answer>", "none"},
		{"<answer>1</answer>"}})
	text, at := prompts[1][0].Messages[1].Content, 0
	for _, part := range []string{
		"verifier", "Problem:\n", "What is 3 + 4?", "\nSolutions to evaluate:\n", "\nSolution 1:\n<answer>1</answer>\n",
		"\nSolution 2:\nNo solution found\n",
		"1. It uses only the given numbers.", "2. ", "exactly once", "3. ", "+, -, * and /", "4. ", "target", "5. ",
		"<answer> tags",
		"<answer>1</answer>", "first",
	} {
		next := strings.Index(text[at:], part)
		if next < 0 {
			t.Fatalf("the prompt lacks %q behind its first %d bytes:\n%s", part, at, text)
		}
		at += next + len(part)
	}
}

func TestSolverJudgePatternsThatCannotWork(t *testing.T) {
	for _, pattern := range []string{"(", "no group"} {
		_, err := NewSolverJudge(sums{}, verify.ExactMatch{}, settings.SolverJudge{AnswerPattern: pattern})
		if err == nil || !strings.Contains(err.Error(), "answerPattern") {
			t.Errorf("NewSolverJudge with pattern %q: %v, want an error that names the field", pattern, err)
		}
	}
}

func TestSolverJudgeAnswersAreGraded(t *testing.T) {
	env := newSolverJudge(t, settings.SolverJudge{})
	right, wrong, err := env.Answers(t.Context(), environment.Task{Split: "train"})
	if err != nil {
		t.Fatalf("Answers: %v", err)
	}
	for text, want := range map[string]float64{right: 2, wrong: 0} {
		_, rewards, _ := play(t, env, [][]string{{text, text}, {text}})
		sum := 0.0
		for _, reward := range rewards {
			sum += reward.Value
		}
		if sum != want {
			t.Errorf("replies %q earn %v, want %v", text, sum, want)
		}
	}
	if _, _, err := newSolverJudge(t, settings.SolverJudge{AnswerPattern: "ANSWER: (.*)"}).Answers(t.Context(),
		environment.Task{}); !errors.Is(err, environment.ErrNoAnswers) {
		t.Errorf("Answers with another pattern: %v, want ErrNoAnswers", err)
	}
}

func TestSelfRefine(t *testing.T) {
	env := NewSelfRefine(sums{}, verify.ExactMatch{}, settings.SelfRefine{})
	prompts, rewards, metrics := play(t, env, [][]string{{"6"}, {"One too few."}, {"7"}})
	want := []environment.Reward{{Conversation: "draft", Value: 0}, {Conversation: "critique", Value: 1},
		{Conversation: "revision", Value: 1}}
	if diff := cmp.Diff(want, rewards); diff != "" {
		t.Errorf("rewards (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]float64{"draft_reward": 0, "improved": 1, "correct": 1}, metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if _, _, metrics := play(t, env, [][]string{{"7"}, {"Good."}, {"7"}}); metrics["improved"] != 0 {
		t.Errorf("improved is %v for a revision that earns the draft's reward, want 0", metrics["improved"])
	}
	last := prompts[2][0]
	text := last.Messages[1].Content
	if last.Role != RoleRevision || !strings.Contains(text, "first answer was:\n\n6\n") || !strings.Contains(text,
		"says of it:\n\nOne too few.\n") {
		t.Errorf("the revision is asked for with %+v", last)
	}
}

func TestSelfRefineEndsAtALimit(t *testing.T) {
	episode, err := NewSelfRefine(sums{}, verify.ExactMatch{}, settings.SelfRefine{}).Start(t.Context(),
		environment.Task{Split: "train"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"7", "Good."} {
		if _, err := episode.Step(t.Context(), []environment.Reply{{Message: chat.Message{Content: text}}}); err != nil {
			t.Fatalf("Step: %v", err)
		}
	}
	turn, err := episode.Finish(t.Context())
	if diff := cmp.Diff([]environment.Reward{{Conversation: "critique"}}, turn.Rewards); err != nil || diff != "" ||
		!turn.Done {
		t.Errorf("Finish = %+v, %v; rewards (-want +got):\n%s", turn, err, diff)
	}
	if diff := cmp.Diff(map[string]float64{"draft_reward": 1, "improved": 0, "correct": 0}, turn.Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func TestSolverJudgeEndsAtALimit(t *testing.T) {
	episode, err := newSolverJudge(t, settings.SolverJudge{}).Start(t.Context(), environment.Task{Split: "train"})
	if err != nil {
		t.Fatal(err)
	}
	prompts, err := episode.Prompts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	replies := make([]environment.Reply, len(prompts))
	for i, prompt := range prompts {
		replies[i] = environment.Reply{Role: prompt.Role, Conversation: prompt.Conversation,
			Message: chat.Message{Content: "<answer>7</answer>"}}
	}
	if _, err := episode.Step(t.Context(), replies); err != nil {
		t.Fatalf("Step: %v", err)
	}
	turn, err := episode.Finish(t.Context())
	if err != nil || !turn.Done || turn.Rewards != nil {
		t.Errorf("Finish = %+v, %v, want the end without a further reward", turn, err)
	}
	if diff := cmp.Diff(map[string]float64{"solver_acc": 1, "judge_acc": 0, "correct": 0}, turn.Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}
