// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// Pieces returns a function that returns the text of each token, by the tokenizer of a file or a model. The text of a
// token that is a part of a character is a replacement character, and the text of a token that the tokenizer does not
// know is empty.
func Pieces(ctx context.Context, env cli.IO, name string) (func(ids []int32) []string, error) {
	from, err := load(ctx, env, name)
	if err != nil {
		return nil, err
	}
	return func(ids []int32) []string {
		pieces := make([]string, len(ids))
		for i := range ids {
			if text, err := from.tokens.Decode(ids[i : i+1]); err == nil {
				pieces[i] = text
			}
		}
		return pieces
	}, nil
}
