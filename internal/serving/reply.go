// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/stoptext"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// Model answers with weights, in a format.
type Model struct {
	Format  *load.Renderer
	Sampler Source
	Weights Weights
	// Pieces are the sizes of the pieces in which replies are sampled if they stream or have stop texts.
	Pieces Pieces
}

// Source samples from weights. *Sampler implements it.
type Source interface {
	Sample(ctx context.Context, from Weights, request tinker.SampleRequest) (tinker.SampleResult, error)
}

// Pieces has sizes of pieces in tokens. The first piece has First tokens; each later one is twice as long as the piece
// before, up to Most. A First of 0 samples whole replies.
type Pieces struct{ First, Most int }

// Ask is a request to a model for one reply.
type Ask struct {
	Prompt []int32
	// Raw says that the reply is text that continues a text, rather than a message.
	Raw bool
	// MaxTokens bounds the reply; 0 leaves that to the endpoint.
	MaxTokens int
	Stop      []string
	// Temperature, TopP and TopK are as in the Tinker API.
	Temperature, TopP float64
	TopK              int
	// Seed makes equal requests get equal replies, as far as the endpoint is deterministic. If it is nil, the endpoint
	// decides.
	Seed *int64
}

// Answer is a reply, or the beginning of one.
type Answer struct {
	// Message is the reply with its reasoning. With Ask.Raw, its content is the text.
	Message  chat.Message
	Stop     dialect.StopReason
	StopText string
	Tokens   []int32
	Logprobs []float32
	// CachedTokens are the tokens of the prompt that the endpoint had in its cache.
	CachedTokens int
}

// reasoningOf counts the tokens of the reasoning of a reply. If the reply was cut within its reasoning, that is all
// of its tokens.
func (m Model) reasoningOf(one Answer) int {
	if !one.Message.IsStructured() {
		return 0
	}
	tokens, stops := one.Tokens, m.Format.Stop().Tokens
	if last := len(tokens) - 1; len(stops) > 0 && last >= 0 && !slices.Contains(stops, tokens[last]) {
		tokens = append(slices.Clone(tokens), stops[0]) // It is read as if it ended here.
	}
	count := renderer.ReasoningTokens(m.Format, tokens)
	if count == 0 && one.Message.Content == "" && len(one.Message.Calls) == 0 {
		return len(one.Tokens)
	}
	return count
}

// drawing is a reply that is being sampled.
type drawing struct {
	Model
	ask    Ask
	reader *reader
	Answer
	ended bool
	shown []chat.Part
}

// Reply samples a reply. If grow is not nil, the reply is sampled in pieces, and grow is called with each piece of
// the reply that will not change any more. An error of grow ends the reply.
func (m Model) Reply(ctx context.Context, ask Ask, grow func(chat.Part) error) (Answer, error) {
	read, err := newReader(m.Format, ask.Prompt, ask.Raw)
	if err != nil {
		return Answer{}, err
	}
	d := &drawing{Model: m, ask: ask, reader: read}
	size := 0
	if grow != nil || len(ask.Stop) > 0 {
		size = m.Pieces.First
	}
	for number := 0; !d.ended; number++ {
		if err := d.draw(ctx, number, size); err != nil {
			return Answer{}, err
		}
		if size = min(2*size, m.Pieces.Most); d.ended || grow == nil {
			continue
		}
		if err := d.show(grow); err != nil {
			return Answer{}, err
		}
	}
	if err := d.finish(); err != nil || grow == nil {
		return d.Answer, err
	}
	return d.Answer, d.showAll(grow)
}

