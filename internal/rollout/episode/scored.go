// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// scoredPrompt is the conversation of requests that score prompts. Requests of agents for replies have no
// conversation.
const scoredPrompt = "scored prompt"

// sampleOnce samples a reply, unless an earlier play of this try has sampled it, perhaps in another process of this
// worker. The group counts the tokens that the earlier process has paid for.
func (d *driver) sampleOnce(ctx context.Context, request Request,
	ask func(context.Context, Request) (Sample, error)) (Sample, error) {
	sample, from := d.episode.before.sample(request.Request)
	if from == restored || from == inherited {
		d.episode.player.Progress.count(request, sample)
	}
	if from == inherited && d.episode.player.Progress.Inherited != nil {
		d.episode.player.Progress.Inherited(len(request.Prompt), len(sample.Tokens))
	}
	if from != unknown {
		return sample, nil
	}
	sample, err := ask(ctx, request)
	if err == nil {
		d.episode.before.keep(request.Request, sample)
	}
	return sample, err
}

// scoreOnce returns the log-probabilities of a prompt's tokens but for the first, unless the agent does not want them.
// A prompt that is scored twice is paid for once.
func (d *driver) scoreOnce(ctx context.Context, asked environment.Completion, request Request) ([]float32, error) {
	if !asked.Scored {
		return nil, nil
	}
	if len(request.Prompt) < 2 {
		return nil, nil
	}
	request.Conversation, request.Repeat = scoredPrompt, 0
	request.Content = rl.Content{Prompt: request.Prompt}.Digest()
	sample, err := d.sampleOnce(ctx, request, d.scores)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		return nil, &environment.RequestError{Message: fmt.Sprintf("The endpoint has no log-probabilities of this prompt: "+
			"%v. Remove echo or logprobs.", refused.Err)}
	}
	return sample.Logprobs, err
}

// checkScored returns an error if the agent asks for scores of a prompt and prompts cannot be scored.
func (d *driver) checkScored(asked environment.Completion) error {
	if !asked.Scored || d.episode.player.Prompts != nil && renderer.TextsOf(d.episode.player.Renderer) != nil {
		return nil
	}
	return &environment.RequestError{Message: "The log-probabilities of a prompt are not to be had here. Remove echo or " +
		"logprobs."}
}

// scores asks for the log-probabilities of a prompt. They come with a sample of one token, which is not used.
func (d *driver) scores(ctx context.Context, request Request) (Sample, error) {
	logprobs, err := d.episode.player.Prompts.Logprobs(ctx, request, len(request.Prompt)-1)
	if err != nil {
		return Sample{}, err
	}
	if len(logprobs) != len(request.Prompt)-1 {
		return Sample{}, fmt.Errorf("scoring a prompt: %d log-probabilities for %d tokens", len(logprobs),
			len(request.Prompt))
	}
	sample := Sample{Tokens: make([]int32, 1), Logprobs: logprobs}
	d.episode.player.Progress.count(request, sample)
	return sample, nil
}

// failUnlessRefused ends the episode with an error, unless the error says that the request cannot be answered.
func (d *driver) failUnlessRefused(err error) error {
	if refused := (*environment.RequestError)(nil); errors.As(err, &refused) {
		return err
	}
	return d.fail(err)
}

// close ends an open request. The lock is held.
func (d *driver) close(asked environment.Completion) {
	d.agent.open--
	if asked.Unanswered {
		d.agent.unanswered--
	}
}

// unanswered returns the answer for an agent that wants no reply.
func unanswered(n *node) environment.Completed {
	return environment.Completed{ID: fmt.Sprintf("%016x", n.request.Seed(rl.UsePrompt, 0)), PromptText: n.promptText(),
		PromptTokens: len(n.request.Prompt), Truncated: true}
}

// describePrompt adds the log-probabilities of the prompt.
func (d *driver) describePrompt(asked environment.Completion, n *node, scores []float32,
	out *environment.Completed) {
	if !asked.Scored {
		return
	}
	texts := renderer.TextsOf(d.episode.player.Renderer)
	for _, id := range n.request.Prompt {
		text, err := texts.Decode([]int32{id})
		if err != nil {
			text = fmt.Sprintf("<%d>", id)
		}
		out.PromptTexts = append(out.PromptTexts, text)
	}
	out.PromptLogprobs = scores
}
