// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

const tokensUsage = `kubectl tinker tokens converts text to token ids, and token ids to text.

It reads JSON from the standard input, one object per line, and writes one object for each:

  echo '{"text": "Hello"}' | kubectl tinker tokens --tokenizer Qwen/Qwen3-8B
  {"ids":[9707]}
  echo '{"ids": [9707]}' | kubectl tinker tokens --tokenizer ./tokenizer.json --decode
  {"text":"Hello"}

Names of special tokens in text are text, as in a run. With --special, they are tokens. Decoded text contains
special tokens as their names.

Flags:
`

// textLine is a line with text.
type textLine struct {
	Text *string `json:"text"`
}

func runTokens(ctx context.Context, env environ) error {
	flags := newFlags(env, "tokens", tokensUsage)
	name := flags.String("tokenizer", "", tokenizerUsage)
	decode := flags.Bool("decode", false, "convert ids to text")
	special := flags.Bool("special", false, "read names of special tokens in text as tokens")
	if err := parse(flags, env); err != nil {
		return err
	}
	if *decode && *special {
		return misused("--special only applies to encoding: omit it with --decode")
	}
	from, err := load(ctx, env, *name)
	if err != nil {
		return err
	}
	if *decode {
		return eachLine(env, func(line []byte) ([]byte, error) { return decodeLine(from.tokens, line) })
	}
	match := tokenizer.Literal
	if *special {
		match = tokenizer.Specials
	}
	return eachLine(env, func(line []byte) ([]byte, error) { return encodeLine(from.tokens, match, line) })
}

func encodeLine(tokens tokenizer.Tokenizer, match tokenizer.Match, line []byte) ([]byte, error) {
	var in textLine
	if err := readFields(line, &in); err != nil {
		return nil, fmt.Errorf(`reading {"text": "..."}: %w`, err)
	}
	if in.Text == nil {
		return nil, errors.New(`field text is missing: give {"text": "..."}; for ids, take --decode`)
	}
	ids := tokens.AppendEncode([]int32{}, *in.Text, match)
	return marshal(idsLine{IDs: &ids})
}

func decodeLine(tokens tokenizer.Tokenizer, line []byte) ([]byte, error) {
	ids, err := readIDs(line)
	if err != nil {
		return nil, err
	}
	text, err := tokens.Decode(ids)
	if err != nil {
		return nil, fmt.Errorf("field ids: %w", err)
	}
	return marshal(textLine{Text: &text})
}
