// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"github.com/tinker-operator/tinker-operator/test/model/adapter"
	"github.com/tinker-operator/tinker-operator/test/model/agents"
	"github.com/tinker-operator/tinker-operator/test/model/conversations"
	"github.com/tinker-operator/tinker-operator/test/model/engine"
	"github.com/tinker-operator/tinker-operator/test/model/manager"
	"github.com/tinker-operator/tinker-operator/test/model/sampling"
	"github.com/tinker-operator/tinker-operator/test/model/spending"
	"github.com/tinker-operator/tinker-operator/test/model/suspects"
	"github.com/tinker-operator/tinker-operator/test/model/wire"
)

// exploring returns the exploration of a model.
func exploring[S any](model engine.Model[S]) func(maxStates int) engine.Result {
	return func(maxStates int) engine.Result {
		return engine.Explore(model, engine.Options{MaxStates: maxStates})
	}
}

func samplingScenarios() []Scenario {
	of := func(name, note string, change func(*sampling.Config)) Scenario {
		config := sampling.Config{LostReplies: 1, LostFutures: 1, Crashes: 1, PostInID: true, LearnerHeartbeat: true}
		change(&config)
		return Scenario{Name: "sampling/" + name, Note: note, Run: exploring(sampling.New(config))}
	}
	return []Scenario{
		of("protocol", "the seed has what is asked, slot, member and try; the number adds a post counter",
			func(*sampling.Config) {}),
		of("environment-fault", "", func(c *sampling.Config) { c.EnvironmentFaults = 1 }),
		of("first-version same-id", "a lost future is asked for again under its id",
			func(c *sampling.Config) { c.PostInID = false }),
		of("first-version try", "a lost future raises the try",
			func(c *sampling.Config) { c.PostInID, c.TryOnLoss = false, true }),
		of("try-on-crash", "a lease given to another worker raises the try",
			func(c *sampling.Config) { c.TryOnCrash = true }),
		of("first-version session", "only workers send heartbeats of the session",
			func(c *sampling.Config) { c.LearnerHeartbeat = false }),
	}
}

// conversationsScenarios explores a program that asks in several conversations at once.
func conversationsScenarios() []Scenario {
	of := func(name, note string, change func(*conversations.Config)) Scenario {
		config := conversations.Config{Conversation: true, Prompt: true, Repeat: true, WorkerDeaths: 2, LearnerDeaths: 1,
			LostFutures: 1}
		change(&config)
		return Scenario{Name: "conversations/" + name, Note: note, Run: exploring(conversations.New(config))}
	}
	return []Scenario{
		of("protocol", "a request is what it asks, in its conversation, and how often that has asked the same",
			func(*conversations.Config) {}),
		of("limit", "the limit of requests leaves out a member of several conversations",
			func(c *conversations.Config) { c.Requests = 3 }),
		of("by arrival", "requests of an episode are numbered as they come",
			func(c *conversations.Config) { c.ByArrival = true }),
		of("minus conversation", "equal requests of an episode are numbered as they come",
			func(c *conversations.Config) { c.Conversation = false }),
		of("minus prompt", "what is asked is no part of the number",
			func(c *conversations.Config) { c.Prompt = false }),
		of("minus repeat", "a request that is made twice has one number",
			func(c *conversations.Config) { c.Repeat = false }),
		of("by worker", "the requests of each worker have numbers of their own",
			func(c *conversations.Config) { c.ByWorker = true }),
		of("minus one open", "a conversation has two open requests",
			func(c *conversations.Config) { c.TwoOpen = true }),
		of("minus left out", "the limit of requests keeps what the conversations have",
			func(c *conversations.Config) { c.Requests, c.KeepLimited = 3, true }),
		of("minus order of keys", "a member's stop reason is that of the reply that came last",
			func(c *conversations.Config) { c.StopOfLast = true }),
	}
}

