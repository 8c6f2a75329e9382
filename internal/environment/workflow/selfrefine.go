// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workflow

import (
	"cmp"
	"context"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// The roles of SelfRefine. Each has the conversation of its name.
const (
	RoleDraft    = "draft"
	RoleCritique = "critique"
	RoleRevision = "revision"
)

// SelfRefine has these metrics, besides MetricCorrect, which the revision decides.
const (
	// MetricDraft is the reward of the draft.
	MetricDraft = "draft_reward"
	// MetricImproved is 1 if the revision earned more than the draft.
	MetricImproved = "improved"
)

// Defaults of the options of SelfRefine.
const (
	DefaultDraftPrompt    = "$(prompt)"
	DefaultCritiquePrompt = "$(prompt)\n\nAn answer to this is:\n\n$(draft)\n\nSay what is wrong with the answer, if " +
		"anything is, and what would make it better."
	DefaultRevisionPrompt = "$(prompt)\n\nA first answer was:\n\n$(draft)\n\nA critic says of " +
		"it:\n\n$(critique)\n\nWrite the final answer."
)

// SelfRefine is the environment in which the policy writes a draft, criticises it, and writes a final answer. The draft
// earns its own grade. Critique and revision both earn the grade of the revision.
type SelfRefine struct {
	rows
	options settings.SelfRefine
}

// NewSelfRefine returns the environment. The prompts are templates. The draft's template has $(prompt), the
// critique's also $(draft), and the revision's also $(critique). An empty template is replaced by its default.
func NewSelfRefine(data dataset.Dataset, grader verify.Grader, options settings.SelfRefine) *SelfRefine {
	options.DraftPrompt = cmp.Or(options.DraftPrompt, DefaultDraftPrompt)
	options.CritiquePrompt = cmp.Or(options.CritiquePrompt, DefaultCritiquePrompt)
	options.RevisionPrompt = cmp.Or(options.RevisionPrompt, DefaultRevisionPrompt)
	return &SelfRefine{rows: rows{verify.Tasks{Rows: data, Grader: grader}}, options: options}
}

// Start implements environment.Environment.
func (s *SelfRefine) Start(ctx context.Context, task environment.Task) (environment.Episode, error) {
	row, err := s.Row(ctx, task)
	if err != nil {
		return nil, err
	}
	return &selfRefineEpisode{SelfRefine: s, row: row}, nil
}

type selfRefineEpisode struct {
	*SelfRefine
	row dataset.Row
	// texts are the replies so far: draft, critique, revision.
	texts []string
	// draft is the reward of the draft.
	draft float64
}

// Prompts implements environment.Episode.
func (e *selfRefineEpisode) Prompts(context.Context) ([]environment.Prompt, error) {
	return []environment.Prompt{request(e.row, RoleDraft, RoleDraft, fill(e.options.DraftPrompt, "prompt", e.row.Prompt))},
		nil
}

// Step implements environment.Episode.
func (e *selfRefineEpisode) Step(ctx context.Context, replies []environment.Reply) (environment.Turn, error) {
	if err := checkReplies(replies, 1); err != nil {
		return environment.Turn{}, err
	}
	reward := 0.0
	if len(e.texts) != 1 { // A critique earns the grade of the revision.
		var err error
		if reward, err = e.grade(ctx, e.row, replies[0]); err != nil {
			return environment.Turn{}, err
		}
	}
	e.texts = append(e.texts, replies[0].Message.Content)
	switch len(e.texts) {
	case 1:
		e.draft = reward
		text := fill(e.options.CritiquePrompt, "prompt", e.row.Prompt, "draft", e.texts[0])
		return environment.Turn{
			Rewards: []environment.Reward{{Conversation: RoleDraft, Value: reward}}, Metrics: e.metrics(0),
			Prompts: []environment.Prompt{request(e.row, RoleCritique, RoleCritique, text)},
		}, nil
	case 2:
		text := fill(e.options.RevisionPrompt, "prompt", e.row.Prompt, "draft", e.texts[0], "critique", e.texts[1])
		return environment.Turn{Prompts: []environment.Prompt{request(e.row, RoleRevision, RoleRevision, text)}}, nil
	default:
		return environment.Turn{
			Rewards: []environment.Reward{{Conversation: RoleCritique, Value: reward},
				{Conversation: RoleRevision, Value: reward}},
			Metrics: e.metrics(reward), Done: true,
		}, nil
	}
}

// metrics returns the metrics of an episode whose revision has earned a reward.
func (e *selfRefineEpisode) metrics(revision float64) map[string]float64 {
	return map[string]float64{
		MetricDraft: e.draft, MetricImproved: indicator(revision > e.draft), MetricCorrect: indicator(revision > 0),
	}
}

// Finish implements environment.Episode. A critique without a revision earns nothing.
func (e *selfRefineEpisode) Finish(context.Context) (environment.Turn, error) {
	turn := environment.Turn{Metrics: e.metrics(0), Done: true}
	if len(e.texts) == 2 {
		turn.Rewards = []environment.Reward{{Conversation: RoleCritique, Value: 0}}
	}
	return turn, nil
}

// Close implements environment.Episode.
func (e *selfRefineEpisode) Close(context.Context) {}

var (
	_ environment.Environment = (*SelfRefine)(nil)
	_ environment.Answerer    = (*SelfRefine)(nil)
)
