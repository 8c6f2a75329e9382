// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package uitest

import (
	"context"
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// Hostile is a text that a browser or a terminal must show and not obey.
const Hostile = `</pre><script src="/assets/evil.js">alert(1)</script><img src=x onerror="document.title='executed'">` +
	`<a href="javascript:alert(2)">click</a> {{.}} ` +
	"\x1b[31mred\x1b]0;title\x07 \u202eesrever\u202c \u2066x\u2069 \u200bz"

// LongLine is the length of the line of the hostile transcript.
const LongLine = 10 << 20

// Read returns the transcript of a step of any run: as many groups of four episodes as a step records, whose replies
// are cut from step 30 on in the run Stuck.
func Read(_ context.Context, run *v1alpha1.TrainingRun, step int64, evaluation bool) (transcript.Step, []int64, error) {
	newest := int64(48)
	if run.Status.Step != nil {
		newest = *run.Status.Step
	}
	if step < 0 {
		step = newest
	}
	var steps []int64
	for s := int64(1); s <= newest; s++ {
		steps = append(steps, s)
	}
	if step > newest {
		return transcript.Step{}, steps, fmt.Errorf("run %q has no transcript of step %d", run.Name, step)
	}
	out := transcript.Step{Step: step, Lineage: "lineage", SampledAt: step - 1}
	if evaluation {
		out.Evaluation, out.SampledAt = "held-out", step
	}
	for slot := range int64(6) {
		out.Groups = append(out.Groups, group(run.Name, step, slot, evaluation))
	}
	return out, steps, nil
}

func group(run string, step, slot int64, evaluation bool) transcript.Group {
	g := transcript.Group{Slot: step*32 + slot, Environment: "countdown", Split: "train", Task: 17*slot + step,
		Outcome: "Usable"}
	sum := 0.0
	for i := range 4 {
		e := episode(run, step, slot, i)
		if evaluation {
			e.Passed, e.Best = new(e.Reward > 0), i == 0
		}
		sum += e.Reward
		g.Episodes = append(g.Episodes, e)
	}
	for i := range g.Episodes {
		s := &g.Episodes[i].Conversations[0].Segments[0]
		for range s.Actions {
			s.Advantages = append(s.Advantages, float32(g.Episodes[i].Reward-sum/4))
		}
	}
	return g
}

func episode(run string, step, slot int64, index int) transcript.Episode {
	text := fmt.Sprintf("I need 24 of 3, 5, 8 and %d. 8 × 3 = 24, and 5 − 5 = 0.\n\n"+
		"The answer is 8 × 3 + (5 − 5) = 24.",
		slot+2)
	thinking, stop, reward := "Let me try products first: 3 × 8 is 24 already.", "stop", 1.0
	if noise(run, step*100+slot*10+int64(index)) > .3 {
		text, reward = "The answer is 3 + 5 + 8 = 16.", 0
	}
	if run == Stuck && step >= 30 && index != 1 {
		thinking = strings.Repeat("Let me check that once more: 3 × 8 = 24, so 24 is reached. "+
			"But maybe there is another way. ",
			9) + "Let me ch"
		text, stop, reward = "", "length", 0
	}
	reply := text
	if reply == "" {
		reply = thinking
	}
	return transcript.Episode{Index: index, Outcome: "Usable", Reward: reward, StopReason: stop, Turns: 1,
		PromptTokens: 61, SampledTokens: int64(len(reply)), Parts: map[string]float64{"exact": reward},
		Conversations: []transcript.Conversation{{Reward: &reward, StopReason: stop,
			Messages: []transcript.Message{
				{Role: "user", Text: fmt.Sprintf("Use 3, 5, 8 and %d, each once, to make 24. Show your work.", slot+2)},
				{Role: "assistant", Thinking: thinking, Text: text, Reply: 1},
			},
			Segments: []transcript.Segment{segment(run, step, reply)}}}}
}

// segment has a token for each byte, as the tokenizer of the simulator has.
func segment(run string, step int64, reply string) transcript.Segment {
	const prompt = "User: make 24\n\nAssistant: "
	s := transcript.Segment{Tokens: len(prompt) + len(reply), Sampled: len(reply), Logprob: -.42}
	for i, b := range []byte(prompt + reply) {
		s.IDs = append(s.IDs, int32(b))
		if i < len(prompt) {
			continue
		}
		lp := float32(-.02)
		if n := noise(run, step*10_000+int64(i)); n > .55 {
			lp = float32(-6 * (n - .5))
		}
		s.Actions = append(s.Actions, i)
		s.Logprobs = append(s.Logprobs, lp)
		s.TrainerLogprobs = append(s.TrainerLogprobs, lp+float32(.06*noise(run+"t", int64(i))))
	}
	return s
}

// Pieces shows each token as the byte that it is.
func Pieces(context.Context, string) (func([]int32) []string, error) {
	return func(ids []int32) []string {
		all := make([]string, len(ids))
		for i, id := range ids {
			all[i] = string(id)
		}
		return all
	}, nil
}

// ReadHostile returns a transcript with hostile texts in every place, and with one long line.
func ReadHostile(context.Context, *v1alpha1.TrainingRun, int64, bool) (transcript.Step, []int64, error) {
	e := transcript.Episode{Outcome: Hostile, Reason: Hostile, StopReason: Hostile, Reward: 1,
		Parts: map[string]float64{Hostile: 1}, Metrics: map[string]float64{Hostile: 1},
		Conversations: []transcript.Conversation{{Role: Hostile, Key: Hostile, PrefixBroken: Hostile, Omitted: Hostile,
			Tools: []transcript.Tool{{Name: Hostile, Description: Hostile}},
			Messages: []transcript.Message{{Role: Hostile, Name: Hostile, Text: Hostile, Thinking: Hostile, Problem: Hostile,
				PrefixBroken: Hostile, Calls: []transcript.Call{{Name: Hostile, Arguments: Hostile}}},
				{Role: "tool", Text: strings.Repeat("0123456789abcdef", LongLine/16)}},
			Judgements: []transcript.Judgement{{Criterion: Hostile, Rationale: Hostile}}}}}
	return transcript.Step{Step: 3, Lineage: Hostile, Missing: Hostile, Groups: []transcript.Group{{Slot: 7,
		Environment: Hostile, Split: Hostile, Outcome: Hostile, Reason: Hostile, Missing: Hostile,
		Episodes: []transcript.Episode{e}}}}, []int64{3}, nil
}
