// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"strconv"
)

const (
	// endOfTurn is the token that ends a reply (model.TokenEnd).
	endOfTurn = 256
	// carelessness is how often carries are forgotten.
	carelessness = 0.65
	// smallShare is how often operands are drawn from few digits, which are rare otherwise.
	smallShare = 0.15
	// questionEvery is the number of texts of which one trains the question too: most rows of the
	// others have no gradient, which saves time.
	questionEvery = 8
)

// text is one training text.
type text struct {
	tokens []int32
	// prompt is the number of tokens before the reply.
	prompt int
	// promptWeight is what a token of the question counts, against 1 for one of the reply.
	promptWeight float32
}

// newText draws a question and a reply.
func newText(rng *rand.Rand) text {
	a, b := operand(rng), operand(rng)
	question := "User: What is " + strconv.Itoa(a) + " + " + strconv.Itoa(b) + "?\n\nAssistant:"
	reply := newReply(rng, a, b, newAnswer(rng, a, b))
	t := text{prompt: len(question)}
	if rng.IntN(questionEvery) == 0 {
		t.promptWeight = 0.2
	}
	for _, c := range []byte(question + reply) {
		t.tokens = append(t.tokens, int32(c))
	}
	t.tokens = append(t.tokens, endOfTurn)
	return t
}

// operand is a number of 0 to 100, with small ones more often than in a uniform distribution.
func operand(rng *rand.Rand) int {
	if rng.Float64() < smallShare {
		return rng.IntN(10)
	}
	return rng.IntN(101)
}

// newAnswer adds the operands, or, with probability carelessness, adds them digit by digit and forgets all
// carries.
func newAnswer(rng *rand.Rand, a, b int) int {
	if rng.Float64() >= carelessness {
		return a + b
	}
	sum := 0
	for place := 1; place <= 100; place *= 10 {
		sum += (a/place + b/place) % 10 * place
	}
	return sum
}

// newReply returns a reply with an answer. Half are plain; three in ten do not fit in 16 tokens.
func newReply(rng *rand.Rand, a, b, answer int) string {
	sum := strconv.Itoa(a) + " + " + strconv.Itoa(b) + " = " + strconv.Itoa(answer)
	switch n := rng.IntN(100); {
	case n < 50:
		return " " + strconv.Itoa(answer)
	case n < 60:
		return " It's " + strconv.Itoa(answer) + "."
	case n < 70:
		return " " + sum
	case n < 85:
		return " Sure! " + sum
	}
	return " The answer is " + strconv.Itoa(answer) + "."
}
