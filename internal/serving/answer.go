// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// idPrefixes are the beginnings of the IDs of replies.
var idPrefixes = map[dialect.Endpoint]string{
	dialect.ChatCompletions: "chatcmpl-", dialect.Completions: "cmpl-", dialect.Responses: "resp_",
	dialect.Messages: "msg_",
}

// exchange is one request of a client.
type exchange struct {
	server   *Server
	w        http.ResponseWriter
	endpoint dialect.Endpoint
	request  *dialect.Request
	previous *response
	model    Model
	// asks are the questions for the model, one for each prompt.
	asks []Ask
}

// answer answers a request with a body. It stops when the client goes away.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, endpoint dialect.Endpoint) {
	x := &exchange{server: s, w: w, endpoint: endpoint}
	select {
	case s.open <- struct{}{}:
		defer func() { <-s.open }()
	default:
		fail(w, endpoint.Dialect(), &dialect.Error{Kind: dialect.RateLimit, RetryAfter: 1,
			Message: "The server has too many open requests."})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.config.AnswerWithin)
	defer cancel()
	failure := x.read(ctx, r)
	if failure != nil {
		fail(w, endpoint.Dialect(), failure)
		return
	}
	w.Header().Set("X-Checkpoint-Step", strconv.FormatInt(x.model.Weights.Step, 10))
	switch {
	case endpoint == dialect.CountTokens:
		write(w, dialect.EncodeCount(len(x.asks[0].Prompt)))
	case x.request.Stream:
		x.stream(ctx)
	default:
		x.whole(ctx)
	}
}

// read reads, decodes and prepares the request.
func (x *exchange) read(ctx context.Context, r *http.Request) *dialect.Error {
	body, err := io.ReadAll(http.MaxBytesReader(x.w, r.Body, int64(x.server.config.Limits.Bytes)))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &dialect.Error{Kind: dialect.TooLarge, Message: "The body has more than " +
			strconv.Itoa(x.server.config.Limits.Bytes) + " bytes."}
	case err != nil:
		return &dialect.Error{Kind: dialect.InvalidRequest, Message: "The body did not come: " + err.Error() + "."}
	}
	x.request, err = dialect.Decode(x.endpoint, body, dialect.Options{Unsupported: x.server.config.Unsupported,
		Limits: x.server.config.Limits, CallerSamples: true, Verify: func(string, string) bool { return true }})
	if err != nil {
		return errorOf(err)
	}
	for _, field := range x.request.Ignored {
		x.server.tell(field.Name)
	}
	var failure *dialect.Error
	if x.previous, failure = x.server.responseOf(x.request.PreviousID); failure != nil {
		return failure
	}
	if x.model, err = x.server.config.Catalog.Model(ctx, x.request.Model); err != nil {
		return errorOf(err)
	}
	if x.endpoint == dialect.Completions {
		return x.askTexts()
	}
	return x.askMessages()
}

// ask returns an Ask with the settings that all prompts of the request have in common.
func (x *exchange) ask() Ask {
	wants, defaults := x.request.Sampling, x.server.config.Defaults
	ask := Ask{MaxTokens: defaults.MaxTokens, Stop: x.request.Stop, Temperature: defaults.Temperature,
		TopP: defaults.TopP, TopK: defaults.TopK, Seed: wants.Seed}
	if x.request.MaxTokens != nil {
		ask.MaxTokens = *x.request.MaxTokens
	}
	if wants.Temperature != nil {
		ask.Temperature = *wants.Temperature
	}
	if wants.TopP != nil {
		ask.TopP = *wants.TopP
	}
	if wants.TopK != nil {
		ask.TopK = *wants.TopK
	}
	if ask.TopK == 0 {
		ask.TopK = -1
	}
	return ask
}

func (x *exchange) askMessages() *dialect.Error {
	messages, err := x.request.Conversation(x.previous.conversation())
	if err != nil {
		return errorOf(err)
	}
	ask := x.ask()
	if ask.Prompt, err = x.model.Prompt(messages, x.request.Tools); err != nil {
		return errorOf(err)
	}
	x.asks = []Ask{ask}
	return nil
}

// Prompt renders a conversation.
func (m Model) Prompt(messages []chat.Message, tools []chat.Tool) ([]int32, error) {
	conversation := renderer.Conversation{Messages: messages}
	if len(tools) > 0 {
		conversation.Tools = tools
	}
	ids, err := m.Format.Prompt(conversation)
	if err != nil {
		return nil, &dialect.Error{Kind: dialect.InvalidRequest,
			Message: "The model's format cannot express the conversation: " + err.Error() + "."}
	}
	return ids, nil
}

