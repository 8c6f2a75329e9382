// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package countdown

import (
	"math/big"
	"strconv"
)

// mostNumbers bounds the search, whose effort grows with the factorial of the count squared.
const mostNumbers = 5

// term is a value with the expression that makes it.
type term struct {
	value *big.Rat
	text  string
}

// Solve returns an expression that makes the target of all numbers. It returns false if no such expression exists, or
// if there are too many numbers to search.
func Solve(nums []int64, target *big.Rat) (expression string, ok bool) {
	if len(nums) == 0 || len(nums) > mostNumbers {
		return "", false
	}
	var terms []term
	for _, n := range nums {
		terms = append(terms, term{value: big.NewRat(n, 1), text: strconv.FormatInt(n, 10)})
	}
	return search(terms, target)
}

// search combines two terms in every way until one is left.
func search(terms []term, target *big.Rat) (string, bool) {
	if len(terms) == 1 {
		return terms[0].text, terms[0].value.Cmp(target) == 0
	}
	for i := range terms {
		for j := range terms {
			if i == j {
				continue
			}
			var rest []term
			for k := range terms {
				if k != i && k != j {
					rest = append(rest, terms[k])
				}
			}
			for _, operator := range []string{"+", "-", "*", "/"} {
				value, err := exact{}.apply(operator, terms[i].value, terms[j].value)
				if err != nil || i > j && (operator == "+" || operator == "*") {
					continue
				}
				text := "(" + terms[i].text + " " + operator + " " + terms[j].text + ")"
				if found, ok := search(append(rest[:len(rest):len(rest)], term{value: value, text: text}), target); ok {
					return found, true
				}
			}
		}
	}
	return "", false
}
