// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import "testing"

// publishedCase is a case of another grader's own tests. Equal differs from that grader if theirs is not ours.
type publishedCase struct {
	name, gold, reply string
	theirs, ours      bool
}

// TestEqualOnHendrycksCases compares all cases of modeling/math_equivalence_test.py of github.com/hendrycks/math at
// commit 5f3bf91. That file writes two cases with a LaTeX command that is escaped twice.
func TestEqualOnHendrycksCases(t *testing.T) {
	runPublished(t, []publishedCase{
		{"fractions", `\tfrac{1}{2} + \frac1{72}`, `\\frac{1}{2} + 2/3`, false, false},
		{"order", "10, 4, -2", "4, 10, -2", false, true},
		{"order2", "10, 4, 2", "4, 12, 2", false, false},
		{"dfrac", `\tfrac{1}{2} +\! \frac1{72}`, `\\dfrac{1}{2} +\frac{1}{72}`, true, true},
		{"units", `10\text{ units}`, "10 ", true, true},
		{"units2", `10\text{ units}`, "100 ", false, false},
		{"dollars", "10", `\$10`, true, true},
		{"parentheses", `\left(x-2\right)\left(x+2\right)`, "(x-2)(x+2)", true, true},
		{"decimals", "0.1, 4, 2", "4, .1, 2", false, true},
		{"decimals2", "0.1", ".1", true, true},
		{"percentage", `10\%`, "10", true, true},
		{"sqrt", `10\sqrt{3} + \sqrt4`, `10\sqrt3 + \sqrt{4}`, true, true},
		{"frac", `\frac34i`, `\frac{3}{4}i`, true, true},
		{"tfrac", `\tfrac83`, `\frac{8}{3}`, true, true},
		{"expression", "5x - 7y + 11z + 4 = 0", "x + y - z + 2 = 0", false, false},
		{"half", "1/2", `\frac{1}{2}`, true, true},
	})
}

