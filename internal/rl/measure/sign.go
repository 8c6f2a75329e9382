// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import "math"

// SignTest is the exact two-sided sign test. It returns the probability that tasks are as unevenly divided as these, or
// more, if each is as likely to become better as to become worse. Tasks that stay the same are left out. With n =
// better + worse and k the smaller of both, that is min(1, 2 * sum over i = 0..k of (n over i) / 2^n).
func SignTest(better, worse int) float64 {
	n, k := better+worse, min(better, worse)
	all, _ := math.Lgamma(float64(n + 1))
	sum := 0.0
	for i := range k + 1 {
		chosen, _ := math.Lgamma(float64(i + 1))
		left, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(all - chosen - left - float64(n)*math.Ln2)
	}
	return min(1, 2*sum)
}
