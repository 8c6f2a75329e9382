// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ui

package ui

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

var axe = flag.String("axe", "", "check the pages with axe-core, whose script is in this `FILE`")

// violations checks the page with axe-core, and returns a line for each element that breaks a rule. Contrast is among
// the rules.
const violations = `axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations.flatMap((v) =>
	v.nodes.map((n) => v.id + ": " + v.help + ": " + n.html.slice(0, 160) + " " +
		n.any.concat(n.all, n.none).map((c) => c.message).join("; "))))`

// axeScript returns the script of axe-core. Without the script, it skips the test and says so in the target's output.
func axeScript(t *testing.T) string {
	t.Helper()
	if *axe == "" {
		say(t, "%s: NOT CHECKED, since axe-core could not be fetched: run hack/need-axe.sh where npm reaches its registry",
			t.Name())
		t.SkipNow()
	}
	script, err := os.ReadFile(*axe)
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// TestAccessibility checks each page with axe-core at two widths, light and dark.
func TestAccessibility(t *testing.T) {
	script := axeScript(t)
	b := open(t, read)
	checked := 0
	b.eachView(t, func(name string) {
		var broken []string
		// The debugger's protocol evaluates scripts that the page's own policy would refuse.
		b.do(t, chromedp.Evaluate(script, nil), chromedp.Evaluate(violations, &broken, awaited))
		checked++
		if len(broken) > 0 {
			t.Errorf("%s has %d violations:\n  %s", name, len(broken), strings.Join(broken, "\n  "))
		}
	})
	b.expectClean(t)
	say(t, "axe-core checked %d pages", checked)
}

// TestAxeFinds checks that axe-core finds a violation in a page that has one: it really checks pages.
func TestAxeFinds(t *testing.T) {
	script := axeScript(t)
	b := open(t, read)
	var broken []string
	b.do(t, chromedp.Evaluate(`Object.assign(document.querySelector("h1").style, {color: "#777", background: "#888"})`,
		nil), chromedp.Evaluate(script, nil), chromedp.Evaluate(violations, &broken, awaited))
	if !strings.Contains(strings.Join(broken, "\n"), "color-contrast") {
		t.Errorf("grey on grey is no violation: %q", broken)
	}
}
