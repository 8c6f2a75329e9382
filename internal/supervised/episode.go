// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package supervised

import (
	"encoding/json"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// Episodes says which records of episodes are trained on. The zero value keeps all usable episodes.
type Episodes struct {
	// MinReward is the least reward of an episode that is trained on; nil means no limit.
	MinReward *float64
	// BestOfTask keeps only the best episode of each task of an evaluation.
	BestOfTask bool
}

// check returns an *Unusable for a row that is left out. Rows that are no records of episodes pass.
func (e Episodes) check(row Row) error {
	switch episode := row.Episode; {
	case episode == nil:
		return nil
	case episode.Outcome != rl.Usable.String():
		return unusable(Filtered, "the episode is not usable (%s), so that its reward says nothing", episode.Outcome)
	case e.MinReward != nil && episode.Reward < *e.MinReward:
		return unusable(Filtered, "the reward is %g, and supervised.episodes.minReward is %g: lower it", episode.Reward,
			*e.MinReward)
	case e.BestOfTask && !episode.Best:
		return unusable(Filtered, "another episode of the task is the best, and supervised.episodes.select is BestOfTask: "+
			"set it to All")
	}
	return nil
}

// readEpisode reads the conversation of a recorded episode. An episode of several conversations is not a row, since
// the record does not say which of them to train on.
func readEpisode(data json.RawMessage) (Row, error) {
	var episode transcript.Episode
	if err := json.Unmarshal(data, &episode); err != nil {
		return Row{}, &Unusable{NotRendered, fmt.Errorf("episode: %w", err)}
	}
	conversations := episode.Conversations
	episode.Conversations = nil
	row := Row{Episode: &episode}
	switch {
	case len(conversations) > 1:
		return row, unusable(NotRendered, "episode has %d conversations: a row is one, so keep one of them in "+
			"episode.conversations", len(conversations))
	case len(conversations) == 0 || len(conversations[0].Messages) == 0:
		return row, unusable(NotRendered, "episode has no messages: record all with artifacts.episodes All")
	}
	recorded := conversations[0]
	for i, m := range recorded.Messages {
		switch {
		case m.Problem != "":
			return row, unusable(NotRendered, "message %d of the episode could not be parsed (%s)", i, m.Problem)
		case m.NewPrompt:
			return row, unusable(NotRendered, "message %d of the episode begins the prompt anew, which one row cannot say", i)
		}
		message := chat.Message{Role: m.Role, Content: m.Text, Thinking: m.Thinking, Name: m.Name}
		for _, call := range m.Calls {
			message.Calls = append(message.Calls, chat.ToolCall{Name: call.Name, Arguments: call.Arguments})
		}
		row.Conversation.Messages = append(row.Conversation.Messages, message)
	}
	for _, tool := range recorded.Tools {
		row.Conversation.Tools = append(row.Conversation.Tools, chat.Tool{Name: tool.Name, Description: tool.Description,
			Parameters: tool.Parameters})
	}
	return row, nil
}
