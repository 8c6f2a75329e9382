// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package transformer is the network of tinkersim's model: two pre-norm decoder layers over bytes,
// with a hand-written backward pass and a decoder that keeps keys and values.
//
// It knows nothing of adapters, losses, sampling or texts: its callers give it parameters and tokens, and use the
// logits.
//
// With E, Q, O, U, D, H the matrices of the layout, r the root-mean-square norm without gain and
// rot the rotary position embedding, a layer is
//
//	x ← x + attention(rot(r(x)·Q))·O
//	x ← x + relu²(r(x)·U)·D
//
// starting from x = E[token]; the logits are r(x)·H.
//
// # Why results do not depend on the batch
//
// Every product is a sum that runs over the inner index in order, element by element: gonum's
// NoTrans·NoTrans and Trans·NoTrans kernels add scaled rows, so neither the number of rows nor the
// tiling changes a bit. Its NoTrans·Trans kernel, a dot product whose order of summation follows
// length and alignment, is never used; transposed copies of the parameters are kept instead.
// Fused multiply-add may give other bits on another architecture, never on another machine of the same.
package transformer
