// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxNumber is the greatest number of a Countdown task.
	maxNumber = 19
	// twoNumbers is the share of tasks with two numbers; other tasks have three.
	twoNumbers = 0.65
	// learning is the part of the training in which most answers are right. In the rest of it most are guessed, so that
	// the model prefers a right answer only slightly, although it knows more.
	learning = 0.75
	// guessedAtFirst and guessedAtLast are how often an answer is guessed in these parts.
	guessedAtFirst, guessedAtLast = 0.03, 0.85
	// judgesAtFirst and judgesAtLast are how often a text is a judge's in these parts.
	judgesAtFirst, judgesAtLast = 0.03, 0.15
	// questionWeight is the weight of a token of a question, if questions are trained.
	questionWeight = 0.1
	// noSolution is shown to a judge for a solver without an answer.
	noSolution = "No solution found"
)

// newCountdownText draws a conversation of the solver-judge workflow on Countdown: a solver's, or a judge's, who
// chooses at random. The progress is the part of the training that is done.
func newCountdownText(rng *rand.Rand, progress float64) text {
	guessed, judges := guessedAtFirst, judgesAtFirst
	if progress >= learning {
		guessed, judges = guessedAtLast, judgesAtLast
	}
	t := newTask(rng)
	question := t.question()
	if rng.Float64() >= judges {
		return conversation(rng, question, answerOf(t.answer(rng, guessed)), questionWeight)
	}
	solutions := make([]string, 2)
	if rng.IntN(5) == 0 {
		solutions = make([]string, 3)
	}
	for i := range solutions {
		solutions[i] = answerOf(t.answer(rng, guessed))
		if rng.IntN(10) == 0 {
			solutions[i] = noSolution
		}
	}
	return conversation(rng, judgeQuestion(question, solutions), answerOf(strconv.Itoa(1+rng.IntN(len(solutions)))),
		questionWeight)
}

// judgeQuestion returns the question to a judge about solutions of a question.
func judgeQuestion(question string, solutions []string) string {
	question += "\n"
	for i, solution := range solutions {
		question += fmt.Sprintf("\nSolution %d:\n%s\n", i+1, solution)
	}
	return question + "\nWhich solution is right?"
}

func answerOf(s string) string { return "<answer>" + s + "</answer>" }

// task is a task of Countdown: all numbers, each used once, make the target.
type task struct {
	numbers []int
	target  int
}

// newTask draws a task as the data set countdown does: each number is combined with the result so far by an operation
// whose result is a whole number above 0, and the numbers are shuffled.
func newTask(rng *rand.Rand) task {
	t := task{numbers: make([]int, 3)}
	if rng.Float64() < twoNumbers {
		t.numbers = t.numbers[:2]
	}
	for i := range t.numbers {
		t.numbers[i] = 1 + rng.IntN(maxNumber)
	}
	t.target = t.numbers[0]
	for _, n := range t.numbers[1:] {
		var results []int
		for _, sign := range signs {
			if result, ok := apply(sign, t.target, n); ok {
				results = append(results, result)
			}
		}
		t.target = results[rng.IntN(len(results))]
	}
	rng.Shuffle(len(t.numbers), func(i, j int) { t.numbers[i], t.numbers[j] = t.numbers[j], t.numbers[i] })
	return t
}

func (t task) question() string {
	numbers := make([]string, len(t.numbers))
	for i, n := range t.numbers {
		numbers[i] = strconv.Itoa(n)
	}
	return fmt.Sprintf("Make %d from %s.", t.target, strings.Join(numbers, ", "))
}

// signs are the operations, in the order in which solutions are sought.
const signs = "+-*/"

// apply returns the result of an operation, if it is a whole number above 0.
func apply(sign rune, a, b int) (result int, ok bool) {
	switch sign {
	case '+':
		return a + b, true
	case '-':
		return a - b, a > b
	case '*':
		return a * b, true
	default:
		return a / b, a%b == 0
	}
}

// answer returns the solution, or with the given probability an expression of the same numbers that is drawn at random.
func (t task) answer(rng *rand.Rand, guessed float64) string {
	if rng.Float64() >= guessed {
		return t.solution()
	}
	numbers := slices.Clone(t.numbers)
	rng.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
	expression := strconv.Itoa(numbers[0])
	for i, n := range numbers[1:] {
		expression = combine(expression, rune(signs[rng.IntN(len(signs))]), n, i)
	}
	return expression
}

// combine appends an operation to an expression of some operations.
func combine(expression string, sign rune, n, operations int) string {
	if operations > 0 {
		expression = "(" + expression + ")"
	}
	return expression + string(sign) + strconv.Itoa(n)
}

// solution returns the first expression that makes the target. There is one.
func (t task) solution() string {
	var search func(expression string, result, operations int, left []int) string
	search = func(expression string, result, operations int, left []int) string {
		if len(left) == 0 {
			if result == t.target {
				return expression
			}
			return ""
		}
		for _, sign := range signs {
			for i, n := range left {
				next, ok := apply(sign, result, n)
				if !ok {
					continue
				}
				rest := slices.Concat(left[:i], left[i+1:])
				if found := search(combine(expression, sign, n, operations), next, operations+1, rest); found != "" {
					return found
				}
			}
		}
		return ""
	}
	for i, n := range t.numbers {
		rest := slices.Concat(t.numbers[:i], t.numbers[i+1:])
		if found := search(strconv.Itoa(n), n, 0, rest); found != "" {
			return found
		}
	}
	panic("the target cannot be reached")
}
