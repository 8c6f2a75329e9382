// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package page renders transcripts as HTML: one file for each step, which a browser shows without a network and without
// scripts. All texts come from models and data sets, and each is escaped.
package page

import (
	_ "embed"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

//go:embed page.css
var style string

// open is how many episodes of a group are shown without a click.
const open = 2

// Render returns the page of a step.
func Render(step transcript.Step) []byte {
	w := &writer{}
	number := strconv.FormatInt(step.Step, 10)
	w.put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Step %</title>
<style>
`, number)
	w.out.WriteString(style)
	w.put("</style>\n</head>\n<body>\n<h1>Step %</h1>\n", number)
	w.put("<p class=\"note\">Sampled by version %. Lineage %.</p>\n", strconv.FormatInt(step.SampledAt, 10), step.Lineage)
	w.unlessEmpty("<p class=\"missing\">This step has no transcript: %.</p>\n", step.Missing)
	for _, group := range step.Groups {
		w.group(group)
	}
	w.put("</body>\n</html>\n")
	return w.out.Bytes()
}

func (w *writer) group(g transcript.Group) {
	w.put(`<h2>Slot %: % <span class="note">%</span></h2>`+"\n", strconv.FormatInt(g.Slot, 10), g.Environment,
		list(g.Outcome, g.Reason))
	w.unlessEmpty("<p class=\"missing\">%.</p>\n", g.Missing)
	for i, episode := range g.Episodes {
		w.put(`<details class="episode"`)
		if i < open {
			w.put(" open")
		}
		w.put(">\n")
		w.episode(episode)
		w.put("</details>\n")
	}
}

func (w *writer) episode(e transcript.Episode) {
	notes := []string{}
	if e.StopReason != "" {
		notes = append(notes, "stop reason "+e.StopReason)
	}
	if e.Retries > 0 {
		notes = append(notes, strconv.Itoa(e.Retries)+" retries")
	}
	w.put(`<summary>Episode %: <span class="reward">reward %</span>`+"\n", strconv.Itoa(e.Index), figure(e.Reward))
	w.put(`<span class="note">%</span>`, list(notes...))
	if e.Outcome != "Usable" {
		w.put(` <span class="bad">%</span>`, e.Outcome)
	}
	w.unlessEmpty(` <span class="bad">%</span>`, e.Reason)
	w.put("</summary>\n")
	if len(e.Parts)+len(e.Metrics) > 0 {
		w.put("<table>\n")
		w.figures("<tr><td>reward part %</td><td>%</td></tr>\n", e.Parts)
		w.figures("<tr><td>metric %</td><td>%</td></tr>\n", e.Metrics)
		w.put("</table>\n")
	}
	for _, c := range e.Conversations {
		w.conversation(c)
	}
}

func (w *writer) conversation(c transcript.Conversation) {
	if c.Role != "" || c.Key != "" {
		w.put("<h3>% % ", c.Role, c.Key)
		if c.Reward != nil {
			w.put(`<span class="reward">reward %</span>`, figure(*c.Reward))
		}
		w.put(` <span class="note">%</span></h3>`+"\n", c.StopReason)
	}
	w.unlessEmpty("<p class=\"note\">%.</p>\n", transcript.ExplainPrefix(c.PrefixBroken))
	if len(c.Tools) > 0 {
		w.put(`<details><summary class="note">% tools</summary>`+"\n", strconv.Itoa(len(c.Tools)))
		for _, tool := range c.Tools {
			w.put(`<div class="message"><span class="who">%</span><pre>%</pre>`, tool.Name, tool.Description)
			w.unlessEmpty("<pre>%</pre>", string(tool.Parameters))
			w.put("</div>\n")
		}
		w.put("</details>\n")
	}
	w.unlessEmpty("<p class=\"missing\">%.</p>\n", c.Omitted)
	for _, m := range c.Messages {
		w.message(m)
	}
	if len(c.Judgements) > 0 {
		w.put("<table>\n<tr><th>criterion</th><th>rating</th><th>rationale</th></tr>\n")
		for _, j := range c.Judgements {
			w.put("<tr><td>%</td><td>%</td><td><pre>%</pre></td></tr>\n", j.Criterion, figure(j.Rating), j.Rationale)
		}
		w.put("</table>\n")
	}
}

func (w *writer) message(m transcript.Message) {
	if m.NewPrompt {
		w.put("<p class=\"note\">The environment begins a new prompt:</p>\n")
	}
	w.unlessEmpty("<p class=\"note\">%:</p>\n", transcript.ExplainPrefix(m.PrefixBroken))
	w.put(`<div class="message %"><span class="who">%`, m.Role, m.Role)
	w.unlessEmpty(" %", m.Name)
	if m.Reply > 0 {
		w.put(", sampled as reply %", strconv.Itoa(m.Reply))
	}
	if m.Reward != nil {
		w.put(", reward %", figure(*m.Reward))
	}
	if m.Finished {
		w.put(", ended the episode")
	}
	w.put("</span>")
	w.unlessEmpty(`<pre class="thinking">%</pre>`, m.Thinking)
	w.unlessEmpty("<pre>%</pre>", m.Text)
	for _, call := range m.Calls {
		w.put("<pre>calls %(%)</pre>", call.Name, call.Arguments)
	}
	w.unlessEmpty(`<p class="bad">%</p>`, m.Problem)
	w.put("</div>\n")
}

// figures writes numbers in the order of their names.
func (w *writer) figures(m markup, numbers map[string]float64) {
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		w.put(m, name, figure(numbers[name]))
	}
}

// figure returns a number in four digits.
func figure(value float64) string { return strconv.FormatFloat(value, 'g', 4, 64) }

// list joins the texts that are not empty.
func list(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ", ")
}
