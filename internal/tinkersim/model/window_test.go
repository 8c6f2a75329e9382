// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWindowOf(t *testing.T) {
	const stride = windowStride
	for position, want := range map[int]window{
		0: 0, Window - 1: 0, Window: 1, Window + stride - 1: 1, Window + stride: 2, 10 * stride: 9,
	} {
		if got := windowOf(position); got != want {
			t.Errorf("position %d is in window %d, want %d", position, got, want)
		}
	}
	for position := range 5 * Window {
		before := position - windowOf(position).start()
		if before >= Window || (position >= Window && before < stride) {
			t.Fatalf("position %d is the position %d of its window", position, before)
		}
	}
	for length, want := range map[int][]int{
		1: {1}, Window: {Window}, Window + 1: {Window, Window + 1 - stride}, Window + stride: {Window, Window},
		Window + stride + 1: {Window, Window, Window + 1 - stride},
	} {
		var got []int
		for _, part := range windowsOf(make([]int32, length)) {
			got = append(got, len(part))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("windows of %d tokens (-want +got):\n%s", length, diff)
		}
	}
}

// TestContextCountsTokens checks that the context of another vocabulary is counted in its tokens, however many bytes
// they stand for.
func TestContextCountsTokens(t *testing.T) {
	_, foreignAdapter := equalAdapters()
	w := foreignAdapter.Snapshot()
	long := slices.Repeat([]int32{2002}, LongContext+2) // "\n\nAssistant:" has 12 bytes
	var user *UserError
	for length, valid := range map[int]bool{Window: true, LongContext - 1: true, LongContext: false,
		LongContext + 1: false} {
		err := w.base.Validate(SampleRequest{Prompt: long[:length], MaxTokens: 5000, Temperature: 1, TopP: 1})
		if valid != (err == nil) || (!valid && (!errors.As(err, &user) || !strings.Contains(err.Error(),
			"context of 32768"))) {
			t.Errorf("a prompt of %d tokens: %v", length, err)
		}
	}
	if _, err := foreignAdapter.Forward(t.Context(), []Datum{shifted(long, nil)},
		Loss{Name: "cross_entropy"}); !errors.As(err, &user) {
		t.Errorf("a datum of %d tokens: %v", len(long)-1, err)
	}
	if native, foreign := testBase().Context(), w.base.Context(); native != Window || foreign != LongContext {
		t.Errorf("the contexts are %d and %d", native, foreign)
	}
}

// TestSampleEndsAtContext checks that a sample has no more tokens than the context leaves.
func TestSampleEndsAtContext(t *testing.T) {
	prompt := slices.Repeat([]int32{1032}, LongContext-3)
	c := newCompletion(testBase().WithVocabulary(foreign{}), SampleRequest{Prompt: prompt, MaxTokens: LongContext},
		spell(prompt), new(Sample))
	for range 3 {
		if c.isComplete() {
			t.Fatalf("the completion ends after %d tokens", len(c.Tokens))
		}
		if err := c.extend(new(chooser), make([]float32, Vocab)); err != nil {
			t.Fatal(err)
		}
		c.Stopped = false // a drawn token may be the end
	}
	if !c.isComplete() {
		t.Error("the completion continues beyond the context")
	}
}
