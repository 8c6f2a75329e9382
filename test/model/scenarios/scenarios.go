// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/test/model/engine"
	"github.com/tinker-operator/tinker-operator/test/model/protocol"
)

// Scenario is a named exploration.
type Scenario struct {
	Name, Note string
	// Run explores at most maxStates states.
	Run func(maxStates int) engine.Result
	// Big scenarios take minutes together, not seconds.
	Big bool
}

// Compare returns the differences between a result and its record, or an empty string.
func (sc Scenario) Compare(r engine.Result) string {
	broken := map[engine.Code]bool{}
	for _, f := range r.Findings {
		broken[f.Code] = true
	}
	var differences []string
	for _, code := range recorded[sc.Name] {
		if !broken[code] {
			differences = append(differences, fmt.Sprintf("code %d was broken and holds now", code))
		}
		delete(broken, code)
	}
	for code := range broken {
		differences = append(differences, fmt.Sprintf("code %d held and is broken now", code))
	}
	if !r.Complete {
		differences = append(differences, "the exploration is incomplete")
	}
	return strings.Join(differences, "; ")
}

// All returns all scenarios.
func All() []Scenario {
	return slices.Concat(
		firstVersion(), protocolAsItIs(), minusOneClause(), refill(), alternatives(), noStore(), unload(), expiry(),
		managerRecord(), capacity(), baseRecord(), recordOfModels(), twoFaults(), big(), cost(), wireScenarios(),
		managerScenarios(), samplingScenarios(), conversationsScenarios(), agentsScenarios(), credentialsScenarios(),
		adapterScenarios(),
		suspectsScenarios(), spendingScenarios(),
	)
}

// Unknown lists the recorded names that no scenario has.
func Unknown() []string {
	known := map[string]bool{}
	for _, sc := range All() {
		known[sc.Name] = true
	}
	var unknown []string
	for name := range recorded {
		if !known[name] {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// change changes a configuration.
type change func(*protocol.Config)

// asFirstWritten is the protocol as it was when this model was made.
func asFirstWritten() protocol.Config {
	return protocol.Config{
		Steps: 2, BatchSize: 1, Workers: 2, Slots: 3, Attempts: 3, Save: protocol.SavePiped, Row: protocol.RowAfter,
		Fence: protocol.FenceNone, Order: protocol.OrderName, Refill: protocol.RefillAny, Retention: protocol.RetainNewest,
		KnowParents: true, SessionByVersion: true,
	}
}

// asItIs is the protocol as docs/design.md describes it.
func asItIs() protocol.Config {
	return protocol.Config{
		Steps: 2, BatchSize: 1, Workers: 2, Slots: 3, Attempts: 3, Save: protocol.SaveClean, Row: protocol.RowAhead,
		Fence: protocol.FenceClaim, Order: protocol.OrderAttempt, Refill: protocol.RefillCertain,
		Retention: protocol.RetainWindow, KnowParents: true, RunFilter: true, SaveOpening: true, AnnounceEarly: true,
		KeepForEvaluation: true, Spare: 1,
	}
}

// only restricts the check to some invariants; without any, only liveness is checked.
func only(codes ...engine.Code) change {
	return func(c *protocol.Config) {
		c.Only = map[engine.Code]bool{}
		for _, code := range codes {
			c.Only[code] = true
		}
	}
}

// scenario explores a configuration of the protocol after some changes.
func scenario(name, note string, config protocol.Config, changes ...change) Scenario {
	for _, change := range changes {
		change(&config)
	}
	return Scenario{Name: name, Note: note, Run: func(maxStates int) engine.Result {
		model := protocol.New(config)
		result := engine.Explore(model, engine.Options{MaxStates: maxStates})
		if config.CountCost {
			costs := model.Costs()
			result.Note = fmt.Sprintf("most bought twice %d, most discarded %d, most bought for a superseded learner %d",
				costs.BoughtTwice, costs.Discarded, costs.BoughtSuperseded)
		}
		if config.EnvironmentFaults > 0 {
			result.Note += fmt.Sprintf(" %d possible outcomes", model.Outcomes())
		}
		return result
	}}
}

// changed explores the protocol as it is after some changes.
func changed(name, note string, changes ...change) Scenario {
	return scenario(name, note, asItIs(), changes...)
}

// lag1 makes the run three steps long, with a lag of one step.
func lag1(c *protocol.Config) { c.Steps, c.Lag, c.Slots = 3, 1, 4 }

func oneWorker(c *protocol.Config) { c.Workers = 1 }

func twoAttempts(c *protocol.Config) { c.Attempts = 2 }

// trainAhead submits the next step while the save of the state has no reply.
func trainAhead(c *protocol.Config) { c.TrainAhead = true }

// noClaims is the protocol without an artifact store: order by attempt, and the opening state.
func noClaims(c *protocol.Config) { c.Fence = protocol.FenceNone }

// faults are the kinds of faults.
var faults = []struct {
	name   string
	change change
}{
	{"crash", func(*protocol.Config) {}},
	{"worker", func(c *protocol.Config) { c.WorkerCrashes = 2 }},
	{"fail", func(c *protocol.Config) { c.Failures = 1 }},
	{"environment-fault", func(c *protocol.Config) { c.EnvironmentFaults, c.WorkerCrashes = 1, 1 }},
	{"second-learner", func(c *protocol.Config) { c.SecondLearners = 1 }},
	{"sampler-expiry", func(c *protocol.Config) { c.SamplerExpiries, c.WorkerCrashes = 1, 1 }},
	{"server-restart", func(c *protocol.Config) { c.Restarts = 1 }},
	{"suspend", func(c *protocol.Config) { c.Suspensions = 1 }},
}

// underEachFault explores the protocol after some changes under every kind of fault.
func underEachFault(prefix string, changes ...change) []Scenario {
	var all []Scenario
	for _, fault := range faults {
		all = append(all, changed(prefix+fault.name, "", append([]change{fault.change}, changes...)...))
	}
	return all
}
