// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tooluse

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestCalculatorCall(t *testing.T) {
	cases := map[string]struct{ arguments, want string }{
		"a sum":                  {`{"operation":"add","operands":[99,99]}`, "198"},
		"more than two operands": {`{"operation":"add","operands":[1,2,3,4]}`, "10"},
		"from left to right":     {`{"operation":"subtract","operands":[10,3,4]}`, "3"},
		"a product beyond 64 bits": {`{"operation":"multiply","operands":[123456789012345678,987654321098765432]}`,
			"121932631137021794322511812221002896"},
		"decimals are exact":             {`{"operation":"add","operands":[0.1,0.2]}`, "0.3"},
		"a quotient that is an integer":  {`{"operation":"divide","operands":[84,2]}`, "42"},
		"a quotient that is not":         {`{"operation":"divide","operands":[2,3]}`, "0.666666666667"},
		"a result that rounds to zero":   {`{"operation":"divide","operands":[-1,9999999999999999]}`, "0"},
		"negative operands":              {`{"operation":"add","operands":[-5,3]}`, "-2"},
		"properties in the other order":  {`{"operands":[1,2],"operation":"add"}`, "3"},
		"white space around the numbers": {`{"operation": "add", "operands": [ 1 , 2 ]}`, "3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Calculator{}.Call(tc.arguments)
			if err != nil || got != tc.want {
				t.Errorf("Call(%s) = %q, %v, want %q", tc.arguments, got, err, tc.want)
			}
		})
	}
}

func TestCalculatorCallErrors(t *testing.T) {
	cases := map[string]struct{ arguments, names string }{
		"no JSON":                       {`add 1 and 2`, "cannot be read"},
		"no object":                     {`[1,2]`, "cannot be read"},
		"half an object":                {`{"operation":"add"`, "cannot be read"},
		"two objects":                   {`{"operation":"add","operands":[1,2]}{}`, "follows"},
		"no operation":                  {`{"operands":[1,2]}`, "operation is missing"},
		"an operation that is not":      {`{"operation":"power","operands":[1,2]}`, `operation is "power"`},
		"an operation that is a number": {`{"operation":1,"operands":[1,2]}`, "operation"},
		"no operands":                   {`{"operation":"add"}`, "operands is missing"},
		"one operand":                   {`{"operation":"add","operands":[1]}`, "has 1 numbers"},
		"too many operands": {`{"operation":"add","operands":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}`,
			"has 17 numbers"},
		"an operand that is text": {`{"operation":"add","operands":[1,"2"]}`, `operands[1] is "2"`},
		"an operand that is null": {`{"operation":"add","operands":[null,2]}`, "operands[0] is null"},
		"an exponent":             {`{"operation":"add","operands":[1e999999999,2]}`, "operands[0]"},
		"an endless number": {`{"operation":"add","operands":[` + strings.Repeat("9", 1000) + `,2]}`,
			"has 1000 characters"},
		"an argument that is not known": {`{"operation":"add","operands":[1,2],"round":true}`, "round"},
		"a division by zero":            {`{"operation":"divide","operands":[1,0]}`, "divided by 0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Calculator{}.Call(tc.arguments)
			if err == nil || !strings.Contains(err.Error(), tc.names) || len(err.Error()) > 200 {
				t.Errorf("Call = %q, %v, want a short error that names %q", got, err, tc.names)
			}
		})
	}
}

func TestCalculatorSchema(t *testing.T) {
	var schema struct {
		Properties struct {
			Operation struct{ Enum []string }
			Operands  struct{ MinItems, MaxItems int }
		}
		Required []string
	}
	if err := json.Unmarshal(Calculator{}.Describe().Parameters, &schema); err != nil {
		t.Fatal(err)
	}
	for name := range operations {
		if !slices.Contains(schema.Properties.Operation.Enum, name) {
			t.Errorf("the schema lacks the operation %s", name)
		}
	}
	if len(schema.Properties.Operation.Enum) != len(operations) || len(schema.Required) != 2 ||
		schema.Properties.Operands.MinItems != leastOperands || schema.Properties.Operands.MaxItems != mostOperands {
		t.Errorf("the schema says %+v", schema)
	}
}