// Replies samples the given number of replies to one prompt. It samples whole replies with one request, unless stop
// texts may end them early.
func (m Model) Replies(ctx context.Context, ask Ask, count int) ([]Answer, error) {
	if len(ask.Stop) > 0 && m.Pieces.First > 0 || count == 1 {
		all := make([]Answer, count)
		for i := range all {
			one := ask
			one.Seed = seedOf(ask.Seed, i, 0)
			var err error
			if all[i], err = m.Reply(ctx, one, nil); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	read, err := newReader(m.Format, ask.Prompt, ask.Raw)
	if err != nil {
		return nil, err
	}
	first := &drawing{Model: m, ask: ask, reader: read}
	result, err := m.Sampler.Sample(ctx, m.Weights, first.request(0, ask.MaxTokens, count))
	if err != nil {
		return nil, err
	}
	var all []Answer
	for _, sequence := range result.Sequences {
		one := &drawing{Model: m, ask: ask, reader: read}
		if err := one.add(sequence, ask.MaxTokens); err != nil {
			return nil, err
		}
		one.CachedTokens = result.PromptCacheHitTokens
		if err := one.finish(); err != nil {
			return nil, err
		}
		all = append(all, one.Answer)
	}
	return all, nil
}

// seedOf returns the seed of a piece of a choice.
func seedOf(seed *int64, choice, piece int) *int64 {
	if seed == nil || choice == 0 && piece == 0 {
		return seed
	}
	sum := fnv.New64a()
	_ = binary.Write(sum, binary.LittleEndian, []int64{*seed, int64(choice), int64(piece)}) // It writes to memory.
	derived := int64(sum.Sum64() >> 33)
	return &derived
}

// request returns the request for the given number of further tokens. A size of 0 asks for as many as the endpoint
// permits.
func (d *drawing) request(number, size, count int) tinker.SampleRequest {
	params := tinker.SamplingParams{Temperature: d.ask.Temperature, TopP: d.ask.TopP, TopK: d.ask.TopK,
		Stop: tinker.Stop(d.Format.Stop()), Seed: seedOf(d.ask.Seed, 0, number)}
	if size > 0 {
		params.MaxTokens = &size
	}
	return tinker.SampleRequest{NumSamples: count, SamplingParams: params,
		Prompt: tinker.Text(slices.Concat(d.ask.Prompt, d.Tokens))}
}

// draw samples the next piece. A size of 0 samples the rest of the reply.
func (d *drawing) draw(ctx context.Context, number, size int) error {
	if left := d.ask.MaxTokens - len(d.Tokens); d.ask.MaxTokens > 0 && (size == 0 || left < size) {
		size = left
	}
	result, err := d.Sampler.Sample(ctx, d.Weights, d.request(number, size, 1))
	if number > 0 && client.CategoryFrom(err) == tinker.CategoryUser {
		d.ended, d.Stop = true, dialect.StopContext // The prompt was accepted, and is too long with the reply.
		return nil
	}
	if err != nil {
		return err
	}
	if number == 0 {
		d.CachedTokens = result.PromptCacheHitTokens
	}
	return d.add(result.Sequences[0], size)
}

// add adds a piece of at most size tokens, and ends the reply if the piece ends it.
func (d *drawing) add(piece tinker.SampledSequence, size int) error {
	d.Tokens = append(d.Tokens, piece.Tokens...)
	d.Logprobs = append(d.Logprobs, piece.Logprobs...)
	end, stop, err := stoptext.Cut(d.Tokens, d.ask.Stop, d.reader.says)
	switch {
	case err != nil:
		return fmt.Errorf("reading a reply: %w", err)
	case stop != "":
		d.Tokens, d.Logprobs = d.Tokens[:end], d.Logprobs[:min(end, len(d.Logprobs))]
		d.ended, d.Stop, d.StopText = true, dialect.StopSequence, stop
	case piece.StopReason == tinker.StopReasonStop:
		d.ended, d.Stop = true, dialect.StopEnd
	case d.ask.MaxTokens > 0 && len(d.Tokens) >= d.ask.MaxTokens:
		d.ended, d.Stop = true, dialect.StopLength
	case len(piece.Tokens) < size || size == 0:
		d.ended, d.Stop = true, dialect.StopContext
	}
	return nil
}

// finish reads the whole reply.
func (d *drawing) finish() error {
	m, err := d.reader.message(d.Tokens, d.Stop == dialect.StopEnd)
	if err != nil {
		return fmt.Errorf("reading a reply: %w", err)
	}
	if d.StopText != "" {
		m = stoptext.Before(m, d.StopText)
	}
	m.Calls = slices.Clone(m.Calls)
	if d.Stop != dialect.StopEnd || slices.ContainsFunc(m.Calls, chat.ToolCall.LacksObject) {
		m.Calls = nil // A call may be cut, and no dialect can express a call without an object.
	}
	for i, call := range m.Calls {
		if call.ID == "" {
			m.Calls[i].ID = fmt.Sprintf("call_%016x_%d", digestOf(d.ask.Prompt, d.Tokens), i)
		}
	}
	if len(m.Calls) > 0 {
		d.Stop = dialect.StopCalls
	}
	d.Message = dialect.Normal(m)
	return nil
}

// digestOf returns a hash of a prompt and a reply to it.
func digestOf(prompt, tokens []int32) uint64 {
	sum := fnv.New64a()
	_ = binary.Write(sum, binary.LittleEndian, slices.Concat(prompt, []int32{-1}, tokens)) // It writes to memory.
	return sum.Sum64()
}

// show passes on the new parts of the reply that will not change.
func (d *drawing) show(grow func(chat.Part) error) error {
	m, err := d.reader.message(d.Tokens, false)
	if err != nil {
		return fmt.Errorf("reading a reply: %w", err)
	}
	parts := settledParts(dialect.Normal(m), d.ask.Raw, d.ask.Stop)
	pieces, ok := growth(d.shown, parts)
	if !ok {
		return nil // The whole reply will show how this is read.
	}
	d.shown = parts
	return each(pieces, grow)
}

// showAll passes on the rest of a whole reply.
func (d *drawing) showAll(grow func(chat.Part) error) error {
	parts, err := conform(d.shown, slices.DeleteFunc(slices.Clone(d.Message.AllParts()),
		func(p chat.Part) bool { return p.Text == "" }))
	if err != nil {
		return err
	}
	pieces, _ := growth(d.shown, parts)
	if len(d.shown) > 0 {
		d.Message = dialect.Normal(d.Message.WithParts(parts))
	}
	return each(pieces, grow)
}

func each(pieces []chat.Part, grow func(chat.Part) error) error {
	for _, piece := range pieces {
		if err := grow(piece); err != nil {
			return err
		}
	}
	return nil
}
