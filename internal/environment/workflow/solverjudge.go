// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workflow

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// The roles of SolverJudge.
const (
	RoleSolver = "solver"
	RoleJudge  = "judge"
)

// SolverJudge has these metrics, besides MetricCorrect.
const (
	// MetricSolverAccuracy is the mean reward of the solvers.
	MetricSolverAccuracy = "solver_acc"
	// MetricJudgeAccuracy is 1 if the judge has chosen an answer that earned a reward.
	MetricJudgeAccuracy = "judge_acc"
)

// NoSolution stands in place of the answer of a solver that gave none.
const NoSolution = "No solution found"

// Defaults of the options of SolverJudge. They follow the workflow of rLLM for Countdown.
const (
	DefaultSolverPrompt = "$(prompt). Output the final answer within <answer>...</answer>"
	DefaultJudgePrompt  = "You are an expert verifier. You are given a countdown problem and several attempts to solve " +
		"it. Choose a correct one.\n" +
		"Problem:\n$(prompt)\nSolutions to evaluate:\n$(solutions)\n\n" +
		"A correct solution meets all of these criteria:\n" +
		"1. It uses only the given numbers.\n" +
		"2. It uses each of them exactly once.\n" +
		"3. It uses no operations but +, -, * and /.\n" +
		"4. It evaluates to the target number.\n" +
		"5. Its final answer is within <answer> tags.\n\n" +
		"Output the index of your choice within <answer> tags, for example <answer>1</answer>. " +
		"If several solutions are correct, choose the first of them."
	DefaultAnswerPattern = `(?is)<answer>(.*?)</answer>`
)

// SolverJudge is the environment in which several solvers answer a prompt independently, and a judge chooses one of the
// answers by its index, from 1. A solver earns the grade of its answer. The judge earns the grade of the answer that it
// chose, or of an empty answer if its index is invalid.
type SolverJudge struct {
	rows
	options settings.SolverJudge
	pattern *regexp.Regexp
}

// NewSolverJudge returns the environment. Empty options have the defaults. The solver's prompt is a template with
// $(prompt), and the judge's prompt a template with $(prompt) and $(solutions). The first group of the pattern's
// first match is a solver's answer, or the judge's index. NewSolverJudge fails if the pattern is not a regular
// expression with a group.
func NewSolverJudge(data dataset.Dataset, grader verify.Grader, options settings.SolverJudge) (*SolverJudge, error) {
	options.SolverPrompt = cmp.Or(options.SolverPrompt, DefaultSolverPrompt)
	options.JudgePrompt = cmp.Or(options.JudgePrompt, DefaultJudgePrompt)
	options.AnswerPattern = cmp.Or(options.AnswerPattern, DefaultAnswerPattern)
	pattern, err := regexp.Compile(options.AnswerPattern)
	if err != nil {
		return nil, fmt.Errorf("compiling answerPattern: %w", err)
	}
	if pattern.NumSubexp() < 1 {
		return nil, fmt.Errorf("answerPattern %q has no group in parentheses, which is the answer", options.AnswerPattern)
	}
	return &SolverJudge{rows: rows{verify.Tasks{Rows: data, Grader: grader}}, options: options, pattern: pattern}, nil
}

// Start implements environment.Environment.
func (s *SolverJudge) Start(ctx context.Context, task environment.Task) (environment.Episode, error) {
	row, err := s.Row(ctx, task)
	if err != nil {
		return nil, err
	}
	return &solverJudgeEpisode{SolverJudge: s, row: row}, nil
}

// Answers implements environment.Answerer. The replies are meant for the solvers; the judge cannot choose an answer
// by them.
func (s *SolverJudge) Answers(ctx context.Context, task environment.Task) (right, wrong string, err error) {
	if right, wrong, err = s.rows.Answers(ctx, task); err != nil {
		return "", "", err
	}
	for _, text := range []*string{&right, &wrong} {
		if !s.pattern.MatchString(*text) {
			*text = answerOf(*text)
		}
	}
	if !s.pattern.MatchString(right) {
		return "", "", environment.ErrNoAnswers
	}
	return right, wrong, nil
}

// answerOf writes an answer as graders and the judge read it.
func answerOf(text string) string { return "<answer>" + text + "</answer>" }