func wireScenarios() []Scenario {
	of := func(name, note string, change func(*wire.Config)) Scenario {
		config := wire.Config{
			Dedupe: true, LostAnswers: 1, LostSubmits: 1, Refusals: 1, Failures: 1, LostReplies: 1, Restarts: 1,
		}
		change(&config)
		return Scenario{Name: "wire/" + name, Note: note, Run: exploring(wire.New(config))}
	}
	return []Scenario{
		of("protocol", "fb+optim together, save after clean replies", func(*wire.Config) {}),
		of("ahead", "and the next step submitted right behind the save", func(c *wire.Config) { c.Ahead = true }),
		of("await", "optim only after clean fb replies", func(c *wire.Config) { c.Await = true }),
		of("piped", "save behind optim_step", func(c *wire.Config) { c.Piped = true }),
		of("await+piped", "optim after clean fb, save behind optim", func(c *wire.Config) { c.Await, c.Piped = true, true }),
		of("no-dedupe", "server repeats a repeated request", func(c *wire.Config) { c.Dedupe = false }),
		of("new-number", "a lost submit is sent under a new number", func(c *wire.Config) { c.NewNumber = true }),
		of("reuse-number", "a refused submit's number is used again", func(c *wire.Config) { c.ReuseNumber = true }),
		of("continue", "continues after an unclean forward_backward", func(c *wire.Config) { c.Continue = true }),
		of("resurrect", "a restarted server has the model as last saved", func(c *wire.Config) { c.Resurrect = true }),
		of("reuse-request-id", "a restarted server counts request ids from the start",
			func(c *wire.Config) { c.ReuseRequestIDs = true }),
		of("arrival", "server executes by arrival", func(c *wire.Config) { c.ByArrival = true }),
	}
}

func managerScenarios() []Scenario {
	of := func(name, note string, change func(*manager.Config)) Scenario {
		config := manager.Config{Verdict: true, Restarts: 2, Crashes: 1, LiveGet: true, Lock: true}
		change(&config)
		return Scenario{Name: "manager/" + name, Note: note, Run: exploring(manager.New(config))}
	}
	return []Scenario{
		of("first-version", "a missing Job in the cache is a lost attempt",
			func(c *manager.Config) { c.LiveGet, c.Lock = false, false }),
		of("live-get", "a missing Job is looked up first", func(c *manager.Config) { c.Lock = false }),
		of("protocol", "live look-up, status write with resource version", func(*manager.Config) {}),
		of("protocol job-deleted", "", func(c *manager.Config) { c.DeletedJobs = 1 }),
		of("protocol delayed-create", "a dead manager's create arrives later", func(c *manager.Config) { c.LateCreates = 1 }),
		of("protocol node-lost", "", func(c *manager.Config) { c.LostNodes = 1 }),
		of("no-lock late-write", "a dead manager's status write arrives later",
			func(c *manager.Config) { c.Lock, c.LateWrites = false, 1 }),
		of("protocol late-write", "", func(c *manager.Config) { c.LateWrites = 1 }),
		of("job-first", "Job before status", func(c *manager.Config) { c.JobFirst = true }),
		of("protocol job-suspended", "a Job that another controller suspends is waited for",
			func(c *manager.Config) { c.Hold, c.Suspends = true, 1 }),
		of("minus hold", "a Job that another controller suspends is replaced at once",
			func(c *manager.Config) { c.Suspends = 1 }),
		of("recreate", "a missing Job is created again under its number",
			func(c *manager.Config) { c.Recreate, c.DeletedJobs = true, 1 }),
		of("protocol more-steps", "a run is given more steps, also when it is complete",
			func(c *manager.Config) { c.Continue, c.Raises = true, 2 }),
		of("protocol more-steps job-deleted", "",
			func(c *manager.Config) { c.Continue, c.Raises, c.DeletedJobs = true, 1, 1 }),
		of("minus continue", "what a learner has made is all that there is", func(c *manager.Config) { c.Raises = 1 }),
		of("no-lock more-steps", "the end is written although the spec has changed",
			func(c *manager.Config) { c.Lock, c.Continue, c.Raises = false, true, 1 }),
	}
}

// adapterScenarios explores a server that samples in the adapter that trains.
func adapterScenarios() []Scenario {
	of := func(name, note string, change func(*adapter.Config)) Scenario {
		config := adapter.Config{Acknowledge: true, ReportUnanswered: true, Unload: true, LostWorkers: 1, Deadlines: 1,
			Crashes: 1}
		change(&config)
		return Scenario{Name: "adapter/" + name, Note: note, Run: exploring(adapter.New(config))}
	}
	return []Scenario{
		of("protocol", "a model that may still be sampled is replaced", func(*adapter.Config) {}),
		of("two lost workers", "", func(c *adapter.Config) { c.LostWorkers, c.Deadlines = 2, 0 }),
		of("loaded", "the model that is replaced stays loaded", func(c *adapter.Config) { c.Unload = false }),
		of("minus acknowledge", "a model is trained whoever may sample it",
			func(c *adapter.Config) { c.Acknowledge, c.Deadlines, c.Crashes = false, 0, 0 }),
		of("minus report", "workers do not report the samples that they give up",
			func(c *adapter.Config) { c.ReportUnanswered, c.LostWorkers, c.Crashes = false, 0, 0 }),
		of("by-index", "the next model takes over the adapter and with it the samples of the one before",
			func(c *adapter.Config) { c.ByIndex, c.Deadlines, c.Crashes = true, 0, 0 }),
	}
}

