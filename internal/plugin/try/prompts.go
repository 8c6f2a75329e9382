// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"context"
	"fmt"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
)

const (
	// countedTasks is the number of tasks of a split whose prompts are counted, at equal distances.
	countedTasks = 32
	// countingTime bounds the time for counting.
	countingTime = time.Minute
	// closeTime bounds the end of an episode.
	closeTime = 10 * time.Second
)

// Prompts are the tokens of the prompts that episodes begin with.
type Prompts struct {
	// Tasks is the number of counted tasks, and TooLong the number of these whose prompts are longer than
	// limits.promptTokens.
	Tasks   int64 `json:"tasks"`
	TooLong int64 `json:"tooLong,omitempty"`
	// Mean and Longest are the mean and the largest number of tokens of all first prompts of an episode.
	Mean    float64 `json:"meanTokens"`
	Longest int64   `json:"longestTokens"`
}

// CountPrompts renders the first prompts of some tasks of each environment of a run file that this machine has
// probed, by its model's renderer. Environments whose episodes an agent plays have no prompts to count.
func (p *Probed) CountPrompts(ctx context.Context, file contract.RunFile,
	environments []contract.Environment) (map[string]Prompts, error) {
	ctx, cancel := context.WithTimeout(ctx, countingTime)
	defer cancel()
	counted := map[string]Prompts{}
	var format renderer.Renderer
	for _, env := range environments {
		definition, ok := p.definition(env)
		if !ok || definition.Interaction != nil && definition.Interaction.Agent != nil {
			continue
		}
		if format == nil {
			read, err := p.trial.readRenderer(ctx, file)
			if err != nil {
				return nil, err
			}
			format = read
		}
		_, builder := p.trial.builder()
		built, err := builder.Build(ctx, definition)
		if err != nil {
			return nil, fmt.Errorf("environment %s: %w", env.Name, err)
		}
		if counted[env.Name], err = count(ctx, format, built, env); err != nil {
			return nil, fmt.Errorf("environment %s: %w", env.Name, err)
		}
	}
	return counted, nil
}

// definition returns the definition of an environment that this machine has probed.
func (p *Probed) definition(env contract.Environment) (contract.Definition, bool) {
	for _, pin := range p.Pins {
		if pin.Digest == env.Digest {
			return pin.Definition, true
		}
	}
	return contract.Definition{}, false
}

// count counts the tokens of the prompts of tasks. If the time ends, the prompts that were counted until then are
// enough, if there are any.
func count(ctx context.Context, format renderer.Renderer, built environment.Environment,
	env contract.Environment) (Prompts, error) {
	var p Prompts
	sum := int64(0)
	calls := &environment.Calls{}
	for _, split := range env.Splits {
		tasks := min(countedTasks, split.Tasks)
		for i := range tasks {
			task := environment.Task{Split: split.Name, Index: i * split.Tasks / tasks, Seed: 1}
			tokens, err := firstPrompts(ctx, calls, format, built, task)
			if err != nil && p.Tasks > 0 && ctx.Err() != nil {
				break
			}
			if err != nil {
				return p, fmt.Errorf("counting the prompt of task %d of split %s: %w", task.Index, split.Name, err)
			}
			p.Tasks++
			sum += tokens
			p.Longest = max(p.Longest, tokens)
			if most := int64(env.Limits.PromptTokens); most > 0 && tokens > most {
				p.TooLong++
			}
		}
	}
	if p.Tasks > 0 {
		p.Mean = float64(sum) / float64(p.Tasks)
	}
	return p, nil
}

// firstPrompts returns the number of tokens of all prompts with which an episode begins.
func firstPrompts(ctx context.Context, calls *environment.Calls, format renderer.Renderer,
	built environment.Environment, task environment.Task) (tokens int64, err error) {
	episode, err := environment.Call(ctx, calls, "starting an episode",
		func(ctx context.Context) (environment.Episode, error) { return built.Start(ctx, task) })
	if err != nil {
		return 0, err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		episode.Close(ending)
	}()
	prompts, err := environment.Call(ctx, calls, "asking for prompts", episode.Prompts)
	if err != nil {
		return 0, err
	}
	for _, prompt := range prompts {
		conversation := renderer.Conversation{Messages: prompt.Messages}
		if len(prompt.Tools) > 0 {
			conversation.Tools = prompt.Tools
		}
		ids, err := format.Prompt(conversation)
		if err != nil {
			return 0, err
		}
		tokens += int64(len(ids))
	}
	return tokens, nil
}
