// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package workflow has environments in which several roles of one policy work on a row of a data set: solvers and a
// judge that chooses among their answers, and a draft that is criticised and revised. It uses nothing but the contract
// of environments: each role speaks in conversations of its own, and each reward names the conversation that earned it.
package workflow

import (
	"context"
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// MetricCorrect is 1 for an episode whose final answer earned a reward above 0, and 0 for any other episode.
const MetricCorrect = "correct"

// rows are the tasks of a workflow and the grader of its answers.
type rows struct{ verify.Tasks }

// grade returns the reward of an answer.
func (r rows) grade(ctx context.Context, row dataset.Row, answer environment.Reply) (float64, error) {
	score, err := r.Grader.Grade(ctx, row, answer)
	return score.Reward, err
}

// request asks a role for the first reply of a conversation. The messages of the row before its prompt come first; the
// text takes the place of the prompt.
func request(row dataset.Row, role, conversation, text string) environment.Prompt {
	messages := []chat.Message{{Role: chat.RoleUser, Content: text}}
	if before := len(row.Messages) - 1; before > 0 {
		messages = append(append([]chat.Message(nil), row.Messages[:before]...), messages...)
	}
	return environment.Prompt{Role: role, Conversation: conversation, Messages: messages}
}

// fill replaces the placeholders $(name) of a template. The arguments after the template are names and their values,
// in turn.
func fill(template string, values ...string) string {
	for i := 0; i < len(values); i += 2 {
		values[i] = "$(" + values[i] + ")"
	}
	return strings.NewReplacer(values...).Replace(template)
}

// checkReplies fails unless there is a reply to each request.
func checkReplies(replies []environment.Reply, requests int) error {
	if len(replies) == requests {
		return nil
	}
	err := fmt.Errorf("%d replies were asked for, %d were given", requests, len(replies))
	return &environment.Fault{Permanent: true, Err: err}
}

// indicator returns 1 for true and 0 for false.
func indicator(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}