// suspectsScenarios explores a reply that ends each worker that plays it.
func suspectsScenarios() []Scenario {
	of := func(name, note string, change func(*suspects.Config)) Scenario {
		config := suspects.Config{
			Deaths: 1, SuspectAfter: 2, FaultAfter: 2, Permits: true, Suspect: true,
		}
		change(&config)
		return Scenario{Name: "suspects/" + name, Note: note, Run: exploring(suspects.New(config))}
	}
	return []Scenario{
		of("protocol", "two deaths make a suspect, which is played alone; two deaths alone make a fault",
			func(*suspects.Config) {}),
		of("two deaths", "two deaths for other reasons while the same member is alone in play",
			func(c *suspects.Config) { c.Deaths = 2 }),
		of("cut off", "a worker is cut off, and comes back", func(c *suspects.Config) { c.Deaths, c.Silences = 0, 1 }),
		of("minus permits undisturbed", "and no worker dies for other reasons",
			func(c *suspects.Config) { c.Permits, c.Deaths = false, 0 }),
		of("minus suspects", "each group is leased as if nothing had happened",
			func(c *suspects.Config) { c.Suspect = false }),
		of("minus permits", "the next member begins before the learner knows of it",
			func(c *suspects.Config) { c.Permits = false }),
		of("minus alone", "other groups are played beside a suspect", func(c *suspects.Config) { c.Beside = true }),
		of("minus second death", "one death alone makes a fault", func(c *suspects.Config) { c.FaultAfter = 1 }),
		of("first death", "one death makes a suspect", func(c *suspects.Config) { c.SuspectAfter = 1 }),
	}
}

// spendingScenarios explores learners that are replaced while they run.
func spendingScenarios() []Scenario {
	of := func(name, note string, change func(*spending.Config)) Scenario {
		config := spending.Config{Grant: true, Look: true, ClaimFirst: true}
		change(&config)
		return Scenario{Name: "spending/" + name, Note: note, Run: exploring(spending.New(config))}
	}
	return []Scenario{
		of("protocol", "record, then look, then send; claim, then read", func(*spending.Config) {}),
		of("minus grant", "a request is recorded once it is answered", func(c *spending.Config) { c.Grant = false }),
		of("minus look", "a replaced learner goes on", func(c *spending.Config) { c.Look = false }),
		of("look first", "look, then record, then send", func(c *spending.Config) { c.Look, c.LookFirst = false, true }),
		of("read first", "read, then claim", func(c *spending.Config) { c.ClaimFirst = false }),
	}
}

// agentsScenarios explores an agent whose requests do not say which conversation they continue.
func agentsScenarios() []Scenario {
	of := func(name, note string, change func(*agents.Config)) Scenario {
		config := agents.Config{Repeat: true, Adopt: true, ByDigest: true, PlayAgain: true, Leaves: 2, Outages: 1,
			WorkerDeaths: 1}
		change(&config)
		return Scenario{Name: "agents/" + name, Note: note, Run: exploring(agents.New(config))}
	}
	equal := func(c *agents.Config) { c.Equal = true }
	return []Scenario{
		of("protocol", "two parts at once; clients leave, come back and give up; the worker dies", func(*agents.Config) {}),
		of("protocol equal", "parts that begin with the same prompt", equal),
		of("minus repeat", "equal requests have one sample", func(c *agents.Config) { c.Equal, c.Repeat = true, false }),
		of("minus adopt", "a client that asks again makes another request", func(c *agents.Config) {
			c.Adopt, c.Leaves = false, 1
		}),
		of("adopt open", "equal requests of open connections are one", func(c *agents.Config) {
			c.Equal, c.AdoptOpen = true, true
		}),
		of("minus digest", "branches are numbered as they begin", func(c *agents.Config) { c.ByDigest = false }),
		of("minus again", "an episode whose agent gave up is trained on", func(c *agents.Config) { c.PlayAgain = false }),
		of("next try", "an episode whose agent gave up is tried again", func(c *agents.Config) { c.NextTry = true }),
	}
}
