// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pythonreward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// longestEpisode bounds the time of an episode in its program, except the time of its questions. The worker has
// shorter limits.
const longestEpisode = 24 * time.Hour

// codeLimitReached is the code of an answer to a question that a limit of the run forbids.
const codeLimitReached protocol.Code = "limit_reached"

// Episodes is the environment whose episodes a function or class in Python plays. Its tasks are the rows of a data set.
type Episodes struct {
	function *function
	rows     dataset.Dataset
	// roles are the roles that conversations may have. The empty role is always allowed.
	roles []string
}

// NewEpisodes returns the environment. Nothing is started yet. The options Timeout and OnError are ignored.
func NewEpisodes(host *Host, rows dataset.Dataset, roles []string, o Options) (*Episodes, error) {
	o.Timeout, o.entry = longestEpisode, methodEpisode
	f, err := newFunction(host, o, "async def episode(row, policy, seed), or a class Environment with start(row, seed) "+
		"and step(reply)", methodEpisode)
	if err != nil {
		return nil, err
	}
	return &Episodes{function: f, rows: rows, roles: roles}, nil
}

// Splits implements environment.Environment.
func (e *Episodes) Splits(ctx context.Context) ([]environment.Split, error) {
	return e.rows.Splits(ctx)
}

// Checker returns the environment as an environment.Checker: no episode begins while the code cannot be called.
func (e *Episodes) Checker() environment.Checker { return e }

// Check implements environment.Checker. The error is a *CodeError if the code is wrong.
func (e *Episodes) Check(ctx context.Context) error { return e.function.Check(ctx) }

// Examples implements environment.Exampler. The row's answer is a reply that some programs reward.
func (e *Episodes) Examples(ctx context.Context, task environment.Task) ([]string, error) {
	return examplesOf(ctx, e.rows, task)
}

// Start implements environment.Environment.
func (e *Episodes) Start(ctx context.Context, task environment.Task) (environment.Episode, error) {
	if err := e.Check(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &environment.Fault{Unavailable: true, Err: err}
	}
	row, err := e.rows.Row(ctx, task.Split, task.Index)
	if err != nil {
		return nil, err
	}
	return &episode{Episodes: e, row: row, seed: task.Seed}, nil
}

// episode is one call of the function.
type episode struct {
	environment.Unasked
	*Episodes
	row  dataset.Row
	seed uint64
}

// Close implements environment.Episode. It does nothing, since Run leaves nothing behind.
func (*episode) Close(context.Context) {}

// Run implements environment.Program.
func (e *episode) Run(ctx context.Context, policy environment.Policy) (environment.Turn, error) {
	params, err := json.Marshal(map[string]any{"row": e.row.AllFields()})
	if err != nil {
		return environment.Turn{}, &environment.Fault{Permanent: true, Err: fmt.Errorf("encoding an episode: %w", err)}
	}
	answers := client.NewAnswers(func(ctx context.Context, q client.Question) (json.RawMessage, error) {
		return e.answer(ctx, policy, q)
	})
	value, err := e.function.call(ctx, client.Call{Method: methodEpisode, Params: params, Seed: e.seed, Answers: answers})
	if err != nil {
		return environment.Turn{}, e.failed(err)
	}
	if unused := answers.Unused(); unused > 0 {
		return environment.Turn{}, &environment.Fault{Err: fmt.Errorf("the program asked otherwise when it was run again, "+
			"since its process had ended: %d replies are of no use", unused)}
	}
	return turnOf(value)
}

// failed returns why an episode has failed: the limit that its code did not catch, or a fault.
func (e *episode) failed(err error) error {
	var code *CodeError
	if !errors.As(err, &code) {
		return err
	}
	if code.Code == protocol.CodeQuestionFailed && code.limit != "" {
		return &environment.LimitError{Limit: code.limit}
	}
	return &environment.Fault{Permanent: true, Err: err}
}

