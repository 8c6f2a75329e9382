// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package uitest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// Crowd returns a cluster with many runs, and the counter of lists of the runs. The first run has a history with the
// given number of steps.
func Crowd(ctx context.Context, count int, steps int64) (client.WithWatch, *atomic.Int32, error) {
	all, h, err := Many(count, steps)
	if err != nil {
		return nil, nil, err
	}
	full, lists := false, &atomic.Int32{}
	cluster, err := New(ctx, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			runs, ok := list.(*v1alpha1.TrainingRunList)
			if !ok || !full {
				return c.List(ctx, list, options...)
			}
			lists.Add(1)
			for _, run := range all {
				runs.Items = append(runs.Items, *run)
			}
			return nil
		},
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			return watch.NewFake(), nil
		},
	})
	if err != nil {
		return nil, nil, err
	}
	full = true
	return cluster, lists, Add(ctx, cluster, all[0], h)
}

// Steps of the large transcripts.
const (
	// LongStep has a group of four episodes of 100,000 tokens, and WideStep 1,000 episodes in groups of 16.
	LongStep = 1
	WideStep = 2
)

// ReadLarge returns the transcripts of LongStep and WideStep.
func ReadLarge(_ context.Context, _ *v1alpha1.TrainingRun, step int64, _ bool) (transcript.Step, []int64, error) {
	out := transcript.Step{Step: step, Lineage: "lineage", SampledAt: step - 1}
	steps := []int64{LongStep, WideStep}
	switch step {
	case LongStep:
		g := transcript.Group{Environment: "countdown", Split: "train", Outcome: "Usable"}
		for i := range 4 {
			g.Episodes = append(g.Episodes, long(i, 100_000))
		}
		out.Groups = append(out.Groups, g)
	case WideStep:
		for i := range 1000 {
			slot := int64(i / 16)
			if i%16 == 0 {
				out.Groups = append(out.Groups, transcript.Group{Slot: slot, Environment: "countdown", Split: "train", Task: slot,
					Outcome: "Usable"})
			}
			e := episode("wide", step, slot, i%16)
			if i == 777 {
				e.Conversations[0].Messages[1].Text += " needle"
			}
			out.Groups[slot].Episodes = append(out.Groups[slot].Episodes, e)
		}
	default:
		return out, steps, fmt.Errorf("there is no transcript of step %d", step)
	}
	return out, steps, nil
}

// long returns an episode whose reply has this many tokens of a byte, with all figures.
func long(index, tokens int) transcript.Episode {
	const sentence = "Let me try 3 × 8 once more, and see. "
	reply := strings.Repeat(sentence, tokens/len(sentence)+1)[:tokens]
	s := segment("long", int64(index), reply)
	for range s.Actions {
		s.Advantages = append(s.Advantages, .5)
	}
	return transcript.Episode{Index: index, Outcome: "Usable", Reward: 1, StopReason: "stop", Turns: 1,
		SampledTokens: int64(tokens), Conversations: []transcript.Conversation{{Messages: []transcript.Message{
			{Role: "user", Text: "make 24"}, {Role: "assistant", Text: strings.ToValidUTF8(reply, ""), Reply: 1}},
			Segments: []transcript.Segment{s}}}}
}
