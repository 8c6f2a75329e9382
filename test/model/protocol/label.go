// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/test/model/engine"
)

// The kinds of transitions.
const (
	attemptStarted uint8 = iota
	learnerCrashed
	claimWritten
	modelsUnloaded
	listed
	loaded
	openingSaved
	workerAttached
	groupFinished
	stepSubmitted
	repliesSeen
	rowWritten
	saveSubmitted
	saveExecuted
	saveAnswered
	claimLooked
	announced
	advanced
	groupsDropped
	stateDeleted
	stateExpired
	samplerExpired
	workerCrashed
	heartbeat
	samplerRemade
	verdictReported
	suspended
	serverRestarted
	abandonedSaveExecuted
	versionMissing
	initialExpired
	evaluated
	groupGivenUp
	recordRead
	modelRecorded
)

// The server's results for a step.
const (
	allDone uint8 = iota + 1
	replyLost
	chunkFailed
)

// Label implements engine.Model.
func (m *Model) Label(act engine.Act, from, to *State) string {
	switch act.Kind {
	case workerAttached, groupFinished, groupsDropped, workerCrashed, groupGivenUp:
		return m.labelWorker(act, from)
	case attemptStarted, saveExecuted, abandonedSaveExecuted, stateExpired, initialExpired, samplerExpired, heartbeat,
		suspended,
		serverRestarted:
		return m.labelServer(act, to)
	case claimWritten, modelsUnloaded, listed, loaded, openingSaved, versionMissing, learnerCrashed,
		recordRead, modelRecorded:
		return m.labelOpening(act, from)
	}
	return m.labelStep(act, from, to)
}

func (m *Model) labelWorker(act engine.Act, from *State) string {
	names := m.rules
	switch act.Kind {
	case workerAttached:
		return fmt.Sprintf("worker says Hello to learner %d, offers %s", act.B, names.storedNames(&from.Workers[act.A]))
	case groupFinished:
		return fmt.Sprintf("worker of learner %d finishes %s", act.B, names.groupName(act.C))
	case groupsDropped:
		return fmt.Sprintf("worker of learner %d drops %s below covered_index %d",
			act.B, names.storedNames(&from.Workers[act.A]), act.C)
	case workerCrashed:
		return "worker CRASHES, loses " + names.storedNames(&from.Workers[act.A])
	}
	return "a full worker releases " + names.groupName(act.B)
}

// labelServer labels the actions of manager and server.
func (m *Model) labelServer(act engine.Act, to *State) string {
	names := m.rules
	switch act.Kind {
	case attemptStarted:
		if act.B == 1 {
			return fmt.Sprintf("manager starts attempt %d while attempt %d still runs", act.A, act.A-1)
		}
		return fmt.Sprintf("manager starts attempt %d", act.A)
	case saveExecuted:
		return "server completes save of " + names.checkpointName(act.B)
	case abandonedSaveExecuted:
		return fmt.Sprintf("server completes save of %s (abandoned model)", names.checkpointName(act.B))
	case stateExpired:
		return "server EXPIRES " + names.checkpointName(act.A)
	case initialExpired:
		return "initFrom checkpoint EXPIRES"
	case samplerExpired:
		return fmt.Sprintf("server EXPIRES sampler of L%d", act.A)
	case heartbeat:
		return "heartbeat: manager's record = " + names.checkpointName(to.Reported)
	case suspended:
		return fmt.Sprintf("SUSPEND: learner %d drains, all workers end", act.A)
	}
	return "server RESTARTS: models and queues are lost"
}

// labelOpening labels the actions of an opening, crashes, and the loss of a model or version.
func (m *Model) labelOpening(act engine.Act, from *State) string {
	learner := fmt.Sprintf("learner %d", act.A)
	switch act.Kind {
	case learnerCrashed:
		return fmt.Sprintf("%s CRASHES (%s)", learner, phaseNames[from.Learners[act.A].Phase])
	case claimWritten:
		if m.rules.config.Fence == FenceUnload {
			return learner + " creates its model"
		}
		return learner + " writes its claim"
	case modelsUnloaded:
		return learner + " lists models, unloads those of lower attempts"
	case listed:
		return learner + " lists, chooses " + m.rules.checkpointName(act.B)
	case loaded:
		return learner + []string{" loads " + m.rules.checkpointName(act.C), ": base is missing, lists again",
			": its model is missing, starts over"}[act.B]
	case recordRead:
		return learner + " reads which models are recorded"
	case modelRecorded:
		return learner + " records its model"
	case openingSaved:
		return learner + ": opening state is saved"
	}
	return learner + []string{": its model is missing, starts over", ": a version is lost for good, lists again",
		": a version is lost for good, takes the next newer one"}[act.B]
}

// labelStep labels a step and its commit.
func (m *Model) labelStep(act engine.Act, from, to *State) string {
	learner := fmt.Sprintf("learner %d", act.A)
	before, after := &from.Learners[act.A], &to.Learners[act.A]
	switch act.Kind {
	case stepSubmitted:
		return learner + m.labelTraining(act, before, after)
	case repliesSeen:
		return learner + []string{": replies are clean", " learns the step is not clean, throws its model away"}[act.B-1]
	case rowWritten:
		if (act.B == 1) == (m.rules.config.Row == RowAfter) {
			return fmt.Sprintf("%s writes the row of L%d", learner, before.NextLineage)
		}
		return learner + " continues"
	case saveSubmitted:
		return learner + " submits save_state " + m.rules.checkpointName(after.Pending)
	case saveAnswered:
		return learner + []string{": save is clean", ": REPLY of the save is LOST, throws its model away"}[act.B]
	case claimLooked:
		return learner + []string{" sees no higher claim", " sees a higher claim and stops"}[act.B]
	case announced:
		return fmt.Sprintf("%s publishes sampler of L%d", learner, before.NextLineage)
	case advanced:
		return fmt.Sprintf("%s is at step %d, covered_index %d", learner, after.Step, after.Covered)
	case stateDeleted:
		return learner + " deletes " + m.rules.checkpointName(act.B)
	case samplerRemade:
		return fmt.Sprintf("%s makes the sampler of L%d again", learner, act.B)
	case verdictReported:
		return learner + " reports " + m.rules.lineageName(before.Lineages[0])
	case evaluated:
		return fmt.Sprintf("%s: evaluation row of L%d is durable", learner, act.B)
	}
	return "?"
}

func (m *Model) labelTraining(act engine.Act, before, after *Learner) string {
	piped := ""
	if m.rules.config.Save == SavePiped {
		piped = " + save_state " + m.rules.checkpointName(after.Pending)
	}
	outcome := map[uint8]string{
		allDone: "all done", replyLost: "all done, a REPLY IS LOST",
		chunkFailed: "ONE CHUNK FAILS, optim_step applies the rest",
	}[act.C]
	step := before.Step
	if after.Ahead != before.Ahead {
		step++
	}
	return fmt.Sprintf(" submits step %d: fb+optim%s -> %s; server: %s", step, piped, m.rules.lineageName(act.B), outcome)
}