// answer answers a question of the program.
func (e *Episodes) answer(ctx context.Context, policy environment.Policy, q client.Question) (json.RawMessage, error) {
	var given any
	var err error
	switch q.Method {
	case "chat":
		given, err = e.chat(ctx, policy, q.Params)
	case "sample":
		given, err = e.sample(ctx, policy, q.Params)
	default:
		return nil, &protocol.Error{Code: protocol.CodeUnknownMethod,
			Message: fmt.Sprintf("The policy has chat and sample, and not %s.", q.Method)}
	}
	var limit *environment.LimitError
	if errors.As(err, &limit) {
		return nil, &protocol.Error{Code: codeLimitReached, Message: limit.Limit}
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(given)
}

func (e *Episodes) chat(ctx context.Context, policy environment.Policy, params json.RawMessage) (any, error) {
	prompt, err := promptOf(params)
	if err == nil {
		err = e.checkRole(prompt.Role)
	}
	if err != nil {
		return nil, &protocol.Error{Code: protocol.CodeBadRequest, Message: err.Error()}
	}
	said, err := policy.Chat(ctx, prompt)
	if err != nil {
		return nil, err
	}
	given := replyOf(said)
	given.Messages[0].Reply = said.Message.Reply
	return given, nil
}

func (e *Episodes) sample(ctx context.Context, policy environment.Policy, params json.RawMessage) (any, error) {
	prompt, err := tokensOf(params)
	if err == nil {
		err = e.checkRole(prompt.Role)
	}
	if err != nil {
		return nil, &protocol.Error{Code: protocol.CodeBadRequest, Message: err.Error()}
	}
	said, err := policy.Sample(ctx, prompt)
	if err != nil {
		return nil, err
	}
	return map[string]any{"tokens": said.Tokens, "truncated": said.Truncated}, nil
}

// checkRole fails for a role that the definition does not declare: the run's settings of roles could not name it.
func (e *Episodes) checkRole(role string) error {
	if role == "" && len(e.roles) == 0 || slices.Contains(e.roles, role) {
		return nil
	}
	if len(e.roles) == 0 {
		return fmt.Errorf("the role %q is not among interaction.python.roles, which is empty: add it", role)
	}
	return fmt.Errorf("the role %q is not among interaction.python.roles, %q: add it, or pass one of them as role=", role,
		e.roles)
}

// outcome is the result of an episode, as the program writes it.
type outcome struct {
	Reward  *float64           `json:"reward"`
	Rewards map[string]float64 `json:"rewards"`
	Correct *bool              `json:"correct"`
	Metrics map[string]float64 `json:"metrics"`
}

// turnOf reads the result of an episode.
func turnOf(value json.RawMessage) (environment.Turn, error) {
	var out outcome
	if err := json.Unmarshal(value, &out); err != nil || out.Reward == nil && out.Rewards == nil {
		return environment.Turn{}, &environment.Fault{Permanent: true, Err: fmt.Errorf(
			"reading the result of an episode: it is no result of a program: %.200s", value)}
	}
	turn := environment.Turn{Done: true, Metrics: maps.Clone(out.Metrics)}
	if out.Reward != nil {
		turn.Rewards = append(turn.Rewards, environment.Reward{Value: *out.Reward})
	}
	for _, key := range slices.Sorted(maps.Keys(out.Rewards)) {
		turn.Rewards = append(turn.Rewards, environment.Reward{Conversation: key, Value: out.Rewards[key]})
	}
	if out.Correct != nil {
		if turn.Metrics == nil {
			turn.Metrics = map[string]float64{}
		}
		turn.Metrics[verify.MetricCorrect] = 0
		if *out.Correct {
			turn.Metrics[verify.MetricCorrect] = 1
		}
	}
	return turn, nil
}

var (
	_ environment.Environment = (*Episodes)(nil)
	_ environment.Exampler    = (*Episodes)(nil)
	_ environment.Checker     = (*Episodes)(nil)
	_ environment.Program     = (*episode)(nil)
)
