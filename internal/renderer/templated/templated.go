// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package templated renders conversations by the chat template of a model, for models whose format package families
// does not have. This package learns the rules of a format from the template's output for a few made-up conversations:
// the token that ends a reply, where reasoning goes, whether tools are declared, and the dialect of calls.
//
// Only characters that the template wrote become special tokens. Text of messages and tools is text.
package templated

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/chattemplate"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// MaxTemplate is the maximum length of a template in bytes. The longest known template has 30,000 bytes.
const MaxTemplate = 256 << 10

// Config configures a renderer.
type Config struct {
	Template string
	Tokens   tokenizer.Tokenizer
	// Names are the tokenizer's tokens that templates call by their purpose, such as bos_token and eos_token.
	Names map[string]string
	// Date is the day that strftime_now formats.
	Date time.Time
}

// Renderer renders by a template. It implements renderer.Renderer.
type Renderer struct {
	config   Config
	template *chattemplate.Template
	profile  format.Profile
	traits   Traits
	// calls reads calls of tools. It is nil if the dialect of the template's calls is not known.
	calls *families.CallReader
	// marks means that the mark of the next message, which depends on its role, ends a reply.
	marks bool
	// foreign are stops that do not end a reply in history: the model's end of text.
	foreign []int32
}

var _ renderer.Renderer = (*Renderer)(nil)

// Traits are the learnt rules of a template.
type Traits struct {
	// Ends are the names of the tokens that end a reply. The first one ends an answer.
	Ends []string
	// ReasoningField is the field of a message from which the template takes reasoning; "" for the text of the message.
	ReasoningField string
	// Reasoning are the tags around reasoning; "" if the template has none.
	Reasoning [2]string
	// DeclaresTools means that the template writes the tools of a conversation.
	DeclaresTools bool
	// Calls is the name of the dialect of calls; "" if it is not known.
	Calls string
}

// New returns the renderer of a template. An error names the unusable part of the template or of the tokenizer.
func New(config Config) (*Renderer, error) {
	if err := Check(config.Template); err != nil {
		return nil, err
	}
	template, err := chattemplate.Parse(config.Template)
	if err != nil {
		return nil, err
	}
	r := &Renderer{config: config, template: template}
	if err := r.learn(); err != nil {
		return nil, err
	}
	vocabulary, err := format.NewVocabulary(config.Tokens, tokenizer.Literal, r.traits.Ends...)
	if err != nil {
		return nil, err
	}
	r.profile = format.Profile{Vocabulary: vocabulary, End: r.traits.Ends[0], History: format.Kept}
	for _, name := range r.traits.Ends {
		r.profile.Stop.Tokens = append(r.profile.Stop.Tokens, vocabulary.ID(name))
	}
	// A model may end its text where the template ends a turn.
	if id, ok := config.Tokens.Special(config.Names[endOfText]); ok && !slices.Contains(r.profile.Stop.Tokens, id) {
		r.profile.Stop.Tokens, r.foreign = append(r.profile.Stop.Tokens, id), []int32{id}
	}
	return r, nil
}

// Check reports the part of a template that is unusable with any tokenizer.
func Check(template string) error {
	switch {
	case template == "":
		return errors.New("the chat template is empty")
	case len(template) > MaxTemplate:
		return fmt.Errorf("the chat template has %d bytes, %d are the limit", len(template), MaxTemplate)
	case !utf8.ValidString(template):
		return errors.New("the chat template is not UTF-8")
	}
	_, err := chattemplate.Parse(template)
	return err
}

// Traits returns the learnt rules of the template.
func (r *Renderer) Traits() Traits { return r.traits }

// Stop implements renderer.Renderer.
func (r *Renderer) Stop() renderer.Stop { return r.profile.Stop }
