// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"

// Window is the most native tokens that the network reads at once. It is the context of the native vocabulary.
const Window = transformer.MaxContext

// LongContext is the context of every other vocabulary, in its tokens.
const LongContext = 1 << 15

// windowStride is the distance between the windows of a sequence that is longer than one.
const windowStride = Window / 2

// MaxSpelling is the most native tokens that a token may stand for: all of them are predicted in one window.
const MaxSpelling = windowStride

// window numbers the windows of a sequence of native tokens. Window 0 predicts the token after each of its positions.
// Every other window begins windowStride later than the one before it, and predicts the tokens after the positions in
// its second half. So a prediction depends on at most the Window tokens before it and, in a longer sequence, on at
// least windowStride of them. A position alone decides the window, so that a sample and the training on it, which knows
// how the sequence continues, agree.
type window int

// windowOf returns the window that predicts the token after a position.
func windowOf(position int) window {
	if position < Window {
		return 0
	}
	return window(position/windowStride - 1)
}

// start is the position in the sequence at which the window begins.
func (w window) start() int { return int(w) * windowStride }

// of returns the part of a sequence that the window reads.
func (w window) of(native []int32) []int32 {
	return native[w.start():min(w.start()+Window, len(native))]
}

// windowsOf returns the parts of a sequence that its windows read.
func windowsOf(native []int32) [][]int32 {
	all := make([][]int32, windowOf(len(native)-1)+1)
	for i := range all {
		all[i] = window(i).of(native)
	}
	return all
}
