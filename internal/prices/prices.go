// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package prices has the table of what models cost on hosted Tinker. A model whose price is not known for certain is
// not in it.
package prices

import (
	_ "embed"
	"encoding/json"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
)

//go:embed prices.json
var table []byte

// known is the decoded table.
var known = decode(table)

type prices struct {
	Date   string                    `json:"date"`
	Models map[string]spending.Price `json:"models"`
}

func decode(data []byte) prices {
	var p prices
	if err := json.Unmarshal(data, &p); err != nil {
		panic("prices: decoding prices.json: " + err.Error()) // The file is part of the program.
	}
	return p
}

// Date is the day of which the prices are, as YEAR-MONTH-DAY.
func Date() string { return known.Date }

// Of returns the price of a base model in dollars a million tokens, if it is known.
func Of(model string) (spending.Price, bool) {
	price, ok := known.Models[model]
	return price, ok
}
