// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package supervised

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// Datum is an example as the loss cross_entropy takes it: shifted by one, so that Targets[i] is the token that follows
// Tokens[i] and Weights[i] is the weight of that target. All slices have the same length.
type Datum struct {
	Tokens, Targets []int32
	Weights         []float32
}

// Builder makes datums from rows. It is safe for concurrent use.
type Builder struct {
	Renderer renderer.Renderer
	// Tokenizer encodes rows of text, and Begin and End are the ids that stand around such a text. The model learns to
	// write End, not Begin. Either may be nil.
	Tokenizer  tokenizer.Tokenizer
	Begin, End []int32

	TrainOn       TrainOn
	Normalization Normalization
	// MaxTokens is the length to which examples are cut from the right, or 0 for no limit.
	MaxTokens int
	// Context is the number of tokens that the model can be trained on at once, or 0 if it is not known. A longer example
	// is not cut to it, since only MaxTokens says that a cut is wanted.
	Context int
	// Episodes says which records of episodes are rows.
	Episodes Episodes
}

// Datum makes a datum from a row's JSON object. An error is an *Unusable.
func (b *Builder) Datum(data []byte) (Datum, error) {
	row, err := ReadRow(data)
	if err == nil {
		err = b.Episodes.check(row)
	}
	if err != nil {
		return Datum{}, err
	}
	ids, weights, err := b.Weigh(row)
	if err != nil {
		return Datum{}, err
	}
	return b.datum(row, ids, weights)
}

// Weigh returns the ids of a row and the weight of each, before they are cut and shifted. An error is an *Unusable.
func (b *Builder) Weigh(row Row) (ids []int32, weights []float32, err error) {
	if row.Marks != nil && b.TrainOn != Marked {
		return nil, nil, unusable(NotRendered, "the row gives weights to its messages, which supervised.trainOn %s "+
			"ignores: remove them, or set supervised.trainOn to %s", b.TrainOn, Marked)
	}
	if row.Text != "" {
		ids, weights = b.text(row.Text)
		return ids, weights, nil
	}
	example, err := b.Renderer.Example(row.Conversation, hasParts(row.Marks))
	if errors.Is(err, renderer.ErrUnsupported) {
		err = fmt.Errorf("%w: change the row, or set model.renderer to a format that has it", err)
	}
	if err != nil {
		return nil, nil, unusable(NotRendered, "messages: %w", err)
	}
	if example.Contradicts && b.TrainOn == LastAssistant {
		return nil, nil, unusable(NotRendered, "the last reply reasons, and the prompts of this renderer tell the model "+
			"not to: remove the reasoning from the row, or take the renderer that thinks")
	}
	weights = make([]float32, len(example.IDs))
	b.weigh(weights, row, example)
	return example.IDs, weights, nil
}

// text encodes a text. All of its tokens have weight, whatever TrainOn is: no message is the assistant's.
func (b *Builder) text(text string) (ids []int32, weights []float32) {
	ids = append(append(append(ids, b.Begin...), b.Tokenizer.Encode(text)...), b.End...)
	weights = make([]float32, len(ids))
	fill(weights[len(b.Begin):], 1)
	return ids, weights
}

// weigh sets the weights of a conversation's ids.
func (b *Builder) weigh(weights []float32, row Row, example renderer.Example) {
	last := len(row.Conversation.Messages) - 1
	for _, w := range example.Written {
		isAssistant := w.Message >= 0 && row.Conversation.Messages[w.Message].Role == chat.RoleAssistant
		switch b.TrainOn {
		case LastAssistant:
			if isAssistant && w.Message == last {
				fill(weights[max(w.Output.Begin, example.Given):max(w.Output.End, example.Given)], 1)
			}
		case AllAssistant:
			if isAssistant {
				fill(weights[w.Output.Begin:w.Output.End], 1)
			}
		case All:
			fill(weights[w.Output.Begin:w.Output.End], 1)
		case Marked:
			if w.Message >= 0 && row.Marks != nil {
				row.Marks[w.Message].apply(weights, w, row.Conversation.Messages[w.Message])
			}
		}
	}
}

func fill(weights []float32, weight float32) {
	for i := range weights {
		weights[i] = weight
	}
}

// datum cuts, shifts and normalizes the example of a row.
func (b *Builder) datum(row Row, ids []int32, weights []float32) (Datum, error) {
	whole := weights
	if b.MaxTokens > 0 && len(ids) > b.MaxTokens {
		ids, weights = ids[:b.MaxTokens], weights[:b.MaxTokens]
	}
	switch {
	case len(ids) < 2:
		return Datum{}, unusable(Empty, "it has %d tokens, and an example has at least 2: lengthen or remove the row",
			len(ids))
	case b.Context > 0 && len(ids) > b.Context:
		return Datum{}, unusable(TooLong, "it has %d tokens, and the model's context has %d: set supervised.maxTokens to at "+
			"most %d, which cuts rows, or shorten the row", len(ids), b.Context, b.Context)
	}
	d := Datum{Tokens: ids[:len(ids)-1], Targets: ids[1:], Weights: weights[1:]}
	total := 0.0
	for _, w := range d.Weights {
		total += float64(w)
	}
	if total <= 0 {
		return Datum{}, &Unusable{NoWeight, b.weightless(row, whole)}
	}
	if b.Normalization == PerExample {
		for i := range d.Weights {
			d.Weights[i] /= float32(total)
		}
	}
	return d, nil
}

// weightless returns the reason why no remaining token of a row has weight. weights are the weights of the whole row.
func (b *Builder) weightless(row Row, weights []float32) error {
	messages := row.Conversation.Messages
	isReply := func(m chat.Message) bool { return m.Role == chat.RoleAssistant }
	switch last := len(messages) - 1; {
	case slices.ContainsFunc(weights[1:], func(w float32) bool { return w > 0 }):
		return fmt.Errorf("all that has weight is beyond the first %d of %d tokens: raise supervised.maxTokens, or shorten "+
			"what comes before", b.MaxTokens, len(weights))
	case b.TrainOn == Marked && row.Marks == nil:
		return fmt.Errorf("messages: no message has a weight: give some weight or trainable, or set supervised.trainOn to %s",
			AllAssistant)
	case b.TrainOn == Marked:
		return errors.New("messages: all weights of messages are 0: raise one, or remove the row")
	case b.TrainOn != All && !slices.ContainsFunc(messages, isReply):
		return fmt.Errorf("messages: none is the assistant's: add a reply, or set supervised.trainOn to %s", All)
	case b.TrainOn == LastAssistant && !isReply(messages[last]):
		return fmt.Errorf("messages[%d] is the last one, and its role is %s: end with the assistant's reply, or set "+
			"supervised.trainOn to %s", last, messages[last].Role, AllAssistant)
	default:
		return errors.New("no token has weight: give the reply a text, or remove the row")
	}
}
