// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// exchangeWorker is the worker as the exchange sees it. Its methods are called one at a time.
type exchangeWorker struct {
	worker *Worker
	// fail ends the worker with an error.
	fail func(error)
	// reportedStored and reportedPlaying are the groups that the last Hello listed.
	reportedStored, reportedPlaying map[rl.Key]bool
	attempt                         int32
}

var _ exchange.Worker = (*exchangeWorker)(nil)

// Hello implements exchange.Worker.
func (a *exchangeWorker) Hello() exchange.HelloRequest {
	w := a.worker
	// The groups in progress are listed first: a group that ends in between is in both lists, never in neither.
	playing := w.active.hello()
	stored := w.groups.List()
	a.reportedStored, a.reportedPlaying = map[rl.Key]bool{}, map[rl.Key]bool{}
	for _, group := range stored {
		a.reportedStored[group.Key] = true
	}
	for _, key := range playing {
		a.reportedPlaying[key] = true
	}
	request := exchange.HelloRequest{Stored: stored, Playing: playing}
	w.config.Spending.hello(&request)
	return request
}

// HandleHello implements exchange.Worker.
func (a *exchangeWorker) HandleHello(reply exchange.HelloReply) {
	w := a.worker
	if attempt := w.config.Learner.Attempt(); attempt != a.attempt {
		w.config.Logger.Info("connected to a learner", "attempt", attempt, "stored", len(a.reportedStored),
			"wanted", len(reply.Wanted), "playing", len(a.reportedPlaying), "kept", len(reply.Keep))
		a.attempt = attempt
		w.groups.ForgetTaken()
	}
	if err := w.setPlay(reply.Play); err != nil {
		a.fail(err)
		return
	}
	w.sessions.use(reply.Session)
	kept := map[rl.Key]bool{}
	for _, lease := range reply.Keep {
		kept[lease.Key] = true
		delete(a.reportedPlaying, lease.Key)
		w.active.renew(lease)
	}
	w.active.stop(slices.Collect(maps.Keys(a.reportedPlaying)))
	// Groups that were reported and are neither wanted nor leased need not be sent; groups that ended since the Hello
	// still must be. A learner that does not receive a requested group within a minute does not ask again, and waits for
	// the group as long as it is in progress.
	w.submitter.outbox.remove(func(key rl.Key) bool { return a.reportedStored[key] && !kept[key] })
	a.submitWanted(reply.Wanted)
	w.cover(reply.CoveredIndex, nil)
	w.ready.Store(true)
}

// Renewal implements exchange.Worker.
func (a *exchangeWorker) Renewal() exchange.Renewal {
	w := a.worker
	throttled, queue := w.config.Pressure.take()
	state := &exchange.WorkerState{
		Throttled: int32(throttled), QueueState: queue, CallProblem: w.built.calls.Problem(),
	}
	state.Unavailable, state.UnavailableCodes = w.health.Problems()
	if p := w.config.Pressure.problem(); p.Code != "" {
		state.EndpointProblem = &exchange.EndpointProblem{
			Code: string(p.Code), Op: p.Op, Status: int32(p.Status), Evidence: p.Evidence,
		}
	}
	w.config.Data.report(state)
	for _, found := range []problem.Problem{
		w.config.Judges.reported(),
		{Code: problem.UnsupportedByFormat, Evidence: w.active.formatProblem()},
	} {
		if found.Evidence != "" {
			state.Problems = append(state.Problems, &exchange.Problem{Code: string(found.Code), Evidence: found.Evidence})
		}
	}
	renewal := exchange.Renewal{State: state}
	w.config.Spending.report(&renewal, w.active.list())
	return renewal
}

// HandleDirective implements exchange.Worker.
func (a *exchangeWorker) HandleDirective(directive exchange.Directive) {
	w := a.worker
	// An accepted group is revoked as well if the last renewal listed it. Its revocation stops nothing.
	if stopped := slices.DeleteFunc(w.active.stop(directive.Revoked), w.isStored); len(stopped) > 0 {
		w.config.Logger.Info("leases were revoked", "count", len(stopped))
	}
	w.setCredits(directive.Credits)
	w.config.Data.permit(directive.Download)
	w.active.permit(directive.Permits)
	w.health.Skip(directive.Skipped)
	w.sessions.use(directive.Session)
	w.cover(directive.CoveredIndex, directive.CoveredEvaluations)
	for _, rejected := range directive.Rejected {
		a.reject(rejected)
	}
	a.submitWanted(directive.Wanted)
}

// submitWanted queues groups that are stored. It releases groups that are neither stored nor in progress: they were
// dropped, or lost with a damaged file.
func (a *exchangeWorker) submitWanted(keys []rl.Key) {
	var missing []rl.Key
	for _, key := range keys {
		if a.worker.isStored(key) {
			a.worker.submitter.outbox.add(key)
			continue
		}
		if a.worker.active.get(key) == nil {
			missing = append(missing, key)
		}
	}
	if len(missing) > 0 {
		a.worker.config.Logger.Warn("groups that the learner wants are not stored any more", "count", len(missing), "lowest",
			missing[0].Slot)
		a.worker.release(missing, exchange.Drained)
	}
}

// reject makes a tombstone of a group that the learner found to be untrainable.
func (a *exchangeWorker) reject(rejected exchange.RejectedGroup) {
	stored, ok := a.worker.groups.Lookup(rejected.Key)
	if !ok || stored.Outcome == rejected.Outcome {
		return
	}
	a.worker.submitter.reject(rejected.Key, rejected.Outcome, rejected.Reason)
	a.worker.groups.Offered(rejected.Key, true)
}
