// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/evaluation"
	"github.com/tinker-operator/tinker-operator/internal/learner/examples"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/learner/ledger"
	"github.com/tinker-operator/tinker-operator/internal/learner/opening"
	"github.com/tinker-operator/tinker-operator/internal/learner/preflight"
	"github.com/tinker-operator/tinker-operator/internal/learner/report"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// learner is one attempt: its parts, which have locks of their own, and the state of the loop, which belongs to the
// goroutine of the loop.
type learner struct {
	config  Config
	file    contract.RunFile
	client  *client.Client
	journal *artifacts.Journal
	// meter counts this learner's requests to the endpoint, and ledger adds up the spending of the run.
	meter     *client.Meter
	ledger    *ledger.Ledger
	book      *checkpoints.Book
	table     *leases.Table
	batches   batchSource      // nil for a run that only evaluates
	examples  *examples.Source // batches of a supervised run; nil for the others
	reader    *examples.Reader // rows of a supervised run, once they are read
	server    *exchange.Server
	status    *report.Status
	preflight *preflight.Checker
	factory   *trainee.Factory
	opener    *opening.Opener
	evaluator *evaluation.Evaluator
	spendings *spendings
	recorder  *recorder
	heldOut   *heldOut
	features  *featureChecker
	tracks    *tracks
	// rollouts keeps the session that groups are sampled in, and models the session of the models.
	rollouts, models *opening.SessionKeeper
	cancel           context.CancelCauseFunc
	// drain is closed when the manager asks for a stop at a saved state.
	drain     chan struct{}
	drainOnce sync.Once
	// giveUp is closed when a learner that drains does not wait for the artifact store any longer.
	giveUp chan struct{}
	tasks  sync.WaitGroup
	// background runs a task beside the loop until the learner ends.
	background func(task func(context.Context))
	retirer    *retirer
	repairs    preflight.RepairWait

	loop loopState
}

// loopState is the state of the loop.
type loopState struct {
	model *trainee.Model
	// at is the newest version that was announced, and saved the newest that is committed.
	at, saved checkpoints.Position
	// submitted is the newest step that was submitted to the model, and stored the newest whose state it has saved.
	submitted, stored int64
	suspect           trainee.Suspect
	// commit is the commit whose save is in flight; nil if there is none.
	commit *commit
	// divergence recognizes a policy that has diverged.
	divergence trainee.Detector
	// questions counts the questions to the endpoint about a version.
	questions atomic.Int64
	// capabilities are the known features of the endpoint.
	capabilities capability.Report
	// cold is set once a model of this attempt resumed from a state without its optimizer.
	cold bool
	// committed is the highest step that was committed. discarded counts the models that were discarded since the last
	// progress, and missing how often workers did not find sampler weights since then.
	committed          int64
	discarded, missing int
	// refused is the step whose settings or data the endpoint refused; nil otherwise. waits is set once the run waits for
	// a repair, so that refused is tried again before a batch.
	refused *trainee.Step
	waits   bool
	// begun is set once a first model was opened.
	begun bool
}

// addSaved adds a checkpoint that was saved just now to the book.
func (l *learner) addSaved(path string, name rl.CheckpointName, sampler bool) {
	l.book.AddSaved(path, name, sampler, l.config.Now())
}

// name returns the name of a checkpoint of the model.
func (l *learner) name(at checkpoints.Position) rl.CheckpointName {
	number := 0
	if l.loop.model != nil {
		number = l.loop.model.Number
	}
	return at.Name(l.file.Run.UID, l.file.Attempt, number)
}

// saveSampler saves the sampler weights of the version in the model.
func (l *learner) saveSampler(ctx context.Context, at checkpoints.Position) (string, error) {
	name, path := l.name(at), l.opener.GivenSampler()
	if path == "" {
		var err error
		if path, err = l.loop.model.SaveSampler(ctx, name); err != nil {
			return "", err
		}
	}
	l.addSaved(path, name, true)
	return path, nil
}

// report changes the progress in heartbeats, and brings the rest of it up to date.
func (l *learner) report(change func(*contract.Progress)) {
	spent := l.ledger.Spent()
	newest, best := l.book.List(l.loop.saved.Step)
	l.status.Update(func(p *contract.Progress) {
		saved := l.loop.saved
		p.Step, p.Cursor, p.Lineage = saved.Step, saved.Cursor, saved.Lineage.String()
		if l.file.Fixed.Algorithm != nil {
			p.Steps = l.file.Fixed.Algorithm.Steps
		}
		p.Usage, p.TrainingSeconds = spent.Usage, spent.Seconds
		p.SetCost(spent.Cost)
		p.Checkpoints, p.Best = newest, best
		p.WorkersSeen = len(l.table.Workers())
		change(p)
		p.Environments = report.Environments(l.file, p.Metrics)
	})
}

// fence stops the learner at once: a higher attempt has been started.
func (l *learner) fence(higher int32) {
	l.config.Logger.Warn("fenced by a higher attempt", "attempt", l.file.Attempt, "higher", higher)
	l.cancel(fmt.Errorf("attempt %d: %w: %d", l.file.Attempt, artifacts.ErrFenced, higher))
}
