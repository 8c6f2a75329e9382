// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
)

// idPrefixes are the beginnings of the IDs of replies.
var idPrefixes = map[dialect.Endpoint]string{
	dialect.ChatCompletions: "chatcmpl-", dialect.Completions: "cmpl-", dialect.Responses: "resp_",
	dialect.Messages: "msg_",
}

// exchange is one request of a client.
type exchange struct {
	episode  *Episode
	w        http.ResponseWriter
	r        *http.Request
	endpoint dialect.Endpoint
	request  *dialect.Request
	previous *response
	// messages are the conversation that the model sees.
	messages []chat.Message
	// began says that a stream has begun.
	began bool
}

// serve answers a request with a body.
func (e *Episode) serve(w http.ResponseWriter, r *http.Request, endpoint dialect.Endpoint) {
	x := &exchange{episode: e, w: w, r: r, endpoint: endpoint}
	body, failure := x.read()
	if failure == nil {
		failure = x.decode(body)
	}
	var asked []environment.Completion
	if failure == nil {
		asked, failure = x.completions()
	}
	switch {
	case failure != nil:
		fail(w, endpoint.Dialect(), failure)
	case endpoint == dialect.CountTokens:
		x.countTokens(asked[0])
	default:
		x.answer(digestOf(endpoint, body), asked)
	}
}

func (e *Episode) serveModel(w http.ResponseWriter, words dialect.Dialect, name string) {
	if _, failure := e.named(name); failure != nil {
		fail(w, words, failure)
		return
	}
	write(w, dialect.EncodeModel(words, dialect.Model{Name: quotePath(name), Created: e.server.config.Now()}))
}

// read reads the body.
func (x *exchange) read() ([]byte, *dialect.Error) {
	config := x.episode.server.config
	// Deadlines fail in tests, which have no connection.
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(config.BodyWithin))
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, int64(config.Limits.Bytes)))
	if err == nil { // After an error, the deadline stays, so that nothing waits for the rest of the body.
		_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{})
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &dialect.Error{Kind: dialect.TooLarge, Message: "The body has more than " +
			strconv.Itoa(config.Limits.Bytes) + " bytes."}
	case err != nil:
		return nil, &dialect.Error{Kind: dialect.InvalidRequest, Message: "The body did not come: " + err.Error() + "."}
	}
	return body, nil
}

// decode decodes the request.
func (x *exchange) decode(body []byte) *dialect.Error {
	request, err := dialect.Decode(x.endpoint, body, dialect.Options{
		Unsupported: x.episode.options.Unsupported, Limits: x.episode.server.config.Limits, Verify: x.episode.server.verify,
		NoAlternatives: true,
	})
	if err == nil {
		x.request = request
		var failure *dialect.Error
		if x.previous, failure = x.episode.responseOf(request.PreviousID); failure != nil {
			return failure
		}
		x.messages, err = request.Conversation(x.previous.conversation())
	}
	var failure *dialect.Error
	if err != nil && !errors.As(err, &failure) {
		return &dialect.Error{Kind: dialect.Internal, Message: err.Error()}
	}
	return failure
}

// completions returns the completions to ask the policy for.
func (x *exchange) completions() ([]environment.Completion, *dialect.Error) {
	request := x.request
	one, failure := x.episode.named(request.Model)
	if failure != nil {
		return nil, failure
	}
	one.Messages, one.Tools, one.Stop = x.messages, request.Tools, request.Stop
	one.Logprobs = request.Logprobs != nil
	if request.MaxTokens != nil {
		one.MaxTokens, one.Unanswered = *request.MaxTokens, *request.MaxTokens == 0
	}
	if x.endpoint != dialect.Completions {
		return repeat(one, request.N), nil
	}
	var all []environment.Completion
	for _, prompt := range request.Prompts {
		one.Raw, one.Text, one.Tokens = true, prompt.Text, prompt.Tokens
		choices := repeat(one, request.N)
		choices[0].Scored = request.Echo && request.Logprobs != nil // One choice is enough: all choices have the same prompt.
		all = append(all, choices...)
	}
	return all, nil
}

func repeat(one environment.Completion, n int) []environment.Completion {
	all := make([]environment.Completion, n)
	for i := range all {
		all[i] = one
	}
	return all
}

func (x *exchange) countTokens(asked environment.Completion) {
	tokens, err := x.episode.policy.CountTokens(asked)
	if err != nil {
		fail(x.w, x.endpoint.Dialect(), x.episode.errorOf(err))
		return
	}
	write(x.w, dialect.EncodeCount(tokens))
}

// answer answers the request once the reply is there. If the client has gone, or is asked to come back, the call goes
// on without it.
func (x *exchange) answer(key digest, asked []environment.Completion) {
	c, isNew := x.episode.take(key, asked)
	switch {
	case c == nil && isNew:
		fail(x.w, x.endpoint.Dialect(), &dialect.Error{Kind: dialect.RateLimit, RetryAfter: x.episode.retryAfter(),
			Message: "The episode has too many open requests."})
		return
	case c == nil:
		fail(x.w, x.endpoint.Dialect(), &dialect.Error{Kind: dialect.Quota, Message: "The episode has ended."})
		return
	case isNew:
		x.episode.count(x.request)
	}
	delivered, refused := false, false
	defer func() { x.episode.leave(c, delivered, refused) }() // also if writing panics
	if refused = !x.await(c); refused {
		fail(x.w, x.endpoint.Dialect(), &dialect.Error{Kind: dialect.Overloaded, RetryAfter: x.episode.retryAfter(),
			Message: "The model does not answer yet. Ask again."})
		return
	}
	// The call counts as answered before the reply is written: a client that has read the reply may end at once.
	if x.r.Context().Err() == nil {
		x.episode.write(c)
		delivered = x.deliver(c)
	}
}

