// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// rewardOf reads the reward that an agent reports: a number, or an object with the field reward. All other fields are
// metrics, such as correct, and so are the fields of an object metrics.
func rewardOf(text string) (environment.Turn, error) {
	var number float64
	if json.Unmarshal([]byte(text), &number) == nil {
		return earned(number, nil)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return environment.Turn{}, fault(fmt.Errorf("the result of the agent is no number and no object: %.200q", text))
	}
	var below map[string]json.RawMessage
	if json.Unmarshal(fields["metrics"], &below) == nil {
		delete(fields, "metrics")
		for name, value := range below {
			if _, taken := fields[name]; !taken { // No metric replaces the reward of the result.
				fields[name] = value
			}
		}
	}
	metrics := map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var isTrue bool
		switch {
		case json.Unmarshal(fields[name], &number) == nil && string(fields[name]) != "null":
			metrics[name] = number
		case name == verify.MetricCorrect && json.Unmarshal(fields[name], &isTrue) == nil:
			metrics[name] = 0
			if isTrue {
				metrics[name] = 1
			}
		default:
			return environment.Turn{}, fault(fmt.Errorf("%s of the result of the agent is no number: "+
				"%.100s", name, fields[name]))
		}
	}
	reward, ok := metrics["reward"]
	if !ok {
		return environment.Turn{}, fault(fmt.Errorf("the result of the agent has no reward: %.200q", text))
	}
	delete(metrics, "reward")
	return earned(reward, metrics)
}

func earned(reward float64, metrics map[string]float64) (environment.Turn, error) {
	if !finite.Is(reward) {
		return environment.Turn{}, fault(fmt.Errorf("the reward of the agent is %v", reward))
	}
	return environment.Turn{Done: true, Rewards: []environment.Reward{{Value: reward}}, Metrics: metrics}, nil
}
