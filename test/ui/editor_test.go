// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ui

package ui

import (
	"math"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestEditor writes a wrong value, which is marked beside its line while it is written, corrects it, and
// applies the spec.
func TestEditor(t *testing.T) {
	b := open(t, read)
	b.do(t, emulation.SetDeviceMetricsOverride(1280, 900, 1, false), chromedp.Navigate(b.host+stuck+"/spec"))
	b.await(t, `document.querySelector("textarea.yaml")`)
	write := func(changed string) {
		b.do(t, chromedp.Evaluate(`(() => { const text = document.querySelector("textarea.yaml");
			text.value = text.value.replace(/^( *)maxTokens:.*$/m, "$1`+changed+`");
			text.dispatchEvent(new Event("input", {bubbles: true})); })()`, nil))
	}
	write("maxTokens: -1")
	b.await(t, `document.querySelector("#causes li[data-line]")`)
	const line = `document.querySelector("textarea.yaml").value.split("\n").findIndex((l) => l.includes("maxTokens")) + 1`
	got, want := is[int](t, b, `Number(document.querySelector("#causes li").dataset.line)`), is[int](t, b, line)
	if got != want {
		t.Errorf("line %d is marked, want %d", got, want)
	}
	// 18 pixels are a line, and 12 the space above the first.
	top := is[float64](t, b, `document.querySelector("#causes li").offsetTop`)
	if want := float64(18*(is[int](t, b, line)-1) + 12); math.Abs(top-want) > 2 {
		t.Errorf("the cause is %g pixels below the top, want %g", top, want)
	}
	b.do(t, chromedp.Click("[data-goto]", chromedp.ByQuery))
	if chosen := is[string](t, b, `getSelection().toString()`); chosen != "    maxTokens: -1" {
		t.Errorf("the button chooses %q", chosen)
	}
	write("maxTokens: 2048")
	b.await(t, `!document.querySelector("#causes li")`)
	b.do(t, chromedp.Click(`button[value=check]`, chromedp.ByQuery))
	b.await(t, `document.querySelector("button[value=apply]")`)
	b.do(t, chromedp.Click(`button[value=apply]`, chromedp.ByQuery))
	b.await(t, `location.pathname === "`+stuck+`" &&
		document.querySelector("#yaml").textContent.includes("maxTokens: 2048")`)
	b.expectClean(t)
}
