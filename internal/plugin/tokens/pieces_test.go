// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"slices"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

func TestPieces(t *testing.T) {
	pieces, err := Pieces(t.Context(), cli.IO{Getenv: func(string) string { return "" }}, "tinkersim/byte-136k")
	if err != nil {
		t.Fatal(err)
	}
	// The third token is a part of a character, and the last one is of no text.
	if got, want := pieces([]int32{72, 105, 195, -1}), []string{"H", "i", "\uFFFD", ""}; !slices.Equal(got, want) {
		t.Errorf("the pieces are %q, want %q", got, want)
	}
	if _, err := Pieces(t.Context(), cli.IO{Getenv: func(string) string { return "" }}, "nobody"); err == nil {
		t.Error("there is a tokenizer of no model")
	}
}
