// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import "github.com/tinker-operator/tinker-operator/internal/rl"

// roleKey names the metrics of a role in an environment.
type roleKey struct{ environment, role string }

// roleTally sums up the trajectories of one role.
type roleTally struct {
	played
	// fractions counts the groups that the role's trajectories form in each slot.
	fractions fractions
}

// roleMetrics measures the roles of groups: env/all/<role>/... and env/<name>/<role>/.... It returns nothing if the
// only role has no name.
func roleMetrics(prefix string, groups []rl.Group) map[string]float64 {
	tallies := map[roleKey]*roleTally{}
	for _, g := range groups {
		for role, trajectories := range byRoleName(g) {
			for _, environment := range environmentsOf(g) {
				key := roleKey{environment, role}
				if tallies[key] == nil {
					tallies[key] = &roleTally{played: played{stops: map[string]int{}}}
				}
				tallies[key].add(trajectories)
			}
		}
	}
	out := map[string]float64{}
	for key, t := range tallies {
		t.write(out, prefix+"env/"+key.environment+"/"+key.role+"/")
	}
	return out
}

// byRoleName returns the trajectories of a group's usable members by roles that have a name.
func byRoleName(g rl.Group) map[string][]rl.Trajectory {
	trajectories := map[string][]rl.Trajectory{}
	for _, m := range g.UsableMembers() {
		for _, t := range m.Trajectories {
			if t.Role != "" {
				trajectories[t.Role] = append(trajectories[t.Role], t)
			}
		}
	}
	return trajectories
}

func (t *roleTally) add(trajectories []rl.Trajectory) {
	rewards := make([]float64, len(trajectories))
	for i, trajectory := range trajectories {
		rewards[i] = trajectory.Reward
		t.played.add(trajectory.Reward, trajectory.StopReason, len(trajectory.Segments))
	}
	t.fractions.add(rewards)
}

func (t *roleTally) write(out map[string]float64, prefix string) {
	for reason, n := range t.stops {
		out[prefix+"stop/"+reason] = float64(n) / float64(t.reward.count)
	}
	out[prefix+"total_trajectories"] = float64(t.reward.count)
	out[prefix+metricReward] = t.reward.sum / float64(t.reward.count)
	if t.trained > 0 {
		out[prefix+"segments_per_trajectory"] = float64(t.segments) / float64(t.trained)
	}
	t.fractions.write(out, prefix)
}
