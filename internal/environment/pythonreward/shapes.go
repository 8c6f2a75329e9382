// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pythonreward

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// The methods of the program that score one reply and the replies of a group, and that play an episode.
const (
	methodReward  = "reward"
	methodRewards = "rewards"
	methodEpisode = "episode"
)

// MetricErrors counts replies that have the reward onError, since the function gave none.
const MetricErrors = "reward_errors"

// reply is a reply as a function gets it.
type reply struct {
	Text string `json:"text"`
	// Messages has the reply as a message of a chat.
	Messages  []message `json:"messages"`
	ToolCalls []call    `json:"tool_calls"`
	Truncated bool      `json:"truncated"`
}

type message struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	ToolCalls []call `json:"tool_calls,omitempty"`
	// Reply identifies the policy's reply when an episode gives the message back.
	Reply int `json:"reply,omitempty"`
}

// call is a call of a tool. Its arguments are the text that the policy wrote.
type call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func replyOf(from environment.Reply) reply {
	said := from.Message
	r := reply{Text: said.Content, ToolCalls: []call{}, Truncated: from.Truncated}
	for _, c := range said.Calls {
		r.ToolCalls = append(r.ToolCalls, call{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	r.Messages = []message{{Role: said.Role, Content: said.Content, ToolCalls: r.ToolCalls}}
	return r
}

// result is the result of a function, as the program writes it.
type result struct {
	Reward  *float64           `json:"reward"`
	Correct *bool              `json:"correct"`
	Metrics map[string]float64 `json:"metrics"`
}

// scoresOf reads the results for a group.
func scoresOf(value json.RawMessage, replies int) ([]verify.Score, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil || len(list) != replies {
		return nil, &environment.Fault{Permanent: true, Err: fmt.Errorf(
			"reading the results of the reward: they are not those of %d replies: %.200s", replies, value)}
	}
	scores := make([]verify.Score, replies)
	for i, each := range list {
		var err error
		if scores[i], err = scoreOf(each); err != nil {
			return nil, err
		}
	}
	return scores, nil
}

// scoreOf reads a result. A result in any other form than the program writes was forged by the code.
func scoreOf(value json.RawMessage) (verify.Score, error) {
	var r result
	if err := json.Unmarshal(value, &r); err != nil || r.Reward == nil {
		return verify.Score{}, &environment.Fault{Permanent: true, Err: fmt.Errorf(
			"reading the result of the reward: it is no result of a function: %.200s", value)}
	}
	score := verify.Score{Reward: *r.Reward}
	if len(r.Metrics) > 0 || r.Correct != nil {
		score.Metrics = maps.Clone(r.Metrics)
	}
	if r.Correct != nil {
		if score.Metrics == nil {
			score.Metrics = map[string]float64{}
		}
		score.Metrics[verify.MetricCorrect] = 0
		if *r.Correct {
			score.Metrics[verify.MetricCorrect] = 1
		}
	}
	return score, nil
}
