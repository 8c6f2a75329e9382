// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer/split"
)

// rankFamily has the settings that a rank file does not contain.
type rankFamily struct {
	split    string
	portions func(string) []string
	// first and count describe the ids of the special tokens, which follow the ranks.
	first, count int32
	// reserved is the format of the name of a special token that is not in names, given its id.
	reserved string
	names    map[int32]string
}

var rankFamilies = map[string]rankFamily{
	"kimi_k2": {
		split: "kimi_k2", portions: kimiPortions, first: 163584, count: 256, reserved: "<|reserved_token_%d|>",
		// These are the names of K2.5 and K2.6. They include the names of K2 and K2-Thinking.
		names: map[int32]string{
			163584: "[BOS]", 163585: "[EOS]", 163586: "<|im_end|>", 163587: "<|im_user|>", 163588: "<|im_assistant|>",
			163590: "<|start_header_id|>", 163591: "<|end_header_id|>", 163593: "[EOT]", 163594: "<|im_system|>",
			163595: "<|tool_calls_section_begin|>", 163596: "<|tool_calls_section_end|>", 163597: "<|tool_call_begin|>",
			163598: "<|tool_call_argument_begin|>", 163599: "<|tool_call_end|>", 163601: "<|im_middle|>",
			163602: "<|media_begin|>", 163603: "<|media_content|>", 163604: "<|media_end|>", 163605: "<|media_pad|>",
			163606: "<think>", 163607: "</think>", 163838: "[UNK]", 163839: "[PAD]",
		},
	},
	"o200k_base": {
		split: "o200k", first: 199998, count: 21, reserved: "<|reserved_%d|>",
		// These are the names of the harmony format.
		names: map[int32]string{
			199998: "<|startoftext|>", 199999: "<|endoftext|>", 200002: "<|return|>", 200003: "<|constrain|>",
			200005: "<|channel|>",
			200006: "<|start|>", 200007: "<|end|>", 200008: "<|message|>", 200012: "<|call|>", 200018: "<|endofprompt|>",
		},
	},
}

// ParseTiktoken reads a rank file. Each line has a token in base64 and its rank, which is also its id. The family,
// kimi_k2 or o200k_base, determines the pattern and the special tokens. If a tokenizer_config.json is given, its
// added_tokens_decoder names the special tokens. All of them are special, as in tiktoken.
func ParseTiktoken(family string, ranks, tokenizerConfig []byte) (*BPE, error) {
	f, ok := rankFamilies[family]
	if !ok {
		return nil, fmt.Errorf("no rank file is known for %q, only for %s", family,
			strings.Join(slices.Sorted(maps.Keys(rankFamilies)), ", "))
	}
	names, err := f.named(tokenizerConfig)
	if err != nil {
		return nil, fmt.Errorf("reading tokenizer_config.json: %w", err)
	}
	scan, _, err := split.ByName(f.split)
	if err != nil {
		return nil, err
	}
	b := newBuilder(&BPE{scan: scan, portions: f.portions, wholeWins: true})
	if err := b.readRanks(ranks, f.first); err != nil {
		return nil, fmt.Errorf("reading the ranks of %s: %w", family, err)
	}
	tokens := make([]addedToken, f.count)
	for i := range tokens {
		id := f.first + int32(i)
		name, ok := names[id]
		if !ok {
			name = fmt.Sprintf(f.reserved, id)
		}
		tokens[i] = addedToken{ID: id, Content: name, Special: true}
	}
	if err := b.addAll(tokens); err != nil {
		return nil, fmt.Errorf("naming the special tokens of %s: %w", family, err)
	}
	return b.finish(), nil
}

// named returns the names of special tokens.
func (f rankFamily) named(tokenizerConfig []byte) (map[int32]string, error) {
	if tokenizerConfig == nil {
		return f.names, nil
	}
	var config struct {
		Added map[string]struct {
			Content string `json:"content"`
		} `json:"added_tokens_decoder"`
	}
	if err := json.Unmarshal(tokenizerConfig, &config); err != nil {
		return nil, problem("%v", err)
	}
	if config.Added == nil {
		return nil, within("added_tokens_decoder", problem("the field is missing"))
	}
	names := map[int32]string{}
	for key, token := range config.Added {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil || int32(id) < f.first || int32(id) >= f.first+f.count {
			return nil, within("added_tokens_decoder", problem("%q is not an id from %d to %d", key, f.first, f.first+f.count-1))
		}
		names[int32(id)] = token.Content
	}
	return names, nil
}

// readRanks reads the lines of a rank file and checks their number.
func (b *builder) readRanks(data []byte, count int32) error {
	b.text = make([]byte, 0, len(data)/2)
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			continue
		}
		if err := b.readRank(line); err != nil {
			return within("line "+strconv.Itoa(number), err)
		}
	}
	if b.next != count || len(b.spans) != int(count) {
		return problem("%d ranks up to %d, want %d", b.next, len(b.spans)-1, count)
	}
	if err := b.index(nil); err != nil {
		return err
	}
	b.indexSplits()
	return nil
}

func (b *builder) readRank(line []byte) error {
	token, rank, ok := bytes.Cut(line, []byte(" "))
	id, err := strconv.ParseInt(string(rank), 10, 32)
	if !ok || err != nil {
		return problem("%q is not a token and a rank with a space between", short(line))
	}
	start := len(b.text)
	if b.text, err = base64.StdEncoding.AppendDecode(b.text, token); err != nil {
		return problem("%q is not base64: %v", short(token), err)
	}
	b.next++
	return b.place(int32(id), start)
}

// indexSplits makes the table of pairs that the vocabulary implies: two tokens that together form a third token are
// merged, with the rank of the third.
func (b *builder) indexSplits() {
	v := b.t.vocabulary
	var merges []merge
	for id := range int32(len(v.spans)) {
		whole, _ := v.bytes(id)
		for i := 1; i < len(whole); i++ {
			first, ok := v.find(whole[:i])
			if !ok {
				continue
			}
			if second, ok := v.find(whole[i:]); ok {
				merges = append(merges, merge{first: first, second: second, into: id})
			}
		}
	}
	b.t.pairs = newPairs(len(merges), len(v.spans))
	for _, m := range merges {
		b.t.pairs.add(m.first, m.second, uint32(m.into), m.into)
	}
	b.t.pairs.indexBytes(&b.t.byteIDs)
}
