// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ui

package ui

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/uitest"
)

// TestWhyTheRewardStopsRising walks the clicks of docs/ui.md from the list of runs to the reason for which the reward
// of a run stops rising at step 30, and on to the run that repairs it.
func TestWhyTheRewardStopsRising(t *testing.T) {
	b := open(t, read)
	began := time.Now()
	step := func(does, until string, actions ...chromedp.Action) {
		t.Helper()
		b.do(t, actions...)
		b.await(t, until)
		say(t, "%6.1f s  %s", time.Since(began).Seconds(), does)
	}
	const row = `Array.from(document.querySelectorAll("#rows tr")).find(
		(r) => r.querySelector("td.name a").textContent === "` + uitest.Stuck + `")`
	step("the list names the cause", row+`.querySelector(".why").textContent.includes("RepliesCut")`)
	step("click the run", `location.pathname === "`+stuck+`" && document.querySelectorAll(".plot canvas").length > 4`,
		chromedp.Click(`//a[text()="`+uitest.Stuck+`"]`, chromedp.BySearch))
	step("Why it does not learn", `/cut \d+% of the last replies|maxTokens/.test(
		document.querySelector("#learning-list").textContent)`,
		chromedp.Click(`//nav/a[text()="Why it does not learn"]`, chromedp.BySearch))
	step("add the share of cut replies, and draw", `document.querySelector('[data-chart*="stop%2Flength"] .plot canvas')`,
		chromedp.SendKeys("#add-metric", "env/all/stop/length", chromedp.ByQuery),
		chromedp.Click(`//form[contains(@action, "curves")]/button`, chromedp.BySearch))
	b.expectRise(t)
	step("read the replies of the newest step", `document.querySelectorAll("article").length === 4`,
		chromedp.Click(`//a[text()="Read the replies of the newest step"]`, chromedp.BySearch))
	cut := is[int](t, b, `Array.from(document.querySelectorAll("article header"),
		(h) => h.textContent).filter((text) => / length /.test(text)).length`)
	if cut != 3 {
		t.Errorf("%d of 4 episodes are cut", cut)
	}
	answered := time.Since(began)
	step("back to the run, and fork at step 30", `location.pathname.endsWith("/actions/fork")`,
		chromedp.Click(`h1 a`, chromedp.ByQuery),
		chromedp.Click(`//tr[td[1][contains(., "30")]]//a[text()="fork"]`, chromedp.BySearch))
	step("give longer replies, and check", `document.querySelector("form[method=post] button.strong")`,
		chromedp.SendKeys(`textarea[name=set]`, "spec.environments[countdown].sampling.maxTokens=2048", chromedp.ByQuery),
		chromedp.Click(`form.inputs button`, chromedp.ByQuery))
	step("fork", `location.pathname.endsWith("/countdown-qwen3-s30") && /maxTokens/.test(
		document.querySelector("#spec").textContent)`, chromedp.Click(`form[method=post] button.strong`, chromedp.ByQuery))
	b.expectClean(t)
	if answered > 2*time.Minute {
		t.Errorf("the answer takes %s", answered)
	}
}

// expectRise fails unless the share of cut replies rises at the step at which the reward stops rising.
func (b *tab) expectRise(t *testing.T) {
	t.Helper()
	curve := func(metric string) []float64 {
		var y []float64
		b.do(t, chromedp.Evaluate(`fetch("`+stuck+`/curve.json?metric=`+metric+`").then((a) => a.json()).then(
			(c) => [10, 25, 30, 40, 47].map((step) => c.lines[0].y[c.x.indexOf(step)]))`, &y, awaited))
		return y
	}
	reward, length := curve("reward"), curve("env/all/stop/length")
	if reward[2]-reward[0] < .2 || reward[4]-reward[2] > .05 {
		t.Errorf("the reward at steps 10 to 47 is %v", reward)
	}
	if length[1]-length[0] < .05 || length[4] < .6 {
		t.Errorf("the share of cut replies at steps 10 to 47 is %v", length)
	}
}
