// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// maxTarget bounds the targets of Countdown.
const maxTarget = 9999

// Countdown generates tasks of the game Countdown: reach a target with given numbers, each used once. The split test
// has a fifth as many tasks as train. Each task has a solution, since its target is computed from the numbers. Rows
// have the fields nums, target and solution, and the solution is the answer.
//
// A hash of the numbers and the target decides whether a task may be in train or in test, so that no task is in both.
// Row i is a function of the options, the split and i.
type Countdown struct{ options settings.CountdownData }

// NewCountdown returns the tasks of the options.
func NewCountdown(o settings.CountdownData) (*Countdown, error) {
	switch {
	case o.MinNumbers < 2 || o.MaxNumbers > 6 || o.MinNumbers > o.MaxNumbers:
		return nil, fmt.Errorf("minNumbers is %d and maxNumbers %d, they must be from 2 to 6 and in this order", o.MinNumbers,
			o.MaxNumbers)
	case o.MaxNumber < 5 || o.MaxNumber > 999:
		return nil, fmt.Errorf("maxNumber is %d, it must be from 5 to 999", o.MaxNumber)
	case o.Tasks < 5 || o.Tasks > 1<<32:
		return nil, errors.New("tasks must be from 5 to 4294967296")
	}
	return &Countdown{options: o}, nil
}

// Splits implements Dataset.
func (d *Countdown) Splits(context.Context) ([]environment.Split, error) {
	return []environment.Split{{Name: testSplit, Tasks: d.options.Tasks / 5}, {Name: trainSplit, Tasks: d.options.Tasks}},
		nil
}

// Row implements Dataset.
func (d *Countdown) Row(_ context.Context, split string, index int64) (Row, error) {
	count := map[string]int64{testSplit: d.options.Tasks / 5, trainSplit: d.options.Tasks}[split]
	if index < 0 || index >= count {
		return Row{}, noRow(split, index)
	}
	draws := sequence(mix(uint64(index)))
	if split == testSplit {
		draws = sequence(mix(^uint64(index)))
	}
	for {
		task := d.draw(&draws)
		if task.isTest() == (split == testSplit) {
			return task.row(), nil
		}
	}
}

// sequence is a stream of random numbers.
type sequence uint64

// below returns a number from 0 to n-1.
func (s *sequence) below(n int) int {
	*s++
	return int(mix(uint64(*s)) % uint64(n))
}

// countdownTask consists of numbers, a target, and an expression of the numbers whose value is the target.
type countdownTask struct {
	numbers  []int
	target   int
	solution string
}

// draw draws numbers, and combines each with the result so far by an operation whose result is an integer from 1 to
// maxTarget.
func (d *Countdown) draw(s *sequence) countdownTask {
	least, most := int(d.options.MinNumbers), int(d.options.MaxNumbers)
	numbers := make([]int, least+s.below(most-least+1))
	for i := range numbers {
		numbers[i] = 1 + s.below(int(d.options.MaxNumber))
	}
	task := countdownTask{target: numbers[0], solution: strconv.Itoa(numbers[0])}
	for i, n := range numbers[1:] {
		operations := possible(task.target, n)
		o := operations[s.below(len(operations))]
		if i > 0 {
			task.solution = "(" + task.solution + ")"
		}
		task.solution += fmt.Sprintf(" %c %d", o.sign, n)
		task.target = o.result
	}
	// The numbers are shown in another order than the order in which they were combined.
	for i := len(numbers) - 1; i > 0; i-- {
		j := s.below(i + 1)
		numbers[i], numbers[j] = numbers[j], numbers[i]
	}
	task.numbers = numbers
	return task
}

// operation is an operation with its result.
type operation struct {
	sign   byte
	result int
}

// possible returns the operations on a and b whose result is an integer from 1 to maxTarget; there is at least one.
func possible(a, b int) []operation {
	var all []operation
	if a+b <= maxTarget {
		all = append(all, operation{'+', a + b})
	}
	if a > b {
		all = append(all, operation{'-', a - b})
	}
	if a*b <= maxTarget {
		all = append(all, operation{'*', a * b})
	}
	if a%b == 0 {
		all = append(all, operation{'/', a / b})
	}
	return all
}

// isTest reports whether the task belongs to the split test, which does not depend on the order of the numbers.
func (t countdownTask) isTest() bool {
	hash := uint64(t.target)
	for _, n := range slices.SortedFunc(slices.Values(t.numbers), cmp.Compare) {
		hash = mix(hash ^ uint64(n))
	}
	return mix(hash) < testThreshold
}

func (t countdownTask) row() Row {
	numbers := make([]any, len(t.numbers))
	for i, n := range t.numbers {
		numbers[i] = json.Number(strconv.Itoa(n))
	}
	prompt := fmt.Sprintf("Using the numbers %s, find a way to reach the target number %d. You can use basic arithmetic "+
		"operations "+
		"(+, -, *, /) and each number can only be used once. Show your step-by-step calculation and output the final "+
		"answer within "+
		"<answer>...</answer>, for example <answer> (1 + 2) / 3 </answer>.", textOf(numbers), t.target)
	return Row{
		Messages: []chat.Message{{Role: chat.RoleUser, Content: prompt}}, Prompt: prompt, Answer: t.solution,
		Fields: map[string]any{"nums": numbers, "target": json.Number(strconv.Itoa(t.target)), "solution": t.solution},
	}
}

var _ Dataset = (*Countdown)(nil)
