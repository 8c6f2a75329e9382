// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// An evaluation that costs more than costLimit is a fault. The unit is the cost of CEL, as in Kubernetes' validation
// rules.
const (
	costLimit      = 1_000_000
	checkFrequency = 1000
)

// Expression rewards a reply with the value of a CEL expression over row, reply and episode. A bool is 1 or 0. An
// expression that fails is a fault, and never a reward of 0.
type Expression struct {
	program cel.Program
	// columns are the columns that the expression reads of every row.
	columns []string
}

// NewExpression compiles an expression and checks its types.
func NewExpression(text string) (*Expression, error) {
	env, err := newCELEnv()
	if err != nil {
		return nil, fmt.Errorf("preparing CEL: %w", err)
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, compileError(issues)
	}
	switch kind := checked.OutputType(); kind.Kind() {
	case types.DoubleKind, types.IntKind, types.UintKind, types.BoolKind, types.DynKind:
	default:
		return nil, fmt.Errorf("expression gives a value of type %s, which is no reward: let it give a number or a bool, "+
			"as in 'CONDITION ? 1.0 : 0.0'", kind)
	}
	program, err := env.Program(checked, cel.CostLimit(costLimit), cel.CostTracking(textCost{}),
		cel.InterruptCheckFrequency(checkFrequency))
	if err != nil {
		return nil, fmt.Errorf("expression cannot be evaluated: %w", err)
	}
	return &Expression{program: program, columns: columnsOf(checked.NativeRep().Expr())}, nil
}

// mostIssues bounds the problems that a message lists.
const mostIssues = 3

// compileError says where an expression is wrong. Columns begin at 1.
func compileError(issues *cel.Issues) error {
	var problems []string
	for i, issue := range issues.Errors() {
		if i == mostIssues {
			problems = append(problems, fmt.Sprintf("and %d more", len(issues.Errors())-mostIssues))
			break
		}
		message := strings.TrimSuffix(issue.Message, " (in container '')")
		problems = append(problems, fmt.Sprintf("line %d, column %d: %s", issue.Location.Line(), issue.Location.Column()+1,
			message+hint(message)))
	}
	return fmt.Errorf("expression is not valid CEL: %s; its variables are row, reply and episode",
		strings.Join(problems, "; "))
}

// Grade implements Grader.
func (e *Expression) Grade(ctx context.Context, row dataset.Row, reply environment.Reply) (Score, error) {
	value, _, err := e.program.ContextEval(ctx, map[string]any{
		"row":   plain(row.AllFields()),
		"reply": celReply{Text: reply.Message.Content, Truncated: reply.Truncated, Malformed: reply.Malformed != ""},
		"episode": celEpisode{
			Turns: int64(reply.Usage.Turns), ToolCalls: int64(reply.Usage.ToolCalls),
			SampledTokens: int64(reply.Usage.SampledTokens),
		},
	})
	if ctx.Err() != nil {
		return Score{}, ctx.Err()
	}
	if err != nil {
		return Score{}, rowFault("%w", explainEvaluation(err, row.AllFields()))
	}
	reward, err := rewardOf(value)
	if err != nil {
		return Score{}, err
	}
	return Score{Reward: reward}, nil
}

// rewardOf returns the number that an expression gave.
func rewardOf(value ref.Val) (float64, error) {
	var reward float64
	switch v := value.(type) {
	case types.Double:
		reward = float64(v)
	case types.Int:
		reward = float64(v)
	case types.Uint:
		reward = float64(v)
	case types.Bool:
		if v {
			reward = 1
		}
	default:
		return 0, rowFault("reward.expression gave a value of type %s, which is no reward: let it give a number or a bool",
			value.Type().TypeName())
	}
	if !finite.Is(reward) {
		return 0, rowFault("reward.expression gave %v, which is no reward: guard it against replies without a number, as "+
			"in 'CONDITION ? VALUE : 0.0'", reward)
	}
	return reward, nil
}

// plain returns a value of a row as CEL reads it: a number is a double.
func plain(value any) any {
	switch v := value.(type) {
	case json.Number:
		number, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return number
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name := range v {
			object[name] = plain(v[name])
		}
		return object
	default:
		return value
	}
}

var _ Grader = (*Expression)(nil)
