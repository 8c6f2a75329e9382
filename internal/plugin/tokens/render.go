// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/chatjson"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

const renderHelp = `kubectl tinker render converts conversations to the prompts that a model gets, and replies to messages.

It reads JSON from the standard input, one object per line, and writes one object for each: the ids of the
prompt, what stops the reply, the text of the ids, and the text of each token. A token that is only a part of
a character is shown as U+FFFD.

A message may have parts ({"type": "thinking"} and {"type": "text"}), tool_calls, and for a tool's result
tool_call_id and name. Beside messages, a line may have tools and prefill. With --parse, a line is a reply.

With --template, the prompt is that of a chat template. With --check, the command compares the renderer's prompts with
those of the model's own template, or of --template, and ends at the first difference. A line that has the field
expected, the text or the ids of the prompt that another program made, is compared with that instead.`

const renderExample = `  echo '{"messages": [{"role": "user", "content": "2+2?"}]}' | kubectl tinker render --tokenizer Qwen/Qwen3-8B
  {"ids":[151644,872,...],"stop":{"tokens":[151645]},"text":"<|im_start|>user\n...","tokens":["<|im_start|>","user","\n",...]}
  echo '{"ids": [19, 151645]}' | kubectl tinker render --tokenizer Qwen/Qwen3-8B --parse
  {"message":{"role":"assistant","content":"4"},"ending":"stopped"}
  kubectl tinker render --check --tokenizer Qwen/Qwen3-8B < conversations.jsonl
  {"same":true,"tokens":312}`

// rendered is the output for a conversation.
type rendered struct {
	IDs    []int32  `json:"ids"`
	Stop   stop     `json:"stop"`
	Text   string   `json:"text"`
	Tokens []string `json:"tokens"`
}

type stop struct {
	Strings []string `json:"strings,omitempty"`
	Tokens  []int32  `json:"tokens,omitempty"`
}

// renderFlags are the flags of the command.
type renderFlags struct {
	renderer, tokenizer string
	options             families.Options
	// template is the file of a chat template, or ownTemplate.
	template     string
	parse, check bool
}

// NewRender returns the command that converts conversations to prompts, and replies to messages.
func NewRender(env cli.IO) *cobra.Command {
	var f renderFlags
	command := &cobra.Command{
		Use: "render", Short: "Convert conversations to prompts, and replies to messages", Long: renderHelp,
		Example: renderExample, Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error { return f.run(command.Context(), env) },
	}
	flags := command.Flags()
	flags.StringVar(&f.renderer, "renderer", "",
		"`NAME` of the renderer; if --tokenizer names a model, that model's is the default. The renderers are "+
			strings.Join(families.Names(), ", "))
	flags.StringVar(&f.tokenizer, "tokenizer", "", tokenizerUsage)
	flags.StringVar(&f.template, "template", "",
		"`FILE` of a chat template to render by, or own for the template of the model's repository, which is the default "+
			"for a model that is not known")
	flags.BoolVar(&f.check, "check", false,
		"compare the prompts with those of the chat template, or with the field expected")
	flags.BoolVar(&f.parse, "parse", false, "read the ids of replies and write messages")
	flags.StringVar(&f.options.Date, "date", "", "`YEAR-MONTH-DAY` that gpt_oss, or a chat template, writes into prompts")
	flags.StringVar(&f.options.Begin, "begin", "",
		"`TOKEN` that begins texts, for role_colon with a file; a model has its own")
	flags.StringVar(&f.options.End, "end", "", "`TOKEN` that ends texts, for role_colon with a file; a model has its own")
	return command
}

func (f renderFlags) run(ctx context.Context, env cli.IO) error {
	from, err := load(ctx, env, f.tokenizer)
	if err != nil {
		return err
	}
	r, template, err := f.build(ctx, env, from)
	if err != nil {
		return err
	}
	if f.check {
		return eachLine(env, checker{tokens: from.tokens, ours: r, template: template}.line)
	}
	if f.parse {
		return eachLine(env, func(line []byte) ([]byte, error) { return parseLine(r, line) })
	}
	return eachLine(env, func(line []byte) ([]byte, error) { return renderLine(r, from.tokens, line) })
}

// build returns the renderer of prompts. With --check, template is the renderer to compare with; it is nil if the
// renderer is the template itself.
func (f *renderFlags) build(ctx context.Context, env cli.IO, from source) (r, template renderer.Renderer, err error) {
	if f.check && f.parse {
		return nil, nil, cli.Misused("--check compares prompts, and --parse reads replies: give one of them")
	}
	unknown := len(from.model.Renderers) == 0 && from.repository != ""
	if f.renderer == "" && (unknown || f.template != "" && !f.check) {
		r, err = f.byTemplate(ctx, env, from)
		return r, nil, err
	}
	if f.template != "" && !f.check {
		return nil, nil, cli.Misused("--renderer and --template exclude each other, unless --check compares them")
	}
	if r, err = f.ofFamily(from); err != nil || !f.check || from.repository == "" && f.template == "" {
		return r, nil, err // Without a template, each line has its expectation.
	}
	template, err = f.byTemplate(ctx, env, from)
	return r, template, err
}

func (f *renderFlags) ofFamily(from source) (renderer.Renderer, error) {
	if len(from.model.Renderers) > 0 {
		f.renderer = cmp.Or(f.renderer, from.model.Renderer())
		f.options.Begin = cmp.Or(f.options.Begin, from.model.Tokenizer.Begin)
		f.options.End = cmp.Or(f.options.End, from.model.Tokenizer.End)
	}
	if f.renderer == "" {
		return nil, cli.Misused("--renderer is required with a tokenizer from a file; the renderers are %s",
			strings.Join(families.Names(), ", "))
	}
	r, err := families.New(f.renderer, from.tokens, f.options)
	if err != nil {
		return nil, cli.Misused("%w (see --renderer, --date, --begin and --end)", err)
	}
	return r, nil
}

func renderLine(r renderer.Renderer, tokens tokenizer.Tokenizer, line []byte) ([]byte, error) {
	conversation, err := chatjson.Read(line)
	if err != nil {
		return nil, err
	}
	ids, err := r.Prompt(conversation)
	if err != nil {
		return nil, err
	}
	out := rendered{IDs: ids, Stop: stop(r.Stop()), Tokens: make([]string, len(ids))}
	if out.Text, err = tokens.Decode(ids); err != nil {
		return nil, fmt.Errorf("decoding the prompt: %w", err)
	}
	for i := range ids {
		if out.Tokens[i], err = tokens.Decode(ids[i : i+1]); err != nil {
			return nil, fmt.Errorf("decoding the prompt: %w", err)
		}
	}
	return marshal(out)
}

func parseLine(r renderer.Renderer, line []byte) ([]byte, error) {
	ids, err := readIDs(line)
	if err != nil {
		return nil, err
	}
	parsed, err := r.Parse(ids)
	if err != nil {
		return nil, fmt.Errorf("field ids: %w", err)
	}
	return chatjson.Write(parsed)
}
