// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"slices"
	"sort"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// ReasoningTokens counts the tokens of the reasoning of a reply, including the texts that open and close it. The
// renderer finds the reasoning in the reply; a reply without a stop has none. The tokens of a block begin where the
// text before it is complete, and end with the first token that completes the block.
func ReasoningTokens(r Renderer, sampled []int32) int {
	body, stop := splitStop(r, sampled)
	parts := partsOf(r, sampled, nil)
	// at is the end of the last block, and text the length of the text after it.
	count, blocks, at, text := 0, 0, 0, 0
	for _, part := range parts {
		if !part.Thinking {
			text = len(part.Text)
			continue
		}
		begin := at
		if text > 0 {
			begin += sort.Search(len(body)-at, func(n int) bool {
				return textBehind(partsOf(r, body[:at+n], stop), blocks) >= text
			})
		}
		blocks++
		at = begin + sort.Search(len(body)-begin, func(n int) bool {
			return hasReasoning(partsOf(r, body[:begin+n], stop), blocks, part.Text)
		})
		count += at - begin
		text = 0
	}
	return count
}

// splitStop returns a reply without its stop, and its stop. If the reply has no stop, stop is the first stop of the
// renderer.
func splitStop(r Renderer, sampled []int32) (body, stop []int32) {
	stops := r.Stop().Tokens
	if last := len(sampled) - 1; last >= 0 && slices.Contains(stops, sampled[last]) {
		return sampled[:last], sampled[last:]
	}
	return sampled, stops[:min(1, len(stops))]
}

// partsOf returns the parts of a reply; nil if the reply cannot be read.
func partsOf(r Renderer, body, stop []int32) []chat.Part {
	parsed, err := r.Parse(slices.Concat(body, stop))
	if err != nil {
		return nil
	}
	return parsed.Message.AllParts()
}

// textBehind returns the length of the text between the given number of blocks of reasoning and the next block.
func textBehind(parts []chat.Part, blocks int) int {
	size := 0
	for _, part := range parts {
		switch {
		case part.Thinking:
			blocks--
		case blocks == 0:
			size += len(part.Text)
		}
	}
	return size
}

// hasReasoning reports whether there are at least the given number of blocks of reasoning, and the last of these
// begins with the text.
func hasReasoning(parts []chat.Part, blocks int, text string) bool {
	for _, part := range parts {
		if part.Thinking {
			if blocks--; blocks == 0 {
				return strings.HasPrefix(part.Text, text)
			}
		}
	}
	return false
}
