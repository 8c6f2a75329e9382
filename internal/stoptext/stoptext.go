// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package stoptext cuts replies at texts that the endpoint did not receive as stops. A request to the endpoint has
// either the stops of a model's format, which are tokens, or texts.
package stoptext

import (
	"slices"
	"sort"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// Cut returns how many of the tokens are needed to complete the first of the texts that occurs, and that text. The
// result is the same as if the text had been a stop of the request, since later tokens do not affect it. If no text
// occurs, Cut returns the number of all tokens and "". says returns the text of tokens.
func Cut(tokens []int32, texts []string, says func([]int32) (string, error)) (end int, stop string, err error) {
	whole, err := says(tokens)
	if err != nil {
		return len(tokens), "", err
	}
	if stop, _ = First(whole, texts); stop == "" {
		return len(tokens), "", nil
	}
	end = sort.Search(len(tokens), func(n int) bool {
		part, partErr := says(tokens[:n])
		if partErr != nil {
			err = partErr
		}
		return strings.Contains(part, stop)
	})
	return end, stop, err
}

// First returns which of the texts occurs first in a text, and its index; "" and the length of the text if none
// occurs.
func First(text string, texts []string) (found string, at int) {
	at = len(text)
	for _, each := range texts {
		if i := strings.Index(text, each); i >= 0 && i < at {
			found, at = each, i
		}
	}
	return found, at
}

// Before cuts the text of a message before the stop.
func Before(m chat.Message, stop string) chat.Message {
	if !m.IsStructured() {
		if i := strings.Index(m.Content, stop); i >= 0 {
			m.Content = m.Content[:i]
		}
		return m
	}
	parts := slices.Clone(m.AllParts())
	for i, part := range parts {
		if at := strings.Index(part.Text, stop); at >= 0 && !part.Thinking {
			parts[i].Text = part.Text[:at]
			return m.WithParts(parts[:i+1])
		}
	}
	return m
}