func (e *Episode) retryAfter() int { return max(1, int(e.server.config.RetryAfter.Seconds())) }

// await waits for the reply or for the end of the client. It returns false if the client is to be asked to come back.
func (x *exchange) await(c *call) bool {
	limit := time.NewTimer(x.answerWithin())
	defer limit.Stop()
	pulse := time.NewTicker(x.episode.server.config.KeepAlive)
	defer pulse.Stop()
	for {
		select {
		case <-c.done:
			return true
		case <-x.r.Context().Done():
			return true
		case <-limit.C:
			if !x.request.Stream {
				return false
			}
		case <-pulse.C:
			if x.request.Stream {
				x.begin()
				x.w.Write(dialect.KeepAlive(x.endpoint.Dialect()))
				_ = x.flush() // If the connection has ended, the request's context ends.
			}
		}
	}
}

// answerWithin returns how long the client is left waiting: less than the timeout that it reports.
func (x *exchange) answerWithin() time.Duration {
	within := x.episode.server.config.AnswerWithin
	for _, name := range []string{"X-Stainless-Timeout", "X-Stainless-Read-Timeout"} {
		seconds, err := strconv.ParseFloat(x.r.Header.Get(name), 64)
		if err == nil && seconds > 0 && seconds*0.9 < within.Seconds() {
			within = time.Duration(seconds * 0.9 * float64(time.Second))
		}
	}
	return within
}

// begin sends the header of a stream.
func (x *exchange) begin() {
	if x.began {
		return
	}
	x.began = true
	x.w.Header().Set("Content-Type", "text/event-stream")
	x.w.Header().Set("Cache-Control", "no-cache")
	x.w.WriteHeader(http.StatusOK)
}

// flush sends the written bytes. An error reports that the connection has ended.
func (x *exchange) flush() error { return http.NewResponseController(x.w).Flush() }

// deliver writes the reply or the error, and reports whether the client can have received it.
func (x *exchange) deliver(c *call) bool {
	if c.err != nil {
		x.deliverError(x.episode.errorOf(c.err))
		return true
	}
	reply := x.replyOf(c.out)
	encode := dialect.Encode
	if x.request.Stream {
		encode = dialect.EncodeStream
	}
	body, err := encode(x.request, reply)
	if err != nil {
		x.episode.server.config.Logger.Error("a reply cannot be encoded", "err", err)
		x.deliverError(&dialect.Error{Kind: dialect.Internal, Message: "The reply cannot be encoded."})
		return true
	}
	if x.endpoint == dialect.Responses {
		x.keepResponse(reply)
	}
	if x.request.Stream {
		x.begin()
	} else {
		x.w.Header().Set("Content-Type", "application/json")
		x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	_, err = x.w.Write(body)
	return err == nil && x.flush() == nil
}

func (x *exchange) deliverError(failure *dialect.Error) {
	if x.began {
		x.w.Write(dialect.StreamError(x.endpoint, failure, "req_"+x.episode.id))
		return
	}
	fail(x.w, x.endpoint.Dialect(), failure)
}

// keepResponse keeps a response that a later request may continue. Instructions are not part of it.
func (x *exchange) keepResponse(reply *dialect.Reply) {
	own := append(x.request.Messages[:len(x.request.Messages):len(x.request.Messages)], reply.Choices[0].Message)
	x.episode.keep(reply.ID, x.previous, own)
}

// replyOf returns the reply in the words of all dialects.
func (x *exchange) replyOf(out []environment.Completed) *dialect.Reply {
	reply := &dialect.Reply{ID: idPrefixes[x.endpoint] + out[0].ID, Created: x.episode.server.config.Now(),
		Model: x.request.Model, Sign: x.episode.server.sign}
	for i, each := range out {
		choice := dialect.Choice{Message: each.Message, Stop: stopOf(each), StopText: each.StopText,
			Text: each.Text, Prompt: each.PromptText}
		for at, text := range each.Texts {
			choice.Tokens = append(choice.Tokens, tokenOf(text, each.Logprobs[at:]))
		}
		first := i - i%max(1, x.request.N)
		choice.PromptTokens = scoredOf(out[first : first+max(1, x.request.N)])
		reply.Choices = append(reply.Choices, choice)
		reply.Usage.Completion += len(each.Tokens)
		reply.Usage.Reasoning += each.ReasoningTokens
	}
	prompts := len(out) / max(1, x.request.N)
	for i := range prompts {
		first := out[i*x.request.N]
		reply.Usage.Prompt += first.PromptTokens
		reply.Usage.Cached += first.KnownTokens
	}
	return reply
}

// scoredOf returns the tokens of the prompt, which one of the choices of a prompt has if the request asks for them.
func scoredOf(choices []environment.Completed) []dialect.Token {
	var tokens []dialect.Token
	for _, each := range choices {
		for i, text := range each.PromptTexts {
			var logprobs []float32
			if i > 0 {
				logprobs = each.PromptLogprobs[i-1:]
			}
			tokens = append(tokens, tokenOf(text, logprobs))
		}
	}
	return tokens
}

// tokenOf returns a token with the first of the log-probabilities, if there are any.
func tokenOf(text string, logprobs []float32) dialect.Token {
	token := dialect.Token{Text: text}
	if len(logprobs) > 0 {
		token.Logprob = new(float64(logprobs[0]))
	}
	return token
}

func stopOf(out environment.Completed) dialect.StopReason {
	switch {
	case out.StopText != "":
		return dialect.StopSequence
	case out.Truncated:
		return dialect.StopLength
	case len(out.Message.Calls) > 0:
		return dialect.StopCalls
	default:
		return dialect.StopEnd
	}
}
