// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import "encoding/json"

// completions decodes a request to completions.
func (d *decoder) completions(request *Request, top object) {
	request.Prompts = d.prompts(top.get("prompt"))
	request.Stop = d.stops(top.get("stop"))
	request.MaxTokens = d.integer(top, "max_tokens", 0)
	request.Echo = d.boolean(top, "echo")
	request.Logprobs = d.integer(top, "logprobs", 0)
	d.alternatives(request, top, "logprobs")
	d.choices(request, top, len(request.Prompts))
	d.stream(request, top)
}

// prompts decodes one or several prompts. Each prompt is a string or an array of token ids.
func (d *decoder) prompts(n node) []Prompt {
	if n.isNull() {
		d.fail(n.path, "The field prompt is required.")
		return nil
	}
	if n.raw[0] == '"' {
		return []Prompt{{Text: d.string(n)}}
	}
	var tokens []int32
	if json.Unmarshal(n.raw, &tokens) == nil && len(tokens) > 0 {
		return []Prompt{d.tokens(n)}
	}
	var prompts []Prompt
	for _, item := range d.list(n, d.options.Limits.Choices) {
		if !item.isNull() && item.raw[0] == '"' {
			prompts = append(prompts, Prompt{Text: d.string(item)})
			continue
		}
		prompts = append(prompts, d.tokens(item))
	}
	if len(prompts) == 0 {
		d.fail(n.path, "The array is empty. Send at least one prompt.")
	}
	return prompts
}

// tokens decodes a prompt of token ids.
func (d *decoder) tokens(n node) Prompt {
	var tokens []*int32
	if d.err == nil && json.Unmarshal(n.raw, &tokens) != nil {
		d.fail(n.path, "Expected a string or an array of token ids, but got %s.", kind(n))
	}
	ids := make([]int32, len(tokens))
	for i, id := range tokens {
		if id == nil || *id < 0 {
			d.fail(n.path.item(i), "Expected a token id.")
			return Prompt{}
		}
		ids[i] = *id
	}
	if len(ids) == 0 {
		d.fail(n.path, "The prompt is empty.")
	}
	return Prompt{Tokens: ids}
}
