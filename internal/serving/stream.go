// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
)

// stream is an answer that is written while it is sampled.
type stream struct {
	exchange *exchange

	mu sync.Mutex
	// began says that the header was sent, and ended that nothing more is written.
	began, ended bool
	reply        *dialect.Reply
	// choices are the choices of all prompts so far, and done says which of them are complete.
	choices []dialect.Choice
	done    []bool
	// written are the events that were written.
	written []byte
}

// stream answers with events. The choices are sampled at the same time. Their events are sent one choice after the
// other: the events of the first choice are sent while it is sampled.
func (x *exchange) stream(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &stream{exchange: x, reply: x.newReply()}
	count := len(x.asks) * x.request.N
	s.choices, s.done = make([]dialect.Choice, count), make([]bool, count)
	for i, ask := range x.asks {
		s.reply.Usage.Prompt += len(ask.Prompt)
		for j := i * x.request.N; ask.Raw && x.request.Echo && j < (i+1)*x.request.N; j++ {
			prompt, _ := x.model.Format.Tokens.Decode(ask.Prompt) // It was decoded before.
			s.choices[j].Prompt, s.choices[j].Sent = prompt, []string{prompt}
		}
	}
	go s.keepAlive(ctx)
	errs := make([]error, count)
	var together sync.WaitGroup
	for i := range count {
		together.Go(func() {
			ask := x.asks[i/x.request.N]
			ask.Seed = seedOf(ask.Seed, i%x.request.N, 0)
			if errs[i] = s.sample(ctx, i, ask); errs[i] != nil {
				cancel() // The other choices are of no use.
			}
		})
	}
	together.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if err := firstOf(errs); err != nil {
		s.fail(errorOf(err))
		return
	}
	x.remember(&dialect.Reply{ID: s.reply.ID, Choices: s.choices})
}

// firstOf returns the first error that is not a consequence of another one.
func firstOf(errs []error) error {
	var first error
	for _, err := range errs {
		if err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	return first
}

// sample samples a choice, and writes its pieces as they come.
func (s *stream) sample(ctx context.Context, i int, ask Ask) error {
	if ask.MaxTokens == 0 && s.exchange.request.MaxTokens != nil {
		return s.finish(ctx, i, ask, Answer{})
	}
	grow := func(piece chat.Part) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		choice := &s.choices[i]
		choice.Message.Parts = append(choice.Message.Parts, piece)
		choice.Text += piece.Text
		choice.Sent = append(choice.Sent, piece.Text)
		return s.write(false)
	}
	if s.exchange.model.Pieces.First == 0 {
		grow = nil
	}
	one, err := s.exchange.model.Reply(ctx, ask, grow)
	if err != nil {
		return err
	}
	return s.finish(ctx, i, ask, one)
}

// finish writes the end of a choice.
func (s *stream) finish(ctx context.Context, i int, ask Ask, one Answer) error {
	choice, err := s.exchange.choiceOf(ctx, ask, one)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	choice.Sent = s.choices[i].Sent
	s.choices[i], s.done[i] = choice, true
	s.reply.Usage.Completion += len(one.Tokens)
	s.reply.Usage.Reasoning += s.exchange.model.reasoningOf(one)
	whole := true
	for _, done := range s.done {
		whole = whole && done
	}
	return s.write(whole)
}

// write writes the new events: the events of the choices that are complete, and of the first choice that is not. The
// lock is held.
func (s *stream) write(whole bool) error {
	if s.ended {
		return context.Canceled
	}
	open := 0
	for open < len(s.done)-1 && s.done[open] {
		open++
	}
	s.reply.Choices, s.reply.Open = s.choices[:open+1], !whole
	if s.done[open] && !whole {
		return nil // The end of the last choice comes with the end of the reply.
	}
	events, err := dialect.EncodeStream(s.exchange.request, s.reply)
	if err != nil {
		return err
	}
	more, ok := bytes.CutPrefix(events, s.written)
	if !ok {
		return errors.New("encoding a stream: its events do not begin with those that were sent")
	}
	s.written = events
	return s.send(more)
}

// send sends events. The lock is held.
func (s *stream) send(events []byte) error {
	if !s.began {
		s.began = true
		s.exchange.w.Header().Set("Content-Type", "text/event-stream")
		s.exchange.w.Header().Set("Cache-Control", "no-cache")
		s.exchange.w.WriteHeader(http.StatusOK)
	}
	if _, err := s.exchange.w.Write(events); err != nil {
		return err
	}
	return http.NewResponseController(s.exchange.w).Flush()
}

// fail ends the stream with an error. The lock is held.
func (s *stream) fail(failure *dialect.Error) {
	if !s.began {
		fail(s.exchange.w, s.exchange.endpoint.Dialect(), failure)
		return
	}
	_ = s.send(dialect.StreamError(s.exchange.endpoint, failure, "req_"+s.reply.ID)) // The client may be gone.
}

// keepAlive sends events without content, until ctx ends.
func (s *stream) keepAlive(ctx context.Context) {
	pulse := time.NewTicker(s.exchange.server.config.KeepAlive)
	defer pulse.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pulse.C:
		}
		s.mu.Lock()
		if !s.ended {
			_ = s.send(dialect.KeepAlive(s.exchange.endpoint.Dialect())) // A client that is gone ends ctx.
		}
		s.mu.Unlock()
	}
}
