// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokens has the commands that show a model's prompts and tokens. They need no cluster.
package tokens

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

const tokensHelp = `kubectl tinker tokens converts text to token ids, and token ids to text.

It reads JSON from the standard input, one object per line, and writes one object for each. Names of special tokens in
text are text, as in a run. With --special, they are tokens. Decoded text contains special tokens as their names.`

const tokensExample = `  echo '{"text": "Hello"}' | kubectl tinker tokens --tokenizer Qwen/Qwen3-8B
  {"ids":[9707]}
  echo '{"ids": [9707]}' | kubectl tinker tokens --tokenizer ./tokenizer.json --decode
  {"text":"Hello"}`

// noArgs refuses arguments of commands that read lines.
var noArgs = cli.NoArgs("input is read line by line from the standard input")

// textLine is a line with text.
type textLine struct {
	Text *string `json:"text"`
}

// NewTokens returns the command that converts text to token ids, and back.
func NewTokens(env cli.IO) *cobra.Command {
	var f tokensFlags
	command := &cobra.Command{
		Use: "tokens", Short: "Convert text to token ids, and back", Long: tokensHelp, Example: tokensExample, Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error { return f.run(command.Context(), env) },
	}
	command.Flags().StringVar(&f.tokenizer, "tokenizer", "", tokenizerUsage)
	command.Flags().BoolVar(&f.decode, "decode", false, "convert ids to text")
	command.Flags().BoolVar(&f.special, "special", false, "read names of special tokens in text as tokens")
	return command
}

type tokensFlags struct {
	tokenizer       string
	decode, special bool
}

func (f tokensFlags) run(ctx context.Context, env cli.IO) error {
	if f.decode && f.special {
		return cli.Misused("--special only applies to encoding: omit it with --decode")
	}
	from, err := load(ctx, env, f.tokenizer)
	if err != nil {
		return err
	}
	if f.decode {
		return eachLine(env, func(line []byte) ([]byte, error) { return decodeLine(from.tokens, line) })
	}
	match := tokenizer.Literal
	if f.special {
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
