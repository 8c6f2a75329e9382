// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
)

// distribution is the distribution from which a search draws the values of a field: a range, or a list.
type distribution struct {
	path string
	// low and high bound a range. If logarithmic is set, the logarithm of the value is uniform.
	low, high   float64
	logarithmic bool
	// whole says that the field takes whole numbers.
	whole bool
	// choices are the values of a list; a range has none.
	choices []string
}

var rangePattern = regexp.MustCompile(`^(uniform|loguniform)\(([^(),]*),([^(),]*)\)$`)

// isRange reports whether the values of an axis are a range rather than a list.
func isRange(values string) bool { return rangePattern.MatchString(strings.TrimSpace(values)) }

// distributionOf reads the values of an axis: uniform(LOW,HIGH), loguniform(LOW,HIGH), or A,B,C.
func distributionOf(axis string) (distribution, error) {
	path, values, _ := strings.Cut(axis, "=")
	d := distribution{path: path}
	match := rangePattern.FindStringSubmatch(strings.TrimSpace(values))
	if match == nil {
		for value := range strings.SplitSeq(values, ",") {
			d.choices = append(d.choices, strings.TrimSpace(value))
		}
		return d, nil
	}
	var errs [2]error
	d.logarithmic, d.whole = match[1] == "loguniform", manifest.TypeOf(path) == "integer"
	d.low, errs[0] = strconv.ParseFloat(strings.TrimSpace(match[2]), 64)
	d.high, errs[1] = strconv.ParseFloat(strings.TrimSpace(match[3]), 64)
	if errs[0] != nil || errs[1] != nil || d.low-d.low != 0 || d.high-d.high != 0 {
		return d, cli.Misused("--grid: %q has a bound that is not a number: write PATH=%s(LOW,HIGH)", axis, match[1])
	}
	return d, d.check(axis)
}

// check refuses ranges that have no values for their field.
func (d distribution) check(axis string) error {
	switch kind := manifest.TypeOf(d.path); {
	case d.low >= d.high:
		return cli.Misused("--grid: %q begins above its end: write the lower bound first", axis)
	case d.logarithmic && d.low <= 0:
		return cli.Misused("--grid: %q has no logarithm at %g: begin above 0, or write uniform", axis, d.low)
	case d.whole && (d.low != math.Trunc(d.low) || d.high != math.Trunc(d.high)):
		return cli.Misused("--grid: %q has a bound that is no whole number, as the field needs: round it", axis)
	case kind != "integer" && kind != "number" && kind != "":
		return cli.Misused("--grid: %q is a range, and the field is of type %s: write PATH=A,B,C", axis, kind)
	}
	return nil
}

// at returns the value at a place from 0 to below 1.
func (d distribution) at(place float64) string {
	if d.choices != nil {
		return d.choices[int(place*float64(len(d.choices)))]
	}
	low, high := d.low, d.high
	if d.whole {
		high++
	}
	value := low + place*(high-low)
	if d.logarithmic {
		value = math.Exp(math.Log(low) + place*(math.Log(high)-math.Log(low)))
	}
	if d.whole {
		return strconv.FormatFloat(min(max(math.Floor(value), d.low), d.high), 'f', -1, 64)
	}
	// Four digits are enough for a setting, and can be read in a label.
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 4, 64), 64)
	return strconv.FormatFloat(min(max(rounded, d.low), d.high), 'g', -1, 64)
}

// draw returns distinct values for the trials. The first trials are the same however many are drawn.
func draw(axes []distribution, trials int, seed uint64) ([][]string, error) {
	sources := make([]*rand.Rand, len(axes))
	for i, axis := range axes {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(axis.path))
		sources[i] = rand.New(rand.NewPCG(seed, hash.Sum64()))
	}
	var all [][]string
	for missed := 0; len(all) < trials; {
		values := make([]string, len(axes))
		for i, axis := range axes {
			values[i] = axis.at(sources[i].Float64())
		}
		if slices.ContainsFunc(all, func(other []string) bool { return slices.Equal(other, values) }) {
			const patience = 10_000
			if missed++; missed == patience {
				return nil, cli.Misused("--samples %d is more than the values of --grid have combinations: %d were found; give "+
					"at most that many, or more values", trials, len(all))
			}
			continue
		}
		all = append(all, values)
	}
	return all, nil
}
