// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/rubric"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
	"github.com/tinker-operator/tinker-operator/internal/stoptext"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// frozen is a model that agents ask beside the policy. It samples as a judge does.
type frozen struct {
	judge *judge
	name  string
}

var _ environment.FrozenModel = frozen{}

// Frozen returns a model that agents ask beside the policy; it is made for registry.Builder.Frozen.
func (j *Judges) Frozen(definition settings.FrozenModel) environment.FrozenModel {
	return frozen{&judge{judges: j, definition: definition.Judge()}, definition.Name}
}

// Complete implements environment.FrozenModel. While the endpoint cannot sample from the model, it waits for the
// repair.
func (f frozen) Complete(ctx context.Context, asked environment.Completion,
	seed uint64) (environment.Completed, error) {
	format, prompt, err := f.prompt(ctx, asked)
	if err != nil {
		return environment.Completed{}, err
	}
	limited := &judge{judges: f.judge.judges, definition: f.judge.definition, renderer: format}
	if asked.MaxTokens > 0 {
		limited.definition.Sampling.MaxTokens = int32(min(asked.MaxTokens, int(f.judge.definition.Sampling.MaxTokens)))
	}
	var sample tinker.SampledSequence
	err = f.awaits(ctx, func() (err error) {
		sample, err = limited.sample(ctx, rubric.Request{Seed: seed}, prompt, format.Stop())
		return err
	})
	var refused *episode.RefusedError
	switch {
	case errors.As(err, &refused):
		return environment.Completed{}, &environment.RequestError{Message: fmt.Sprintf("The endpoint refuses the request to "+
			"the frozen model %s: %v.", f.name, refused.Err)}
	case err != nil:
		return environment.Completed{}, err
	}
	out, err := f.read(format, asked, sample)
	out.PromptTokens = len(prompt)
	return out, err
}

// CountTokens implements environment.FrozenModel.
func (f frozen) CountTokens(ctx context.Context, asked environment.Completion) (int, error) {
	_, prompt, err := f.prompt(ctx, asked)
	return len(prompt), err
}

// prompt renders a request in the format of the model.
func (f frozen) prompt(ctx context.Context, asked environment.Completion) (renderer.Renderer, []int32, error) {
	var format renderer.Renderer
	err := f.awaits(ctx, func() (err error) {
		if format, err = f.judge.format(ctx); err != nil && ctx.Err() == nil {
			err = &rubric.UnavailableError{Err: fmt.Errorf("preparing the frozen model %s: %w", f.name, err)}
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	texts := renderer.TextsOf(format)
	switch {
	case asked.Raw && asked.Tokens != nil:
		return format, asked.Tokens, nil
	case asked.Raw && texts == nil:
		return nil, nil, &environment.RequestError{Message: "The model's format has no text without messages. Send messages."}
	case asked.Raw:
		return format, texts.Encode(asked.Text), nil
	}
	conversation := renderer.Conversation{Messages: asked.Messages}
	if len(asked.Tools) > 0 {
		conversation.Tools = asked.Tools
	}
	prompt, err := format.Prompt(conversation)
	if err != nil {
		return nil, nil, &environment.RequestError{Message: fmt.Sprintf("The format of the frozen model %s cannot express "+
			"the conversation: %v.", f.name, err)}
	}
	return format, prompt, nil
}

// awaits calls ask until the model can be asked. Meanwhile it reports why the model cannot be asked.
func (f frozen) awaits(ctx context.Context, ask func() error) error {
	for waits := 0; ; waits++ {
		err := ask()
		var unavailable *rubric.UnavailableError
		if !errors.As(err, &unavailable) {
			if waits > 0 && err == nil {
				f.judge.judges.Report(nil)
			}
			return err
		}
		f.judge.judges.Report(fmt.Errorf("interaction.agent.frozen[%s]: %w", f.name, unavailable.Err))
		if err := wait.Sleep(ctx, samplePauses.After(waits+1)); err != nil {
			return err
		}
	}
}

// read reads a reply, and cuts it before the first stop text of the request.
func (f frozen) read(format renderer.Renderer, asked environment.Completion,
	sample tinker.SampledSequence) (environment.Completed, error) {
	parsed, err := format.Parse(sample.Tokens)
	if err != nil {
		return environment.Completed{}, &environment.RequestError{Message: fmt.Sprintf("The reply of the frozen model %s "+
			"cannot be read: %v.", f.name, err)}
	}
	out := environment.Completed{Message: parsed.Message, Tokens: sample.Tokens, Logprobs: sample.Logprobs,
		Truncated:       sample.StopReason != tinker.StopReasonStop,
		ReasoningTokens: renderer.ReasoningTokens(format, sample.Tokens)}
	out.Message.Role, out.Message.Sampled = chat.RoleAssistant, nil
	texts := renderer.TextsOf(format)
	if asked.Raw {
		out.PromptText = asked.Text
		if texts != nil {
			said := sample.Tokens
			if last := len(said) - 1; last >= 0 && slices.Contains(format.Stop().Tokens, said[last]) {
				said = said[:last]
			}
			out.Text, _ = texts.Decode(said) // The format has read the tokens.
			out.Message = chat.Message{Role: chat.RoleAssistant, Content: out.Text}
		}
	}
	if stop, _ := stoptext.First(out.Message.Content, asked.Stop); stop != "" {
		out.Message, out.StopText, out.Truncated = stoptext.Before(out.Message, stop), stop, false
		out.Text = out.Message.Content
	}
	out.Message.Calls = slices.DeleteFunc(slices.Clone(out.Message.Calls), chat.ToolCall.LacksObject)
	if asked.Logprobs && texts != nil {
		for _, id := range sample.Tokens {
			text, _ := texts.Decode([]int32{id})
			out.Texts = append(out.Texts, text)
		}
	}
	return out, nil
}
