// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package prices has the table of the prices of models on hosted Tinker, in the form in which the service publishes it
// (models.json of its documentation). A model whose price is not known for certain is not in it.
package prices

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
)

//go:embed prices.json
var embedded []byte

// table has the prices of models by name.
type table struct {
	date   string
	prices map[string]spending.Price
}

// current is the embedded table, with its extensions.
var current = func() *atomic.Pointer[table] {
	t, err := parse(embedded)
	if err != nil {
		panic("prices: prices.json: " + err.Error()) // The file is part of the program.
	}
	var p atomic.Pointer[table]
	p.Store(&t)
	return &p
}()

// entry is a row of the published table. Prices are texts such as "$1.87", for a million tokens. A row has more
// fields, which are not read.
type entry struct {
	Model         string `json:"tinker_id"`
	Prefill       amount `json:"prefill"`
	CachedPrefill amount `json:"cached_prefill"`
	Sample        amount `json:"sample"`
	Train         amount `json:"train"`
}

// amount is a price in dollars. It is negative if there is none.
type amount float64

// UnmarshalJSON reads a text such as "$1.87", or a number.
func (a *amount) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	value, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(text), "$"), ",", ""), 64)
	if err != nil || value < 0 || math.IsInf(value, 0) || math.IsNaN(value) {
		value = -1 // The service writes a dash where a model has no such price.
	}
	*a = amount(value)
	return nil
}

// parse reads a table: the published list, or an object with the date and the list. It leaves out rows that lack a
// price, since their tokens would count as free.
func parse(data []byte) (table, error) {
	var dated struct {
		Date   string            `json:"date"`
		Models []json.RawMessage `json:"models"`
	}
	if json.Unmarshal(data, &dated.Models) != nil {
		if err := json.Unmarshal(data, &dated); err != nil {
			return table{}, fmt.Errorf("decoding prices: %w", err)
		}
	}
	out := table{date: dated.Date, prices: map[string]spending.Price{}}
	for i, row := range dated.Models {
		e := entry{Prefill: -1, CachedPrefill: -1, Sample: -1, Train: -1}
		if err := json.Unmarshal(row, &e); err != nil || e.Model == "" {
			return table{}, fmt.Errorf("decoding prices: row %d has no tinker_id", i)
		}
		if min(e.Prefill, e.Sample, e.Train) < 0 {
			continue
		}
		out.prices[e.Model] = spending.Price{Prompt: float64(e.Prefill), CachedPrompt: max(0, float64(e.CachedPrefill)),
			Sampled: float64(e.Sample), Trained: float64(e.Train)}
	}
	return out, nil
}

// parseRows reads a table that must have at least one price.
func parseRows(data []byte) (table, error) {
	parsed, err := parse(data)
	if err == nil && len(parsed.prices) == 0 {
		err = errors.New("no row has the fields prefill, sample and train")
	}
	return parsed, err
}

// Parse reads a table in the form of the service, and returns the prices of its models by name.
func Parse(data []byte) (map[string]spending.Price, error) {
	parsed, err := parseRows(data)
	return parsed.prices, err
}

// All returns the prices of all models by name.
func All() map[string]spending.Price { return maps.Clone(current.Load().prices) }

// Extend adds a table to the embedded one, in the form of the service. Its rows replace the rows of the same models.
func Extend(data []byte) error {
	further, err := parseRows(data)
	if err != nil {
		return err
	}
	known := current.Load()
	next := table{date: known.date, prices: maps.Clone(known.prices)}
	if further.date > next.date {
		next.date = further.date
	}
	maps.Copy(next.prices, further.prices)
	current.Store(&next)
	return nil
}

// Date returns the day of the prices, as YEAR-MONTH-DAY.
func Date() string { return current.Load().date }

// Of returns the price of a base model in dollars a million tokens, if it is known. Variants of a model
// (NAME:peft:CONTEXT) have prices of their own.
func Of(model string) (spending.Price, bool) {
	price, ok := current.Load().prices[model]
	return price, ok
}
