// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package openaijudge is a judge at an endpoint that speaks OpenAI's chat completions.
package openaijudge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/rubric"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Config is the configuration of a Judge.
type Config struct {
	// BaseURL is the base URL of the API, such as https://api.openai.com/v1.
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
	// newLimit means that the model accepts its limit of tokens only as max_completion_tokens, and noSeed that it
	// accepts no seed.
	newLimit, noSeed atomic.Bool
}

// maxReply bounds a reply, in bytes.
const maxReply = 16 << 20

// New returns a judge. It reads no environment variables, unlike the client of the package that it uses.
func New(config Config) *Judge {
	options := []option.RequestOption{option.WithBaseURL(config.BaseURL), option.WithMaxRetries(0),
		option.WithMiddleware(boundReply)}
	if config.HTTP != nil {
		options = append(options, option.WithHTTPClient(config.HTTP))
	}
	return &Judge{config: config, service: openai.NewChatCompletionService(options...)}
}

// Complete implements rubric.Judge.
func (j *Judge) Complete(ctx context.Context, request rubric.Request) (string, rubric.Usage, error) {
	completion, err := j.send(ctx, request)
	if err != nil {
		return "", rubric.Usage{}, j.classify(err)
	}
	usage := rubric.Usage{PromptTokens: completion.Usage.PromptTokens, SampledTokens: completion.Usage.CompletionTokens}
	if len(completion.Choices) == 0 {
		return "", usage, &rubric.ReplyError{Err: errors.New("reading the endpoint's reply: it has no choices")}
	}
	choice := completion.Choices[0]
	if choice.FinishReason == "length" {
		err := fmt.Errorf("reading the endpoint's reply: it was cut after %d tokens: raise the judge's sampling.maxTokens",
			usage.SampledTokens)
		return "", usage, &rubric.ReplyError{Err: err}
	}
	return choice.Message.Content, usage, nil
}

// send sends a request, and sends it again without a parameter that the endpoint refuses.
func (j *Judge) send(ctx context.Context, request rubric.Request) (*openai.ChatCompletion, error) {
	for {
		newLimit, noSeed := j.newLimit.Load(), j.noSeed.Load()
		completion, err := j.request(ctx, request, newLimit, noSeed)
		switch {
		case !newLimit && rejectsMaxTokens(err):
			j.newLimit.Store(true)
		case !noSeed && rejectsSeed(err):
			j.noSeed.Store(true)
		default:
			return completion, err
		}
	}
}

// request sends one request. Older servers know only max_tokens, and newer models only max_completion_tokens.
func (j *Judge) request(ctx context.Context, request rubric.Request, newLimit,
	noSeed bool) (*openai.ChatCompletion, error) {
	params := openai.ChatCompletionNewParams{Model: j.config.Model, Temperature: openai.Float(j.config.Temperature)}
	if !noSeed {
		params.Seed = openai.Int(seedOf(request))
	}
	if newLimit {
		params.MaxCompletionTokens = openai.Int(j.config.MaxTokens)
	} else {
		params.MaxTokens = openai.Int(j.config.MaxTokens)
	}
	for _, m := range request.Messages {
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

// rejectsSeed reports whether the endpoint takes no seed. Not every server names the parameter in a field of its own.
func rejectsSeed(err error) bool {
	var answer *openai.Error
	return errors.As(err, &answer) && (answer.StatusCode == http.StatusBadRequest ||
		answer.StatusCode == http.StatusUnprocessableEntity) &&
		(answer.Param == "seed" || strings.Contains(answer.Message, "seed"))
}

// seedOf returns the seed of a request. It has 31 bits, which every server accepts. A repeated request has the same
// seed.
func seedOf(request rubric.Request) int64 {
	hash := fnv.New64a()
	for _, n := range []uint64{request.Seed, uint64(request.Call), uint64(request.Try)} {
		_ = binary.Write(hash, binary.BigEndian, n) // a hash accepts everything
	}
	return int64(hash.Sum64() >> 33)
}

// boundReply makes reading fail for a reply that is too long.
func boundReply(request *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	response, err := next(request)
	if err == nil {
		response.Body = &boundedBody{ReadCloser: response.Body, left: maxReply}
	}
	return response, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errors.New("reading the endpoint's reply: it has more than 16 MiB")
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// classify returns an error as the type that decides how it is handled. The text has the endpoint's message, but
// neither the key nor the prompt.
func (j *Judge) classify(err error) error {
	var answer *openai.Error
	if _, ok := errors.AsType[*rubric.UnavailableError](err); ok {
		return err
	}
	if !errors.As(err, &answer) {
		return fmt.Errorf("calling the judge %s at %s: %w: start or repair that endpoint, or correct the judge's baseURL",
			j.config.Model, j.config.BaseURL, err)
	}
	reported := fmt.Errorf("the judge %s at %s answered %d: %.200s", j.config.Model, j.config.BaseURL, answer.StatusCode,
		answer.Message)
	switch status := answer.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return &rubric.UnavailableError{Err: fmt.Errorf("%w: correct the API key in the judge's apiKeySecretKeyRef",
			reported)}
	case status == http.StatusPaymentRequired:
		return &rubric.UnavailableError{Err: fmt.Errorf("%w: check the billing of the judge's account", reported)}
	case status == http.StatusNotFound:
		return &rubric.UnavailableError{Err: fmt.Errorf("%w: correct the judge's baseURL or model", reported)}
	case status == http.StatusTooManyRequests:
		return &rubric.RetryError{After: retryAfter(answer.Response),
			Err: fmt.Errorf("%w: wait, or raise the rate limit of the judge's account", reported)}
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status >= 500:
		err := fmt.Errorf("%w: repair that endpoint, or correct the judge's baseURL", reported)
		return &rubric.RetryError{After: retryAfter(answer.Response), Err: err}
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
