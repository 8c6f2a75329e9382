// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import "testing"

func TestBoxed(t *testing.T) {
	cases := map[string]struct {
		text, want string
		ok         bool
	}{
		"a number":                {`The answer is \boxed{12}.`, "12", true},
		"nested braces":           {`\boxed{\frac{1}{2}}`, `\frac{1}{2}`, true},
		"the last of two":         {`\boxed{1} or rather \boxed{2}`, "2", true},
		"a box within dollars":    {`$\boxed{ x^{2} }$`, "x^{2}", true},
		"fbox":                    {`\fbox{7}`, "7", true},
		"escaped braces":          {`\boxed{\{1, 2\}}`, `\{1, 2\}`, true},
		"spaces before the brace": {`\boxed {3}`, "3", true},
		"no braces":               {`\boxed 12 apples`, "12", true},
		"braces that stay open":   {`\boxed{\frac{1}{2}`, "", false},
		"no box":                  {`12`, "", false},
		"nothing behind the word": {`\boxed`, "", false},
		"an empty box":            {`\boxed{}`, "", true},
		"an empty last box":       {`\boxed{5} in a \boxed{ }`, "5", true},
		"the command as a word":   {`\boxed{5} in \boxed is the answer`, "5", true},
		"a command at the end":    {`\boxed{5} in \boxed`, "5", true},
		"a digit without braces":  {`\boxed5`, "5", true},
		"another box stays open":  {`\boxed{5} \boxed{6`, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, ok := Boxed(tc.text); got != tc.want || ok != tc.ok {
				t.Errorf("Boxed(%q) = %q, %v, want %q, %v", tc.text, got, ok, tc.want, tc.ok)
			}
		})
	}
}

func TestEqual(t *testing.T) {
	equal := map[string][][2]string{
		"numbers": {
			{"12", "12.0"}, {"0.5", "1/2"}, {"-0.25", `-\frac{1}{4}`}, {"1000", "1,000"}, {"1000", "1 000"},
			{"14916", "14{,}916"},
			{"1000000", `1,\!000,\!000`}, {"007", "7"}, {"-3", "−3"}, {"10^{30}+1", "1000000000000000000000000000001"},
			{"5!", "120"},
			{"2^{-1}", "0.5"}, {"2^10", "1024"}, {"50%", `50\%`}, {"3", "x = 3"}, {"3", "f(x)=3"}, {"1.5", "1 1/2"},
			{"2.5", `2\frac{1}{2}`},
			{"7 3/4", "31/4"}, {"4/2", "2"}, {"2/4", "1/2"}, {"90", `90^\circ`}, {"10 cm", "10"}, {`5\text{ meters}`, "5"},
			{"$12", "12 dollars"},
		},
		"expressions": {
			{`\sqrt{12}`, `2\sqrt{3}`}, {`\frac{1}{\sqrt{2}}`, `\frac{\sqrt{2}}{2}`}, {`\sqrt[3]{8}`, "2"}, {`2\pi`, "2*pi"},
			{`e^{i\pi}`, "-1"},
			{"(x-2)(x+2)", "x^2-4"}, {"x^2+2xy+y^2", "(x+y)^2"}, {`\frac{x}{2}`, "0.5x"}, {`\sin^2(x)+\cos^2(x)`, "1"},
			{`\log_2(8)`, "3"}, {`\lfloor\log_2 8\rfloor`, "3"}, {`\lceil\log_{10}1001\rceil`, "4"},
			{`\lfloor\log_2\frac18\rfloor`, "-3"}, {`\log_{\frac12}8`, "-3"},
			{"|-3|", "3"}, {"y=2x+3", "y = 3+2x"}, {"2x+4y=6", "x+2y=3"}, {"a_1+a_2", "a_2 + a_1"}, {`\dfrac{\pi}{2}`, "π/2"},
			{"√2", `\sqrt2`},
		},
		"collections": {
			{"(1, 2)", "(1,2)"}, {`\left( \frac12, 3 \right)`, "(0.5,3)"}, {`\{1,2,3\}`, `\{3, 2, 1\}`}, {`\{1,2\}`, "2, 1"},
			{"[0,1)", `[0, 1)`},
			{`(-\infty, 2) \cup (3, \infty)`, `(-\infty,2)\cup(3,\infty)`}, {"1, 2 and 3", "1,2,3"}, {"(100,200)", "(100, 200)"},
			{"(1,234)", "1234"},
		},
		"words": {{`\text{Evelyn}`, "evelyn"}, {"Yes", `\textbf{yes}`}, {"(A)", `\text{A}`},
			{`\begin{pmatrix} 1 \\ 2 \end{pmatrix}`, `\begin{pmatrix}1\\2\end{pmatrix}`}},
	}
	different := map[string][][2]string{
		"numbers": {{"12", "13"}, {"1/3", "0.333"}, {"10^{30}", "10^{30}+1"}, {"3", "-3"}, {"1", ""}, {"1.5", "11/2"},
			{"0.1", "0.10000001"}, {"1e3", "3e"}, {"1/0", "2/0"}},
		"expressions": {{"x+1", "x+2"}, {"x", "y"}, {`\sqrt{x^2}`, "x"}, {"x^2", "2x"}, {"x=1", "2"}, {"y=2x", "y=3x"},
			{"i", "-i"}, {"f(x)", "f(y)"}},
		"collections": {{"(1,2)", "(2,1)"}, {"(0,9)", "[0,9)"}, {"1,2", "2,2"}, {"1,2", "1,2,3"}, {`\{1,2\}`, "(1,2)"},
			{`\{1\}`, `\{1,1\}`}},
		"words": {{"listen", "silent"}, {"Evelyn", "Briana"}, {`\pm 3`, "3"}},
	}
	for want, groups := range map[bool]map[string][][2]string{true: equal, false: different} {
		for name, pairs := range groups {
			t.Run(name, func(t *testing.T) {
				for _, pair := range pairs {
					if Equal(pair[0], pair[1]) != want || Equal(pair[1], pair[0]) != want {
						t.Errorf("Equal(%q, %q) = %v, and reversed %v, want %v", pair[0], pair[1],
							Equal(pair[0], pair[1]), Equal(pair[1], pair[0]), want)
					}
				}
			})
		}
	}
}
