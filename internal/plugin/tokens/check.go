// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/chatjson"
	rendererload "github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/renderer/templated"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// ownTemplate is the value of --template for the template of the model's repository.
const ownTemplate = "own"

// byTemplate returns the renderer of a template: from a file, or the model's own.
func (f *renderFlags) byTemplate(ctx context.Context, env cli.IO, from source) (renderer.Renderer, error) {
	template := contract.Template{Repository: from.repository}
	if f.template != "" && f.template != ownTemplate {
		text, err := os.ReadFile(f.template)
		if err != nil {
			return nil, fmt.Errorf("reading the chat template: %w", err)
		}
		template = contract.Template{Text: string(text)}
	} else if from.repository == "" {
		return nil, cli.Misused("--template is required with a tokenizer from a file: give the file of the chat template")
	}
	model := contract.Model{Template: &template}
	if from.repository != "" {
		model.Tokenizer = &contract.Tokenizer{Repository: from.repository}
	}
	known := from.model
	if f.options.Begin != "" {
		known.Tokenizer.Begin = f.options.Begin
	}
	if f.options.End != "" {
		known.Tokenizer.End = f.options.End
	}
	read, err := rendererload.ReadTemplate(ctx, fetcher(env), model, known)
	if err != nil {
		return nil, err
	}
	date, err := f.dateFor(read.Text)
	if err != nil {
		return nil, err
	}
	return templated.New(templated.Config{Template: read.Text, Tokens: from.tokens, Names: read.Names, Date: date})
}

// dateFor returns the date that a template writes into prompts. It is never the date of the clock, which would differ
// from the date of a run.
func (f *renderFlags) dateFor(template string) (time.Time, error) {
	if f.options.Date == "" {
		if strings.Contains(template, "strftime_now") {
			return time.Time{}, cli.Misused("--date is required: the chat template writes the date. A run has model.date")
		}
		return time.Time{}, nil
	}
	date, err := time.Parse(time.DateOnly, f.options.Date)
	if err != nil {
		return time.Time{}, cli.Misused("--date %q is not YEAR-MONTH-DAY", f.options.Date)
	}
	return date, nil
}

// checker compares the prompts of a renderer with the prompts of a template or of another program.
type checker struct {
	tokens tokenizer.Tokenizer
	ours   renderer.Renderer
	// template is nil if each line has its expectation.
	template renderer.Renderer
}

// same is the output for a conversation whose prompts are equal.
type same struct {
	Same   bool `json:"same"`
	Tokens int  `json:"tokens"`
}

// line compares the prompts of a conversation. The first difference is an error.
func (c checker) line(line []byte) ([]byte, error) {
	conversation, expected, err := cutExpected(line)
	if err != nil {
		return nil, err
	}
	read, err := chatjson.Read(conversation)
	if err != nil {
		return nil, err
	}
	ids, err := c.ours.Prompt(read)
	if err != nil {
		return nil, err
	}
	switch {
	case expected.text != nil:
		err = c.compareText(ids, *expected.text)
	case expected.ids != nil:
		err = c.compare(ids, expected.ids, "the line expects")
	case c.template == nil:
		return nil, errors.New("nothing to compare with: the line has no expected, and the renderer is the template")
	default:
		var theirs []int32
		if theirs, err = c.template.Prompt(read); err != nil {
			return nil, fmt.Errorf("the template refuses what the renderer renders: %w", err)
		}
		err = c.compare(ids, theirs, "the template writes")
	}
	if err != nil {
		return nil, err
	}
	return marshal(same{Same: true, Tokens: len(ids)})
}

// expectation is another program's result for a conversation: a text, or ids.
type expectation struct {
	text *string
	ids  []int32
}

// cutExpected splits a line into the conversation and the expectation.
func cutExpected(line []byte) (conversation []byte, expected expectation, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return nil, expected, err
	}
	value, ok := fields["expected"]
	if !ok {
		return line, expected, nil
	}
	delete(fields, "expected")
	var text string
	switch {
	case json.Unmarshal(value, &text) == nil:
		expected.text = &text
	case json.Unmarshal(value, &expected.ids) != nil:
		return nil, expected, errors.New("field expected: it is to be the text of a prompt, or a list of ids")
	}
	conversation, err = json.Marshal(fields)
	return conversation, expected, err
}

func (c checker) compareText(ids []int32, want string) error {
	got, err := c.tokens.Decode(ids)
	if err != nil || got == want {
		return err
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	return fmt.Errorf("the prompts differ after %q: the renderer writes %q, and the line expects %q",
		last(got[:at]), first(got[at:]), first(want[at:]))
}

func (c checker) compare(got, want []int32, theirs string) error {
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	if at == len(got) && at == len(want) {
		return nil
	}
	texts := make([]string, 3)
	for i, ids := range [][]int32{got[:at], got[at:], want[at:]} {
		var err error
		if texts[i], err = c.tokens.Decode(ids); err != nil {
			return fmt.Errorf("decoding the prompt: %w", err)
		}
	}
	return fmt.Errorf("the prompts differ at token %d, after %q: the renderer writes %q (%s), and %s %q (%s)", at,
		last(texts[0]), first(texts[1]), list(got[at:]), theirs, first(texts[2]), list(want[at:]))
}

// shownText and shownIDs are the numbers of characters and of ids that a difference shows.
const shownText, shownIDs = 40, 8

func first(text string) string {
	runes := []rune(text)
	if len(runes) <= shownText {
		return text
	}
	return string(runes[:shownText]) + "..."
}

func last(text string) string {
	runes := []rune(text)
	if len(runes) <= shownText {
		return text
	}
	return "..." + string(runes[len(runes)-shownText:])
}

func list(ids []int32) string {
	if len(ids) == 0 {
		return "the end"
	}
	text := strings.Trim(fmt.Sprint(ids[:min(len(ids), shownIDs)]), "[]")
	if len(ids) > shownIDs {
		text += " ..."
	}
	return text
}