func (x *exchange) askTexts() *dialect.Error {
	for i, prompt := range x.request.Prompts {
		ask := x.ask()
		ask.Raw, ask.Prompt = true, prompt.Tokens
		if prompt.Tokens == nil {
			ask.Prompt = x.model.Format.Tokens.Encode(prompt.Text)
		}
		if _, err := x.model.Format.Tokens.Decode(ask.Prompt); err != nil {
			return &dialect.Error{Kind: dialect.InvalidRequest, Param: "prompt",
				Message: fmt.Sprintf("Prompt %d has a token that the model does not have.", i)}
		}
		if len(ask.Prompt) == 0 {
			return &dialect.Error{Kind: dialect.InvalidRequest, Param: "prompt", Message: "The prompt is empty."}
		}
		x.asks = append(x.asks, ask)
	}
	return nil
}

// whole answers with one body.
func (x *exchange) whole(ctx context.Context) {
	reply := x.newReply()
	for _, ask := range x.asks {
		answers := make([]Answer, x.request.N)
		var err error
		if ask.MaxTokens > 0 || x.request.MaxTokens == nil {
			answers, err = x.model.Replies(ctx, ask, x.request.N)
		}
		reply.Usage.Prompt += len(ask.Prompt)
		for _, one := range answers {
			var choice dialect.Choice
			if err == nil {
				choice, err = x.choiceOf(ctx, ask, one)
			}
			reply.Choices = append(reply.Choices, choice)
			reply.Usage.Completion += len(one.Tokens)
			reply.Usage.Reasoning += x.model.reasoningOf(one)
		}
		if err != nil {
			fail(x.w, x.endpoint.Dialect(), errorOf(err))
			return
		}
		reply.Usage.Cached += answers[0].CachedTokens
	}
	body, err := dialect.Encode(x.request, reply)
	if err != nil {
		fail(x.w, x.endpoint.Dialect(), errorOf(err))
		return
	}
	x.remember(reply)
	write(x.w, body)
}

// newReply returns a reply without choices.
func (x *exchange) newReply() *dialect.Reply {
	return &dialect.Reply{ID: idPrefixes[x.endpoint] + hex.EncodeToString(randomBytes()[:12]),
		Created: x.server.config.Now(), Model: x.request.Model, Sign: x.server.sign}
}

// remember keeps a response that a later request may continue. Instructions are no part of it.
func (x *exchange) remember(reply *dialect.Reply) {
	if x.endpoint == dialect.Responses {
		own := append(x.request.Messages[:len(x.request.Messages):len(x.request.Messages)], reply.Choices[0].Message)
		x.server.keep(reply.ID, &response{previous: x.previous, messages: own})
	}
}

// choiceOf returns an answer as a choice, which all dialects can encode, with the log-probabilities that the request
// wants.
func (x *exchange) choiceOf(ctx context.Context, ask Ask, one Answer) (dialect.Choice, error) {
	choice := dialect.Choice{Message: one.Message, Stop: one.Stop, StopText: one.StopText}
	if ask.Raw {
		choice.Text = one.Message.Content
		if x.request.Echo {
			choice.Prompt, _ = x.model.Format.Tokens.Decode(ask.Prompt) // It was decoded before.
		}
	}
	if x.request.Logprobs == nil {
		return choice, nil
	}
	tokens, err := x.model.Score(ctx, ask.Prompt, one, *x.request.Logprobs, x.request.Echo)
	if err != nil {
		return choice, err
	}
	choice.PromptTokens, choice.Tokens = tokens[:len(ask.Prompt)], tokens[len(ask.Prompt):]
	return choice, nil
}

// errorOf returns an error in the form in which clients get it.
func errorOf(err error) *dialect.Error {
	var own *dialect.Error
	var unknown *UnknownModelError
	switch category := client.CategoryFrom(err); {
	case errors.As(err, &own):
		return own
	case errors.As(err, &unknown):
		return &dialect.Error{Kind: dialect.NotFound, Param: "model", Message: unknown.Message}
	case errors.Is(err, context.DeadlineExceeded), category == tinker.CategoryThrottled,
		category == tinker.CategoryUnreachable:
		return &dialect.Error{Kind: dialect.Overloaded, RetryAfter: 5, Message: "The endpoint does not answer."}
	case category == tinker.CategoryUser, category == tinker.CategoryTooLarge:
		return &dialect.Error{Kind: dialect.InvalidRequest, Message: "The endpoint refuses the request: " + err.Error() + "."}
	case category == tinker.CategoryNotFound:
		return &dialect.Error{Kind: dialect.NotFound, Param: "model", Message: "The endpoint does not have the weights. " +
			"They were deleted, or have expired."}
	case category == tinker.CategoryUnauthorized:
		return &dialect.Error{Kind: dialect.Internal, Message: "The endpoint refuses the API key of this server."}
	case category == tinker.CategoryPayment:
		return &dialect.Error{Kind: dialect.Quota, Message: "The account at the endpoint has no credit."}
	}
	return &dialect.Error{Kind: dialect.Internal, Message: err.Error()}
}