// TestEqualOnMathVerifyCases compares the short cases of tests/test_all.py of github.com/huggingface/Math-Verify at
// commit cf14bc4 and of its tests/test_yujianll.py at commit 056ad62. Math-Verify also searches sentences for an
// answer, which Equal does not, so that the reply here is the answer alone.
func TestEqualOnMathVerifyCases(t *testing.T) {
	runPublished(t, []publishedCase{
		{"a negative number", "-5", "-5", true, true},
		{"a thousands separator", "7425000", "7,425,000", true, true},
		{"a space as the separator", "1000", "1 000", true, true},
		{"a decimal point", "1000", "1000.0", true, true},
		{"separator and point", "1000.0", "1,000.0", true, true},
		{"a decimal comma", "1000.99", "1000,99", true, false},
		{"a decimal comma of the gold answer", "1,22", "1.22", true, false},
		{"a decimal comma after zero", "0,111", "0.111", true, false},
		{"no zero before the point", "0.4", ".4", true, true},
		{"a dollar before", "1000.99", "$1,000.99", true, true},
		{"a dollar behind", "1000.99", "1,000.99$", true, true},
		{"euros", "1000.99", "1,000.99€", true, true},
		{"square metres", "1000.99", "1,000.99m²", true, true},
		{"a number within a word", "2", "AZYUK2A", false, false},
		{"a fraction", "10/9", `\frac{10}{9}`, true, true},
		{"a negative fraction", "-10/9", `-\frac{10}{9}`, true, true},
		{"an interval", "$[0,1)$", "$[0,1)$", true, true},
		{"another end of an interval", "$[0,9)$", "$[0,1)$", false, false},
		{"another bracket", "$(0,9)$", "$[0,9)$", false, false},
		{"a negated interval", "$1$", "$-[0,1)$", false, false},
		{"display mathematics", "$9$", `\[ 9 \]`, true, true},
		{"double dollars", "$9$", "$$ 9 $$", true, true},
		{"inline mathematics", "$9$", `\( 9 \)`, true, true},
		{"a sum", "$10$", `\( (9+1) \)`, true, true},
		{"an inline formula of several lines", "$9$", "$ \n 9 \n $", false, true},
		{"a fraction without braces", "$1/3$", `$\frac13 $`, true, true},
		{"a fraction with one brace", "$1$", `$\frac3{3} $`, true, true},
		{"a root without braces", `$\sqrt{3}$`, `$\sqrt3 $`, true, true},
		{"cfrac", "$1/3$", `$\cfrac{1}{3} $`, true, true},
		{"left and right", "$1/3$", `$\left( \frac{1}{3} \right)$`, true, true},
		{"a box", "$1/3$", `$\boxed{\frac{1}{3}}$`, true, true},
		{"a unit as text", "$1/3$", `$\frac{1}{3} \text{meters}$`, true, true},
		{"a bold unit", "$1/3$", `$\frac{1}{3} \textbf{meters}$`, true, true},
		{"a name before", "$1/3$", `$k = \frac{1}{3}$`, true, true},
		{"per cent", `$28\%$`, "28 percent", true, true},
		{"pct", `$28\%$`, "28 pct", true, true},
		{"the percent sign", `$28\%$`, "28 %", true, true},
		{"per cent in the box", `$28\%$`, `$\boxed{28 percentage}$`, true, true},
		{"without per cent", `$28\%$`, "28", true, true},
		{"a share and per cent", "$0.28$", "28", false, false},
		{"a quotient and per cent", "$28/100$", "28", false, false},
		{"per cent and a quotient", "$28$", "28/100", false, false},
		{"a tuple and a set", "$(3,1)$", "${1,3}$", false, false},
		{"a tuple and a set in order", "$(1,3)$", "${1,3}$", true, false},
		{"a membership", `$[-2, 7]$`, `$x \in [-2,7]$`, true, true},
		{"a text", `$\text{Evelyn}$`, `$\boxed{\text{Evelyn}}$`, true, true},
		{"a named list", "$n=1, 2, 3$", "$n=1, 2, 3$", true, true},
		{"another named list", "$n=2, 3, 4$", "$n=1, 2, 3$", false, false},
		{"a named interval", "$D = (0, 1)$", "$D = (0, 1)$", true, true},
		{"another named interval", "$D = (0, 1)$", "$D = (0, 1.5)$", false, false},
		{"another sum sign", `$F_n = \sum_{k=0}^{n-1} F_k F_{n-k-1}$`, `$F_n = \sum_{k=0}^{n-2} F_k F_{n-k-2}$`, false,
			false},
		{"a sum sign with other factors", `$F_n = \sum_{k=0}^{n-1} F_k F_{n-k-1}$`, `$F_n = \sum_{k=0}^{n-1} F_{n-k-1} F_k$`,
			true, false},
		{"a list with and", "$19, 46, and 82$", `$19, 46, \text{ and } 82$`, true, true},
		{"another list with and", "$19, 46, and 82$", "$21, 36, and 82$", false, false},
		{"Euler's number", `$1 - \frac{1}{\mathrm{e}}$`, `$1 - \frac{1}{\mathrm{e}}$`, true, true},
		{"another sign", `$1 - \frac{1}{\mathrm{e}}$`, `$1 + \frac{1}{\mathrm{e}}$`, false, false},
		{"plus or minus and one sign", `$\pm 2021$`, "$2021$", false, false},
		{"plus or minus and both signs", `$\pm 2021$`, "${-2021, 2021}$", true, true},
		{"another time", "$12:00$", "$1:00$", false, false},
		{"a time", "$12:00$", "$12:00$", true, true},
	})
}

func runPublished(t *testing.T, cases []publishedCase) {
	t.Helper()
	differ := 0
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := Equal(tc.gold, tc.reply); got != tc.ours {
				t.Errorf("Equal(%q, %q) = %v, want %v", tc.gold, tc.reply, got, tc.ours)
			}
		})
		if tc.theirs != tc.ours {
			differ++
		}
	}
	t.Logf("%d of %d cases are as published", len(cases)-differ, len(cases))
}
