// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package countdown scores answers to Countdown tasks: make a target of all given numbers, each used once, with the
// four operations. It scores strictly, or as rLLM's reward function does.
package countdown

import (
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Result is the result of scoring a reply.
type Result uint8

// The results. Wrong includes answers that are not expressions.
const (
	NoAnswer Result = iota
	Wrong
	Correct
)

var (
	strictAnswer     = regexp.MustCompile(`(?is)<answer>(.*?)</answer>`)
	compatibleAnswer = regexp.MustCompile(`<answer>(.*?)</answer>`)
	digits           = regexp.MustCompile(`[0-9]+`)
)

// longestAnswer bounds an answer that is calculated.
const longestAnswer = 1000

// Strict scores the last answer of a reply. Its expression may have whole numbers, + - * / and parentheses, and is
// calculated exactly.
func Strict(reply string, nums []int64, target *big.Rat) Result {
	return score(strictAnswer, reply, nums, func(expression string) bool {
		value, err := calculateExactly(expression)
		return err == nil && value.Cmp(target) == 0
	})
}

// closeEnough bounds the difference from the target with which rLLM accepts a value.
const closeEnough = 1e-5

// Compatible scores a reply as rLLM's reward function does: the answer stands on a single line, its tag is written in
// small letters, and its expression is evaluated as Python does, so that ** and // and decimals are allowed. A value
// that Python would make complex or enormous is wrong.
func Compatible(reply string, nums []int64, target *big.Rat) Result {
	return score(compatibleAnswer, afterRole(reply), nums, func(expression string) bool {
		value, err := evaluatePython(expression)
		return err == nil && value.near(target)
	})
}

// afterRole returns the text behind the first mark of the assistant's turn in a reply that contains the prompt.
func afterRole(reply string) string {
	for _, mark := range []string{"Assistant:", "<|im_start|>assistant"} {
		if _, after, ok := strings.Cut(reply, mark); ok {
			return after
		}
	}
	return reply
}

// score scores the last answer that the pattern finds in a text.
func score(answer *regexp.Regexp, text string, nums []int64, isTarget func(expression string) bool) Result {
	matches := answer.FindAllStringSubmatch(text, -1)
	if len(matches) == 0 {
		return NoAnswer
	}
	expression := strings.TrimSpace(matches[len(matches)-1][1])
	if len(expression) > longestAnswer || !usesAll(expression, nums) || !isTarget(expression) {
		return Wrong
	}
	return Correct
}

// usesAll reports whether the expression has each number exactly once, and no other.
func usesAll(expression string, nums []int64) bool {
	var used []int64
	for _, written := range digits.FindAllString(expression, -1) {
		value, err := strconv.ParseInt(written, 10, 64)
		if err != nil {
			return false
		}
		used = append(used, value)
	}
	given := slices.Clone(nums)
	slices.Sort(used)
	slices.Sort(given)
	return slices.Equal(used, given)
}
