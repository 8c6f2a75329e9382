// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
)

// formats records the environments whose prompts the model's format has expressed.
type formats struct {
	mu        sync.Mutex
	expressed map[string]bool
}

// groupFormat is the episode.Format of a group.
type groupFormat struct {
	formats     *formats
	environment string
	// trained says that the weights have been trained, on groups of the same environments.
	trained bool
}

// Expressed implements episode.Format.
func (g *groupFormat) Expressed() {
	g.formats.mu.Lock()
	defer g.formats.mu.Unlock()
	if g.formats.expressed == nil {
		g.formats.expressed = map[string]bool{}
	}
	g.formats.expressed[g.environment] = true
}

// Awaits implements episode.Format. An environment always waits if the format cannot declare its tools. It also waits
// if this worker has expressed none of its prompts, as long as the run's spec may still be changed; later its single
// tasks are left out.
func (g *groupFormat) Awaits(err *episode.FormatError) bool {
	g.formats.mu.Lock()
	defer g.formats.mu.Unlock()
	return err.Tools() || !g.trained && !g.formats.expressed[g.environment]
}

// isTrained reports whether a lease is for training with weights that have been trained. Weights of evaluations may
// come from another run, with other environments.
func isTrained(lease exchange.Lease) bool {
	name, err := rl.ParseCheckpointName(lease.Sampler[strings.LastIndexByte(lease.Sampler, '/')+1:])
	return lease.Key.Kind == rl.Train && err == nil && name.Step > 0
}

// formatProblem returns the problem of a group that waits because the model's format cannot express a prompt; it is
// empty if no group waits.
func (a *activeGroups) formatProblem() string {
	for _, key := range a.keys() {
		if group := a.get(key); group != nil {
			if problem := group.progress.FormatProblem(); problem != "" {
				return contract.Truncate(problem, maxDataProblem)
			}
		}
	}
	return ""
}

var _ episode.Format = (*groupFormat)(nil)
