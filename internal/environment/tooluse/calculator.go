// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tooluse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// These bounds keep the cost of a call and the length of its result small, whatever a policy writes.
const (
	leastOperands = 2
	mostOperands  = 16
	longestNumber = 32
	// decimals is the number of decimals of a result that is not an integer.
	decimals = 12
)

// calculatorSchema describes the arguments. It is compact, because every prompt contains it.
const calculatorSchema = `{"type":"object","properties":{"operation":{"type":"string","enum":["add","subtract","multiply","divide"]},` +
	`"operands":{"type":"array","items":{"type":"number"},"minItems":2,"maxItems":16}},"required":["operation","operands"]}`

// Calculator is a Tool that applies one of the four operations to numbers, exactly. It has no state.
type Calculator struct{}

// Describe implements Tool.
func (Calculator) Describe() chat.Tool {
	return chat.Tool{
		Name:        "calculator",
		Description: "Applies an operation to numbers, from left to right, and gives the exact result.",
		Parameters:  json.RawMessage(calculatorSchema),
	}
}

// operations apply the next operand to the intermediate result.
var operations = map[string]func(result, operand *big.Rat) error{
	"add":      func(result, operand *big.Rat) error { result.Add(result, operand); return nil },
	"subtract": func(result, operand *big.Rat) error { result.Sub(result, operand); return nil },
	"multiply": func(result, operand *big.Rat) error { result.Mul(result, operand); return nil },
	"divide": func(result, operand *big.Rat) error {
		if operand.Sign() == 0 {
			return errors.New("operands: a number cannot be divided by 0")
		}
		result.Quo(result, operand)
		return nil
	},
}

// Call implements Tool. The result is an integer, or a number rounded to 12 decimals.
func (Calculator) Call(arguments string) (string, error) {
	operation, operands, err := readArguments(arguments)
	if err != nil {
		return "", err
	}
	apply, ok := operations[operation]
	if !ok {
		return "", fmt.Errorf("operation is %q, it must be add, subtract, multiply or divide", operation)
	}
	if len(operands) < leastOperands || len(operands) > mostOperands {
		return "", fmt.Errorf("operands has %d numbers, it must have from %d to %d", len(operands), leastOperands,
			mostOperands)
	}
	result := new(big.Rat).Set(operands[0])
	for _, operand := range operands[1:] {
		if err := apply(result, operand); err != nil {
			return "", err
		}
	}
	return formatNumber(result), nil
}

// readArguments decodes arguments, which must have both properties and no other.
func readArguments(arguments string) (operation string, operands []*big.Rat, err error) {
	var given struct {
		Operation *string           `json:"operation"`
		Operands  []json.RawMessage `json:"operands"`
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(arguments)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&given); err != nil {
		return "", nil, fmt.Errorf("the arguments cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return "", nil, errors.New("something follows the arguments")
	}
	switch {
	case given.Operation == nil:
		return "", nil, errors.New("operation is missing")
	case given.Operands == nil:
		return "", nil, errors.New("operands is missing")
	}
	for i, text := range given.Operands {
		operand, err := parseNumber(string(text))
		if err != nil {
			return "", nil, fmt.Errorf("operands[%d] %w", i, err)
		}
		operands = append(operands, operand)
	}
	return *given.Operation, operands, nil
}

// parseNumber reads a JSON number without an exponent: with one, a few characters could demand any amount of memory.
func parseNumber(text string) (*big.Rat, error) {
	switch {
	case text == "" || strings.Trim(text, "-0123456789.") != "":
		return nil, fmt.Errorf("is %s, it must be a number written in digits", truncate(text))
	case len(text) > longestNumber:
		return nil, fmt.Errorf("has %d characters, it may have %d", len(text), longestNumber)
	}
	value, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("is %s, it must be a number written in digits", truncate(text))
	}
	return value, nil
}

func truncate(text string) string {
	if len(text) <= longestNumber {
		return text
	}
	return text[:longestNumber] + "..."
}

func formatNumber(value *big.Rat) string {
	if value.IsInt() {
		return value.Num().String()
	}
	text := strings.TrimRight(value.FloatString(decimals), "0")
	if text = strings.TrimSuffix(text, "."); text == "-0" {
		return "0"
	}
	return text
}
