// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package transcripts has the command of `kubectl tinker` that shows the conversations of a run, and prints them for
// other commands.
package transcripts

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// Print prints a step for a terminal.
func Print(w io.Writer, step transcript.Step) {
	if step.Evaluation != "" {
		fmt.Fprintf(w, "evaluation of version %d\n", step.Step)
	} else {
		fmt.Fprintf(w, "step %d, sampled by version %d\n", step.Step, step.SampledAt)
	}
	if step.Missing != "" {
		fmt.Fprintf(w, "  the step has no transcript: %s\n", output.Clean(step.Missing))
	}
	for _, group := range step.Groups {
		fmt.Fprintln(w)
		PrintGroup(w, group)
	}
}

// PrintGroup prints the episodes of a group for a terminal.
func PrintGroup(w io.Writer, g transcript.Group) {
	task := ""
	if g.Split != "" {
		task = fmt.Sprintf("  %s task %d", output.Clean(g.Split), g.Task)
	}
	fmt.Fprintf(w, "slot %d  environment %s%s  %s%s\n", g.Slot, output.Clean(g.Environment), task, g.Outcome,
		prefixed(", ", output.Clean(g.Reason)))
	if g.Missing != "" {
		fmt.Fprintf(w, "  %s\n", output.Clean(g.Missing))
	}
	for _, e := range g.Episodes {
		fmt.Fprintf(w, "  episode %d  reward %s  stop reason %s%s%s\n", e.Index, output.Number(&e.Reward),
			cmp.Or(output.Clean(e.StopReason), "unknown"), unusable(e), numbers("  parts", e.Parts))
		if len(e.Metrics) > 0 {
			fmt.Fprintf(w, "    metrics%s\n", numbers("", e.Metrics))
		}
		for _, c := range e.Conversations {
			printConversation(w, c)
		}
	}
}

func printConversation(w io.Writer, c transcript.Conversation) {
	if c.Role != "" || c.Key != "" {
		fmt.Fprintf(w, "    conversation %s %s%s\n", output.Clean(c.Role), output.Clean(c.Key),
			prefixed("  reward ", output.Number(c.Reward)))
	}
	printBroken(w, c.PrefixBroken)
	if len(c.Tools) > 0 {
		names := make([]string, 0, len(c.Tools))
		for _, t := range c.Tools {
			names = append(names, output.Clean(t.Name))
		}
		fmt.Fprintf(w, "    tools: %s\n", strings.Join(names, ", "))
	}
	if c.Omitted != "" {
		fmt.Fprintf(w, "    (%s)\n", c.Omitted)
	}
	for _, m := range c.Messages {
		if m.NewPrompt {
			fmt.Fprintln(w, "    (the environment begins a new prompt)")
		}
		printBroken(w, m.PrefixBroken)
		who := output.Clean(m.Role) + prefixed(" ", output.Clean(m.Name))
		text(w, who+" (thinking)", m.Thinking)
		if m.Text != "" || m.Thinking == "" && len(m.Calls) == 0 {
			text(w, who, m.Text+" ")
		}
		for _, call := range m.Calls {
			text(w, who, fmt.Sprintf("calls %s(%s)", call.Name, call.Arguments))
		}
		text(w, who+" (malformed)", m.Problem)
		printGiven(w, m)
	}
	for _, j := range c.Judgements {
		fmt.Fprintf(w, "    judged %s  %s%s\n", output.Number(&j.Rating), output.Clean(j.Criterion),
			prefixed(": ", output.Clean(j.Rationale)))
	}
}

// printBroken prints the cause for which tokens were not continued.
func printBroken(w io.Writer, cause string) {
	if why := transcript.ExplainPrefix(cause); why != "" {
		fmt.Fprintf(w, "    (%s)\n", output.Clean(why))
	}
}

// printGiven prints the reward that the environment gave for a message, and whether the environment ended the
// episode.
func printGiven(w io.Writer, m transcript.Message) {
	var given []string
	if m.Reward != nil {
		given = append(given, "reward "+output.Number(m.Reward))
	}
	if m.Finished {
		given = append(given, "the environment ended the episode")
	}
	if len(given) > 0 {
		fmt.Fprintf(w, "    (%s)\n", strings.Join(given, "; "))
	}
}

// text prints a speaker and a text, with further lines below the first.
func text(w io.Writer, who, said string) {
	if said == "" {
		return
	}
	const indent = "    "
	for i, line := range strings.Split(strings.TrimRight(said, " \n"), "\n") {
		if i == 0 {
			fmt.Fprintf(w, "%s%s: %s\n", indent, who, output.Clean(line))
			continue
		}
		fmt.Fprintf(w, "%s%s%s\n", indent, strings.Repeat(" ", len(who)+2), output.Clean(line))
	}
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// unusable says why an episode is not trained on.
func unusable(e transcript.Episode) string {
	if e.Outcome == "Usable" && e.Reason == "" {
		return ""
	}
	return "  " + e.Outcome + prefixed(": ", output.Clean(e.Reason))
}

func numbers(title string, values map[string]float64) string {
	if len(values) == 0 {
		return ""
	}
	text := title
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		text += " " + output.Clean(name) + "=" + output.Number(&v)
	}
	return text
}
