// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// average is the mean of the values that were added.
type average struct {
	sum   float64
	count int
}

func (a *average) add(v float64) {
	a.sum += v
	a.count++
}

// played sums up episodes, or trajectories.
type played struct {
	reward average
	stops  map[string]int
	// trained counts those that have segments, and segments their segments.
	trained, segments int
}

// add adds an episode or a trajectory that was stopped for a reason, which may be empty.
func (p *played) add(reward float64, stop string, segments int) {
	p.reward.add(reward)
	if stop != "" {
		p.stops[stop]++
	}
	if segments > 0 {
		p.trained++
		p.segments += segments
	}
}

// tally sums up the episodes of groups in their order.
type tally struct {
	// played has the episodes that count. Its stop reasons include those of the limited episodes, which a limit left
	// out.
	played
	limited int

	// members of all groups, and the members that faults or the deadline left out.
	members, faulted, late int
	// fractions counts the groups whose episodes count.
	fractions                    fractions
	episodes, turns              int
	actionTokens, observedTokens int64
	named                        map[string]*average
	// answers counts the kinds of answers of the episodes whose environment reports them, and answerable counts these
	// episodes.
	answers    map[string]int
	answerable int
}

func newTally() *tally {
	return &tally{played: played{stops: map[string]int{}}, named: map[string]*average{}, answers: map[string]int{}}
}

func (t *tally) add(g rl.Group) {
	for _, m := range g.Members {
		t.members++
		switch m.Outcome {
		case rl.EnvironmentFault, rl.JudgeFault:
			t.faulted++
		case rl.Deadline:
			t.late++
			if m.StopReason != "" {
				t.limited++
				t.stops[m.StopReason]++
			}
		}
	}
	members := g.UsableMembers()
	if len(members) == 0 {
		return
	}
	rewards := make([]float64, len(members))
	for i, m := range members {
		rewards[i] = m.Reward
		t.addMember(m)
	}
	t.fractions.add(rewards)
}

// fractions counts groups as mixed, or as good or bad throughout.
type fractions struct{ groups, mixed, good, bad int }

// add counts a group with these rewards.
func (f *fractions) add(rewards []float64) {
	f.groups++
	for _, reward := range rewards {
		if reward != rewards[0] {
			f.mixed++
			return
		}
	}
	if rewards[0] >= 0.5 {
		f.good++
		return
	}
	f.bad++
}

func (f *fractions) write(out map[string]float64, prefix string) {
	if f.groups == 0 {
		return
	}
	out[prefix+"by_group/frac_mixed"] = float64(f.mixed) / float64(f.groups)
	out[prefix+"by_group/frac_all_good"] = float64(f.good) / float64(f.groups)
	out[prefix+"by_group/frac_all_bad"] = float64(f.bad) / float64(f.groups)
}

func (t *tally) addMember(m rl.Member) {
	t.episodes++
	t.turns += m.Turns
	t.played.add(m.Reward, m.StopReason, segmentsOf(m))
	t.actionTokens += m.SampledTokens
	t.observedTokens += m.PromptTokens
	eachNamed(m, t.addNamed)
	if answer := answerOf(m); answer != "" {
		t.answers[answer]++
		t.answerable++
	}
}

func (t *tally) addNamed(name string, v float64) {
	if !finite.Is(v) {
		return
	}
	if t.named[name] == nil {
		t.named[name] = &average{}
	}
	t.named[name].add(v)
}

// segmentsOf counts the sequences to train on.
func segmentsOf(m rl.Member) int {
	n := 0
	for _, trajectory := range m.Trajectories {
		n += len(trajectory.Segments)
	}
	return n
}

// answerOf classifies the answer to a question: correct, wrong, truncated (no answer, since the token limit cut the
// reply) or none. It is empty if the environment does not say.
func answerOf(m rl.Member) string {
	correct, ok := m.Metrics[MetricCorrect]
	if !ok {
		return ""
	}
	answered, said := m.Metrics[MetricAnswered]
	switch {
	case correct >= 0.5:
		return "correct"
	case said && answered >= 0.5:
		return "wrong"
	case m.Metrics[MetricTruncated] >= 0.5:
		return "truncated"
	case said:
		return "none"
	default:
		return "wrong"
	}
}

// metrics returns the tally by name. The fixed names take precedence over the names that an environment chose.
func (t *tally) metrics() map[string]float64 {
	out := map[string]float64{}
	for name, a := range t.named {
		out[name] = a.sum / float64(a.count)
	}
	for reason, n := range t.stops {
		out["stop/"+reason] = float64(n) / float64(t.episodes+t.limited)
	}
	for _, answer := range []string{"correct", "wrong", "none", "truncated"} {
		if t.answerable > 0 {
			out["answer/"+answer] = float64(t.answers[answer]) / float64(t.answerable)
		}
	}
	t.counts(out)
	t.means(out)
	return out
}

func (t *tally) counts(out map[string]float64) {
	out["total_episodes"] = float64(t.episodes)
	out["total_turns"] = float64(t.turns)
	out["total_ac_tokens"] = float64(t.actionTokens)
	out["total_ob_tokens"] = float64(t.observedTokens)
	if t.members > 0 {
		out["fault_ratio"] = float64(t.faulted) / float64(t.members)
		out["deadline_ratio"] = float64(t.late) / float64(t.members)
	}
}

func (t *tally) means(out map[string]float64) {
	if t.turns > 0 {
		out["ac_tokens_per_turn"] = float64(t.actionTokens) / float64(t.turns)
		out["ob_tokens_per_turn"] = float64(t.observedTokens) / float64(t.turns)
	}
	if t.episodes > 0 {
		out["turns_per_episode"] = float64(t.turns) / float64(t.episodes)
		out[metricReward] = t.reward.sum / float64(t.reward.count)
	}
	if t.trained > 0 {
		out["segments_per_episode"] = float64(t.segments) / float64(t.trained)
	}
	t.fractions.write(out, "")
}
