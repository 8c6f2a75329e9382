// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package openaijudge is a judge at an endpoint that speaks OpenAI's chat completions.
package openaijudge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/rubric"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Config is what a Judge needs.
type Config struct {
	// BaseURL is that of the API, such as https://api.openai.com/v1.
	BaseURL string
	// Model is spelled as the endpoint spells it.
	Model string
	// Key returns the API key for the next call. It is nil for an endpoint without keys.
	Key         func() (string, error)
	Temperature float64
	MaxTokens   int64
	// HTTP is the client that sends the requests.
	HTTP *http.Client
}

// Judge asks the endpoint. It does not retry.
type Judge struct {
	config  Config
	service openai.ChatCompletionService
	// newLimit means that the model takes its limit of tokens as max_completion_tokens alone.
	newLimit atomic.Bool
}

// New returns a judge. It reads no environment variables, unlike the client of the package that it uses.
func New(config Config) *Judge {
	options := []option.RequestOption{option.WithBaseURL(config.BaseURL), option.WithMaxRetries(0)}
	if config.HTTP != nil {
		options = append(options, option.WithHTTPClient(config.HTTP))
	}
	return &Judge{config: config, service: openai.NewChatCompletionService(options...)}
}

// Complete implements rubric.Judge.
func (j *Judge) Complete(ctx context.Context, request rubric.Request) (string, rubric.Usage, error) {
	newLimit := j.newLimit.Load()
	completion, err := j.request(ctx, request.Messages, newLimit)
	if !newLimit && rejectsMaxTokens(err) {
		j.newLimit.Store(true)
		completion, err = j.request(ctx, request.Messages, true)
	}
	if err != nil {
		return "", rubric.Usage{}, j.classify(err)
	}
	usage := rubric.Usage{PromptTokens: completion.Usage.PromptTokens, SampledTokens: completion.Usage.CompletionTokens}
	if len(completion.Choices) == 0 {
		return "", usage, &rubric.ReplyError{Err: errors.New("reading the endpoint's reply: it has no choices")}
	}
	choice := completion.Choices[0]
	if choice.FinishReason == "length" {
		err := fmt.Errorf("reading the endpoint's reply: it was cut after %d tokens: raise the judge's sampling.maxTokens", usage.SampledTokens)
		return "", usage, &rubric.ReplyError{Err: err}
	}
	return choice.Message.Content, usage, nil
}

// request sends one request. Older servers know max_tokens alone, and newer models max_completion_tokens.
func (j *Judge) request(ctx context.Context, messages []chat.Message, newLimit bool) (*openai.ChatCompletion, error) {
	params := openai.ChatCompletionNewParams{Model: j.config.Model, Temperature: openai.Float(j.config.Temperature)}
	if newLimit {
		params.MaxCompletionTokens = openai.Int(j.config.MaxTokens)
	} else {
		params.MaxTokens = openai.Int(j.config.MaxTokens)
	}
	for _, m := range messages {
		switch m.Role {
		case chat.RoleSystem:
			params.Messages = append(params.Messages, openai.SystemMessage(m.Content))
		case chat.RoleAssistant:
			params.Messages = append(params.Messages, openai.AssistantMessage(m.Content))
		default:
			params.Messages = append(params.Messages, openai.UserMessage(m.Content))
		}
	}
	var options []option.RequestOption
	if j.config.Key != nil {
		key, err := j.config.Key()
		if err != nil {
			return nil, &rubric.UnavailableError{Err: fmt.Errorf("reading the judge's API key: %w", err)}
		}
		options = append(options, option.WithAPIKey(key))
	}
	return j.service.New(ctx, params, options...)
}

// rejectsMaxTokens reports whether the endpoint asks for the other name of the limit.
func rejectsMaxTokens(err error) bool {
	var answer *openai.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusBadRequest && answer.Param == "max_tokens"
}

// classify decides what is to be done about an error. It keeps the endpoint's words, and neither the key nor the prompt.
func (j *Judge) classify(err error) error {
	var answer *openai.Error
	var unavailable *rubric.UnavailableError
	if errors.As(err, &unavailable) {
		return err
	}
	if !errors.As(err, &answer) {
		return fmt.Errorf("calling the judge %s at %s: %w", j.config.Model, j.config.BaseURL, err)
	}
	reported := fmt.Errorf("the judge %s at %s answered %d: %.200s", j.config.Model, j.config.BaseURL, answer.StatusCode, answer.Message)
	switch status := answer.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return &rubric.UnavailableError{Err: fmt.Errorf("%w: correct the API key in the judge's apiKeySecretRef", reported)}
	case status == http.StatusPaymentRequired:
		return &rubric.UnavailableError{Err: fmt.Errorf("%w: check the billing of the judge's account", reported)}
	case status == http.StatusNotFound:
		return &rubric.UnavailableError{Err: fmt.Errorf("%w: correct the judge's baseURL or model", reported)}
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status == http.StatusTooManyRequests || status >= 500:
		return &rubric.RetryError{After: retryAfter(answer.Response), Err: reported}
	default:
		return &environment.Fault{Kind: environment.JudgeFault, Permanent: true, Err: reported}
	}
}

// retryAfter returns the time that the endpoint asks to wait.
func retryAfter(response *http.Response) time.Duration {
	if response == nil {
		return 0
	}
	pause, _ := wait.RetryAfter(response.Header)
	return pause
}

var _ rubric.Judge = (*Judge)(nil)