// read returns the group of the pattern's first match.
func (s *SolverJudge) read(reply environment.Reply) (text string, ok bool) {
	match := s.pattern.FindStringSubmatch(reply.Message.Content)
	if match == nil {
		return "", false
	}
	return strings.TrimSpace(match[1]), true
}

type solverJudgeEpisode struct {
	*SolverJudge
	row dataset.Row
	// answers are the answers of the solvers, as the judge sees them; nil before they are complete.
	answers []environment.Reply
	// accuracy is the mean reward of the solvers.
	accuracy float64
}

// Prompts implements environment.Episode.
func (e *solverJudgeEpisode) Prompts(context.Context) ([]environment.Prompt, error) {
	prompts := make([]environment.Prompt, e.options.Solvers)
	text := fill(e.options.SolverPrompt, "prompt", e.row.Prompt)
	for i := range prompts {
		prompts[i] = request(e.row, RoleSolver, solverKey(i), text)
	}
	return prompts, nil
}

// solverKey is the conversation of a solver.
func solverKey(i int) string { return RoleSolver + "-" + strconv.Itoa(i+1) }

// Step implements environment.Episode.
func (e *solverJudgeEpisode) Step(ctx context.Context, replies []environment.Reply) (environment.Turn, error) {
	if e.answers == nil {
		return e.solve(ctx, replies)
	}
	return e.choose(ctx, replies)
}

// solve grades the answers of the solvers and asks the judge.
func (e *solverJudgeEpisode) solve(ctx context.Context, replies []environment.Reply) (environment.Turn, error) {
	if err := checkReplies(replies, int(e.options.Solvers)); err != nil {
		return environment.Turn{}, err
	}
	var turn environment.Turn
	var solutions strings.Builder
	total := 0.0
	for i, reply := range replies {
		text, ok := e.read(reply)
		reply.Truncated = reply.Truncated && !ok
		reply.Message = reply.Message.WithText(NoSolution)
		if ok {
			reply.Message = reply.Message.WithText(answerOf(text))
		}
		reward, err := e.grade(ctx, e.row, reply)
		if err != nil {
			return environment.Turn{}, err
		}
		total += reward
		turn.Rewards = append(turn.Rewards, environment.Reward{Conversation: solverKey(i), Value: reward})
		e.answers = append(e.answers, reply)
		fmt.Fprintf(&solutions, "\nSolution %d:\n%s\n", i+1, reply.Message.Content)
	}
	e.accuracy = total / float64(len(replies))
	text := fill(e.options.JudgePrompt, "prompt", e.row.Prompt, "solutions", strings.TrimSuffix(solutions.String(), "\n"))
	turn.Prompts = []environment.Prompt{request(e.row, RoleJudge, RoleJudge, text)}
	turn.Metrics = e.metrics(0)
	return turn, nil
}

// choose grades the answer that the judge has chosen.
func (e *solverJudgeEpisode) choose(ctx context.Context, replies []environment.Reply) (environment.Turn, error) {
	if err := checkReplies(replies, 1); err != nil {
		return environment.Turn{}, err
	}
	chosen := replies[0]
	chosen.Message = chosen.Message.WithText("")
	if text, ok := e.read(replies[0]); ok {
		if i, err := strconv.Atoi(text); err == nil && i >= 1 && i <= len(e.answers) {
			chosen = e.answers[i-1]
		}
	}
	reward, err := e.grade(ctx, e.row, chosen)
	if err != nil {
		return environment.Turn{}, err
	}
	return environment.Turn{
		Rewards: []environment.Reward{{Conversation: RoleJudge, Value: reward}}, Metrics: e.metrics(reward), Done: true,
	}, nil
}

// metrics returns the metrics of an episode whose judge has earned a reward.
func (e *solverJudgeEpisode) metrics(judge float64) map[string]float64 {
	correct := indicator(judge > 0)
	return map[string]float64{MetricSolverAccuracy: e.accuracy, MetricJudgeAccuracy: correct, MetricCorrect: correct}
}

// Finish implements environment.Episode. The solvers keep their rewards.
func (e *solverJudgeEpisode) Finish(context.Context) (environment.Turn, error) {
	return environment.Turn{Metrics: e.metrics(0), Done: true}, nil
}

// Close implements environment.Episode.
func (e *solverJudgeEpisode) Close(context.Context) {}

var (
	_ environment.Environment = (*SolverJudge)(nil)
	_ environment.Answerer    = (*SolverJudge)(nil)
)
