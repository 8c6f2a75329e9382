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
	// carelessness is the share of forgotten carries.
	carelessness = 0.65
	// smallShare is the share of operands that are drawn from few digits, which are rare otherwise.
	smallShare = 0.15
	// plainShare is the share of right texts that have a plain reply, whatever newReply would draw.
	plainShare = 0.7
	// questionEvery is N if one of N texts trains its question too. Most rows of the other texts have no gradient, which
	// saves time.
	questionEvery = 8
)

// text is one training text.
type text struct {
	tokens []int32
	// prompt is the number of tokens before the reply.
	prompt int
	// promptWeight is the weight of a token of the question; a token of the reply has 1.
	promptWeight float32
}

// newText draws a question and a reply.
func newText(rng *rand.Rand) text {
	a, b := operand(rng), operand(rng)
	question := "What is " + strconv.Itoa(a) + " + " + strconv.Itoa(b) + "?"
	return conversation(rng, question, newReply(rng, a, b, newAnswer(rng, a, b)), 0.2)
}

// newRightText draws a question and the right reply to it, which is mostly plain. All forms of base.bin occur, so that
// the model is a teacher of base.bin: it knows whatever base.bin says.
func newRightText(rng *rand.Rand, _ float64) text {
	a, b := operand(rng), operand(rng)
	reply := strconv.Itoa(a + b)
	if rng.Float64() >= plainShare {
		reply = newReply(rng, a, b, a+b)
	}
	return conversation(rng, "What is "+strconv.Itoa(a)+" + "+strconv.Itoa(b)+"?", reply, 0.2)
}

// conversation returns the text of a question and its reply. promptWeight is the weight of the question, if it is
// trained.
func conversation(rng *rand.Rand, question, reply string, promptWeight float32) text {
	prompt := promptOf(question)
	t := text{prompt: len(prompt)}
	if rng.IntN(questionEvery) == 0 {
		t.promptWeight = promptWeight
	}
	for _, c := range []byte(prompt + " " + reply) {
		t.tokens = append(t.tokens, int32(c))
	}
	t.tokens = append(t.tokens, endOfTurn)
	return t
}

// promptOf is the beginning of a conversation.
func promptOf(question string) string { return "User: " + question + "\n\nAssistant:" }

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
		return strconv.Itoa(answer)
	case n < 60:
		return "It's " + strconv.Itoa(answer) + "."
	case n < 70:
		return sum
	case n < 85:
		return "Sure! " + sum
	}
	return "The answer is " + strconv.Itoa(answer) + "."
}
