// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"math"
	"slices"
)

// The margins of the decision, in standard errors of the difference between the agreements of narrow and of wide
// samples. A setting that is ignored stays below the lower one, whatever the arithmetic of the server.
const (
	ignoredBelow  = 5
	supportedFrom = 7
	// roomFrom is how far the agreement of wide samples must be below 1, so that a setting can show.
	roomFrom = 10
)

// narrowing decides whether a setting narrows the choice of tokens. Both arguments have the samples that were drawn
// after each of several prompts: wide without the setting, and narrow with it. Arithmetic that differs from request to
// request decides near ties at random, so honoured settings do not make samples equal: they make them agree clearly
// more often.
func narrowing(wide, narrow [][]string) (Support, string) {
	with, without := agreement(narrow), agreement(wide)
	contrast := with.above(without)
	switch {
	case !without.variesEnough():
		return Unknown, "samples vary too little even without it"
	case contrast >= supportedFrom:
		return Supported, ""
	case contrast < ignoredBelow:
		return Ignored, "the setting does not narrow the choice of tokens"
	}
	return Unknown, "samples vary too much to see whether it narrows the choice of tokens"
}

// seeding decides whether seeds determine the samples: wide and same were drawn with equal seeds, and other with
// different ones. A server may return the samples of a request in any order.
func seeding(wide, same, other [][]string) (Support, string) {
	chance := agreement(wide)
	equal, different := pairAgreement(wide, same), pairAgreement(wide, other)
	contrast := equal.above(chance)
	switch {
	case !chance.variesEnough():
		return Unknown, "samples vary too little"
	case contrast < ignoredBelow && inAnyOrder(wide, same) && !inAnyOrder(wide, other):
		return Supported, ""
	case contrast < ignoredBelow:
		return Ignored, "the same seed draws different tokens"
	case different.mean > (equal.mean+chance.mean)/2:
		return Ignored, "another seed draws the same tokens"
	case contrast >= supportedFrom:
		return Supported, ""
	}
	return Unknown, "samples vary too much to see whether the seed determines them"
}

// placing decides whether the seed of a request determines its samples by their places: wide and same were drawn with
// equal seeds, and other with different ones.
func placing(wide, same, other [][]string) (Support, string) {
	chance, different := agreement(wide), pairAgreement(wide, other)
	contrast := pairAgreement(wide, same).above(chance)
	switch {
	case chance.above(different) >= supportedFrom:
		return Ignored, "the samples of one request are alike"
	case !chance.variesEnough():
		return Unknown, "samples vary too little"
	case contrast < ignoredBelow:
		return Ignored, "sample i of a request differs when the request is repeated with its seed"
	case contrast >= supportedFrom:
		return Supported, ""
	}
	return Unknown, "samples vary too much to see whether the seed determines them by their places"
}

// inAnyOrder reports whether the same samples were drawn after each prompt, in any order.
func inAnyOrder(a, b [][]string) bool {
	return slices.EqualFunc(a, b, func(a, b []string) bool {
		return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
	})
}

// estimate is an estimated mean with the variance of the estimate.
type estimate struct{ mean, variance float64 }

// variesEnough reports whether an agreement leaves room for a clear difference.
func (e estimate) variesEnough() bool { return estimate{mean: 1}.above(e) >= roomFrom }

// above returns by how many standard errors an estimate is above another.
func (e estimate) above(other estimate) float64 {
	return (e.mean - other.mean) / math.Sqrt(e.variance+other.variance)
}

// pairAgreement returns how often the samples at the same place in two requests are equal.
func pairAgreement(a, b [][]string) estimate {
	equal, pairs := 0.0, 0.0
	for i := range a {
		for j := range a[i] {
			pairs++
			if a[i][j] == b[i][j] {
				equal++
			}
		}
	}
	mean := equal / pairs
	return estimate{mean: mean, variance: (mean*(1-mean) + 1/pairs) / pairs}
}

// agreement returns how often two samples after the same prompt are equal, averaged over prompts.
func agreement(prompts [][]string) estimate {
	var sum estimate
	for _, drawn := range prompts {
		one := agreementOf(drawn)
		sum.mean += one.mean
		sum.variance += one.variance
	}
	k := float64(len(prompts))
	return estimate{mean: sum.mean / k, variance: sum.variance / (k * k)}
}

// agreementOf returns how often two samples are equal. The first term of the variance is the variance of the samples'
// shares; the second keeps it from vanishing when few pairs are equal.
func agreementOf(drawn []string) estimate {
	counts := map[string]float64{}
	for _, sample := range drawn {
		counts[sample]++
	}
	n, equal, squares := float64(len(drawn)), 0.0, 0.0
	for _, sample := range drawn {
		share := (counts[sample] - 1) / (n - 1)
		equal += share / n
		squares += share * share / n
	}
	pairs := n * (n - 1)
	return estimate{mean: equal, variance: 4/n*(squares-equal*equal) + 2*(equal+2/pairs)*(1-equal+2/pairs)/pairs}
}
