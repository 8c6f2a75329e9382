// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"math"
	"strconv"
)

// readSampling decodes an option by which the caller decides on the sampling. It returns false for any other option.
func (d *decoder) readSampling(o object, name string) bool {
	field := o.get(name)
	switch name {
	case "temperature":
		d.sampling.Temperature = d.float(field, 0, 100)
	case "top_p":
		d.sampling.TopP = d.float(field, math.SmallestNonzeroFloat64, 1)
	case "top_k":
		d.sampling.TopK = d.integer(o, name, -1)
	case "seed":
		seed, err := strconv.ParseInt(string(field.raw), 10, 64)
		if err != nil {
			d.fail(field.path, "Expected an integer, but got %s.", kind(field))
		}
		d.sampling.Seed = &seed
	default:
		return false
	}
	return true
}

// float returns a value that must be a number within the bounds.
func (d *decoder) float(n node, least, most float64) *float64 {
	value, err := strconv.ParseFloat(string(n.raw), 64)
	switch {
	case err != nil:
		d.fail(n.path, "Expected a number, but got %s.", kind(n))
	case value < least || value > most:
		d.fail(n.path, "Expected a number between %g and %g, but got %s.", math.Round(least), most, cut(string(n.raw)))
	}
	return &value
}
