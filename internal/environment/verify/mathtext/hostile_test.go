// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"strings"
	"testing"
)

// overshoot is how far one operation may exceed the steps that are left before it.
const overshoot = 500_000

// hostile returns answers that would take much time or memory without bounds.
func hostile() []string {
	r := strings.Repeat
	return []string{
		r("(", 3000), r(`\sqrt`, 700), r(`\frac`, 700), r(`\frac12`, 500), r("-", 3000) + "1", r("x^", 900) + "2",
		r("a_", 900),
		r("{", 1900) + r("}", 1900), r("|", 1900), r("sin", 600), r(`\sin-`, 700), r("1,", 1900), r("1 ", 1900),
		r("0.3...", 600),
		`\{` + r("x,", 1900) + `\}`, `\{` + r(`\{1,2\},`, 200) + `3\}`, r(`\{x∈`, 200), r(`x\in\{`, 60) + "1" + r(`\}`, 60),
		r("x=", 500) + "1", r("x<", 300) + "1", r(`1\approx`, 300) + "1", r(`\pm`, 500) + "1", r(`\pm 1,`, 60) + "1",
		r(`\mathrm{`, 900), r(`\text{(`, 500), r(`\mathbf{`, 300) + "1" + r("}", 300), r(`\boxed{`, 300), r(`\boxed{}`, 400),
		r(`\begin{pmatrix}`, 200), r("5\\text{ cm}", 300), r("1 1/2", 700), "0." + r("12", 1900) + "...", r("9", 3900),
		"9^9^9^9^9", "170!^500", "((170!)!)!", "20000!^{13}", r("20000!+", 400) + "1", `\binom{20000}{10000}^{5}`,
		"5!!!!!!!!",
		"1e999999999", r("1e20000+", 300) + "1", r("1e20000/3e20000+", 200) + "1", r(`\frac{1}{3^{9999}}+`, 200) + "1",
		r("9", 1900) + "/" + r("7", 1900), "(" + r("x+1)^{200}(", 100) + "x)", r("x^{9999}+", 300) + "1", `(x+y+z)^{100000}`,
		r(`\sin 1+`, 300) + "1", r(`\sin x+`, 300) + "1", r(`\ln x\cdot `, 300) + "1", r(`\pi^{\pi}+`, 300) + "1",
		r("x!+", 400) + "1", r(`\binom{n}{k}+`, 200) + "1", r(`\frac{1}{x+`, 60) + "1" + r("}", 60),
		r("e^{", 60) + "1" + r("}", 60),
		`1.0000001^{1000000}`, `\pi^{1000000}`, `\pi^{10^{9}}`, `e^{10^{7}}`, `e^{10^{9}}`, `e^{-10^{9}}`, `\sin(10^{70})`,
		`\sin(10^{400})`,
		`\sqrt[1000000]{2^{1000}}`, `\sqrt[x]{2}`, `\sqrt[0]{2}`, `0^0`, `0^{-1}`, `0^{\pi}`, `0^{i}`, `i^i`,
		`(1+i)^{100000000}`,
		`1^{10^{100}}`, `(-1)^{10^{100}+1}`, `(1/2)^{10^{10}}`, `\ln 0`, `\ln(\sin\pi)`, `\frac{1}{\sin\pi}`, `\tan\frac\pi2`,
		`\arcsin 2`,
		`\arctan i`, `\log_1 2`, `\log_0 2`, `\lfloor` + r(`\lfloor`, 70) + "1", "{" + r(`1\choose`, 90) + "1}",
	}
}

// TestStepsAreBounded counts steps, since the time depends on the machine.
func TestStepsAreBounded(t *testing.T) {
	for _, text := range hostile() {
		for _, other := range []string{"1", text + "+0", "x+" + text} {
			if _, steps := equalIn(text, other); steps > mostSteps+overshoot {
				t.Errorf("comparing %.40q with %.40q takes %d steps, want at most %d", text, other, steps, mostSteps+overshoot)
			}
		}
	}
}

// TestExhaustedStepsAreNotEqual checks that a reply that is too expensive to compare earns nothing.
func TestExhaustedStepsAreNotEqual(t *testing.T) {
	costly := strings.Repeat(`\pi^{\pi}-\pi^{\pi}+`, 80) + "5"
	if same, steps := equalIn(costly, "5"); same || steps <= mostSteps {
		t.Errorf("Equal of an expensive sum = %v after %d steps, want false after more than %d", same, steps, mostSteps)
	}
}

func FuzzEqual(f *testing.F) {
	f.Add(`\frac{1}{2}`, "0.5")
	f.Add(`\left(x-2\right)(x+2)`, "x^2-4")
	f.Add(`\{1,2\}`, "2,1")
	f.Add("7 3/4", `7\tfrac34`)
	f.Add(`x<1\text{ or }x\ge 2`, `(-\infty,1)\cup[2,\infty)`)
	f.Add(`\begin{pmatrix}1\\ \log_2 8\end{pmatrix}`, `5\text{ km/h}`)
	f.Add(`0.1\overline{6}`, `1.5e3_{8}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		if !Equal(a, a) {
			t.Errorf("%q is not equal to itself", a)
		}
		same, steps := equalIn(a, b)
		if same != Equal(b, a) {
			t.Errorf("Equal(%q, %q) depends on the order", a, b)
		}
		if steps > mostSteps+overshoot {
			t.Errorf("comparing %q with %q takes %d steps, want at most %d", a, b, steps, mostSteps+overshoot)
		}
	})
}
