// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
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
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

// grant records requests before they are sent, and then looks for a higher claim. A higher attempt writes its claim
// before it reads the record: either it knows of the requests, or this attempt sees the claim and sends none
// (test/model, spending).
func (l *learner) grant(ctx context.Context, record artifacts.Spending) error {
	err := l.journal.InsistOnSpending(ctx, record)
	if err == nil {
		err = l.journal.LookForClaim(ctx)
	}
	if errors.Is(err, artifacts.ErrFenced) {
		l.cancel(err)
	}
	return err
}

// prepare builds the parts; none of them calls the endpoint yet. Sessions are kept alive until ctx ends.
func (l *learner) prepare(ctx context.Context) error {
	var err error
	l.ledger = newLedger(l)
	l.meter = client.NewMeter(client.MeterConfig{Lifetime: ctx, Grant: l.ledger.Grant})
	l.client, err = client.New(client.Config{
		BaseURL: l.file.Fixed.BaseURL, APIKey: l.config.APIKey, UserAgent: l.config.UserAgent,
		HTTP: l.config.HTTP, Logger: l.config.Logger, Observe: l.status.Observe, Meter: l.meter,
		Session: sessionOf(l.file),
	})
	if err != nil {
		return preflight.Reject(problem.UnsupportedByEndpoint, "setting the endpoint up: %v", err)
	}
	l.book = newBook(l.file)
	l.recorder = &recorder{attempt: l.file.Attempt, status: l.status, book: l.book, now: l.config.Now}
	spec, err := json.Marshal(l.config.File)
	if err != nil {
		return fmt.Errorf("encoding run file: %w", err)
	}
	l.journal = artifacts.NewJournal(artifacts.Config{
		Dir: l.file.ArtifactsDir, URL: l.file.ArtifactsURL, OpenBucket: l.config.OpenBucket, Spec: spec,
		RunUID: l.file.Run.UID, Attempt: l.file.Attempt, Identity: l.config.Identity,
		Logger: l.config.Logger, Pause: l.config.Timing.StorePause, Slow: l.config.Timing.StoreSlow, GiveUp: l.giveUp,
		Committed: l.recorder.step,
		Blocked:   func(err error) { l.status.BlockBy(problem.ArtifactsBlocked, err) },
		Parent:    parents(l.book, rl.Genesis(l.file.SpecDigest)),
	})
	l.prepareRecords()
	l.preflight = newPreflight(l)
	if l.table, err = newTable(l.config, l.ledger); err == nil {
		err = l.prepareBatches()
	}
	if err != nil {
		return err
	}
	l.server, err = exchange.NewServer(exchange.ServerConfig{
		Epoch: &exchange.Epoch{
			RunUid: l.file.Run.UID, SpecDigest: l.file.SpecDigest, Attempt: l.file.Attempt, Version: int32(l.file.Version),
		},
		Credentials: l.config.Credentials, Handler: l.table.Handler(), Logger: l.config.Logger,
		Fenced: func(higher int32) { l.fence(higher) },
	})
	if err != nil {
		return fmt.Errorf("setting the exchange up: %w", err)
	}
	l.prepareModels(ctx)
	l.prepareEvaluator()
	if l.tracks, err = newTracks(l.file, l.config, l.journal, l.status); err == nil {
		l.recorder.tracker = l.tracks.tracker
	}
	return err
}

// newLedger returns the ledger of the run, which uses the learner's meter and journal once they exist.
func newLedger(l *learner) *ledger.Ledger {
	return ledger.New(ledger.Config{
		Own:     func() spending.Usage { return l.meter.Used() },
		Durable: func() bool { return l.journal.HasStore() },
		Write: func(ctx context.Context, record artifacts.Spending) error {
			return l.journal.WriteSpending(ctx, record)
		},
		Insist: l.grant,
		Prices: l.file.Prices,
	})
}

// prepareRecords prepares the parts that use the journal.
func (l *learner) prepareRecords() {
	l.recorder.journal = l.journal
	l.features = &featureChecker{file: l.file, client: l.client, book: l.book, journal: l.journal}
	l.spendings = &spendings{
		budget: l.file.Budget, ledger: l.ledger, journal: l.journal, status: l.status,
		logger: l.config.Logger,
	}
	l.heldOut = &heldOut{
		file: l.file, digest: digestOf(l.file), book: l.book, journal: l.journal, meter: l.meter, spendings: l.spendings,
		status: l.status, recorder: l.recorder,
	}
}

func newPreflight(l *learner) *preflight.Checker {
	config := preflight.Config{
		File: l.file, API: l.client, FeatureChecker: l.features, Hub: l.config.Hub,
		Blocked:         func(err error) { l.status.BlockBy(problem.TokenizerBlocked, err) },
		TemplateBlocked: func(why string) { l.status.Block(problem.TemplateUnusable, why) },
		ReadTemplate: func(ctx context.Context, model contract.Model) (contract.Template, error) {
			made, err := load.ForModel(ctx, l.config.Hub, model)
			if err != nil {
				return contract.Template{}, err
			}
			return *made.Template(), nil
		},
		CountSystem: l.countSystem,
		IsFinal:     func(err error) bool { return isFinal(err, false) },
		Pause:       l.config.Timing.wait, Logger: l.config.Logger,
		Now:           l.config.Now,
		ClientVersion: version.String(),
	}
	if l.config.Endpoint != "" {
		config.Broker = l.features
	}
	return preflight.New(config)
}

// countSystem returns how many tokens a system message has in the format of the run's model.
func (l *learner) countSystem(ctx context.Context, text string) (int, error) {
	format, err := load.ForModel(ctx, l.config.Hub, l.file.Fixed.Model)
	if err != nil {
		return 0, err
	}
	question := chat.Message{Role: chat.RoleUser, Content: "?"}
	without, err := format.Prompt(renderer.Conversation{Messages: []chat.Message{question}})
	if err != nil {
		return 0, err
	}
	with, err := format.Prompt(renderer.Conversation{Messages: []chat.Message{
		{Role: chat.RoleSystem, Content: text}, question,
	}})
	return len(with) - len(without), err
}

// parents returns a function that returns the lineage of a version's parent, as the names of checkpoints record it.
func parents(book *checkpoints.Book, genesis rl.Lineage) artifacts.Parent {
	return func(v rl.Version) (rl.Lineage, bool) {
		if v.Step == 1 {
			return genesis, true
		}
		return book.Parent(v)
	}
}

// newBook returns the record of the run's checkpoints.
func newBook(file contract.RunFile) *checkpoints.Book {
	c := file.Checkpoints
	retention := checkpoints.Retention{
		EverySteps: c.EverySteps, TTLSeconds: c.TTLSeconds, RollingTTLSeconds: c.RollingTTLSeconds, KeepLast: c.KeepLast,
	}
	if alg := file.Fixed.Algorithm; alg != nil {
		retention.Lag = int64(alg.Lag)
	}
	return checkpoints.NewBook(checkpoints.Config{
		Attempt: file.Attempt, Retention: retention, Best: c.KeepBestCount, Metric: c.KeepBestMetric,
	})
}

// prepareModels prepares the session and the factory of models.
func (l *learner) prepareModels(ctx context.Context) {
	l.models = opening.NewSessionKeeper(ctx, l.client, &l.tasks, l.config.Logger, func(name string) {
		console := client.Console(l.file.Fixed.BaseURL, name)
		l.status.Update(func(p *contract.Progress) { p.Console = console })
	})
	l.rollouts = opening.NewSessionKeeper(ctx, l.client, &l.tasks, l.config.Logger, func(name string) {
		l.table.SetSession(name)
		l.journal.SetSession(name)
	})
	l.factory = &trainee.Factory{
		API: l.client, Logger: l.config.Logger, Session: l.models.Get, Run: l.file.Run, Attempt: l.file.Attempt,
		SpecDigest: l.file.SpecDigest, Described: describedBy(l.file), Base: l.file.Fixed.Model,
		RequireOptimizer: l.file.RequireOptimizer,
		Lost:             l.models.Drop,
		Check:            l.features.checkOptimizer,
		Now:              l.config.Now,
	}
	l.factory.Made = func(ctx context.Context, model string) error { return l.opener.MakeModel(ctx, model) }
	l.factory.Ended = func(model string, saved bool) { l.opener.EndModel(model, saved) }
	l.opener = opening.New(opening.Config{
		File: l.file, API: l.client, Models: l.factory, Book: l.book, Rows: l.journal, Unloads: l.journal, Record: l.journal,
		Saved:     l.addSaved,
		IsMissing: l.table.IsMissing, Logger: l.config.Logger, Now: l.config.Now,
	})
}

// prepareEvaluator prepares the work beside the steps: evaluations and retirements.
func (l *learner) prepareEvaluator() {
	l.evaluator = evaluation.New(evaluation.Config{
		Schedule: evaluation.NewSchedule(l.file), Attempt: l.file.Attempt, Metric: l.file.Checkpoints.KeepBestMetric,
		Table: l.table, Policies: l.table, Samplers: l.opener, Results: l.journal, Versions: l.book, Logger: l.config.Logger,
		Evaluated: func(step int64, metrics map[string]float64) {
			l.server.Notify()
			l.status.SetEvaluation(l.file, step, metrics)
			l.recorder.evaluation(step, metrics)
		},
		Settled: func(result artifacts.Evaluation) { l.tracks.tracker.Evaluated(result) },
		Blocked: func(why string) { l.status.Fail(report.Evaluation, why) }, Pause: l.config.Timing.wait,
	})
	l.retirer = &retirer{
		api: l.client, book: l.book, outstanding: l.evaluator.Outstanding, retired: l.opener.Retired,
		logger: l.config.Logger, now: l.config.Now,
		busy: make(chan struct{}, 1),
	}
}

// newTable returns the lease table.
func newTable(config Config, spent leases.Spending) (*leases.Table, error) {
	file := config.File
	encoded, err := encodePlay(file, "", false)
	if err != nil {
		return nil, err
	}
	barrier := config.Timing.Barrier
	if file.Attempt == 1 {
		barrier = 0 // no worker can have stored anything yet
	}
	alg := file.Fixed.Algorithm
	share := 0.0
	if file.Evaluation != nil {
		share = file.Evaluation.SamplingShare
	}
	request, largest := mostOfRequests(file)
	return leases.NewTable(leases.Config{
		Play: encoded, Concurrency: file.Concurrency, Silence: config.Timing.Silence, Barrier: barrier,
		DropConstant: constantIn(file), StepRewards: alg != nil && alg.Grouping == algorithm.GroupingStep,
		References: alg != nil && alg.KL != nil, Teachers: taught(file), Spending: spent,
		Request: request, LargestGroup: largest, Logger: config.Logger, Now: config.Now,
		Environments: skippable(file), SkipAfter: config.Timing.SkipAfter, EvaluationShare: share,
	}), nil
}

// prepareBatches prepares the source of batches if the run trains.
func (l *learner) prepareBatches() error {
	switch fixed := l.file.Fixed; {
	case fixed.Supervised != nil:
		l.examples = examples.NewSource(l.table, l.config.Logger)
		l.batches = l.examples
	case fixed.Algorithm != nil:
		config, err := batchConfig(l.file)
		if err != nil {
			return err
		}
		l.batches = leases.NewBatchSource(l.table, config)
	}
	return nil
}

// mostOfRequests returns the maximum number of tokens in the prompt and reply of one request, by environment, and in
// one request of each member of the largest group.
func mostOfRequests(file contract.RunFile) (most map[string]int64, largestGroup int64) {
	const longestPrompt = 4096 // if nothing limits it
	most = map[string]int64{}
	environments := file.Fixed.Environments
	if file.Evaluation != nil {
		environments = slices.Concat(environments, file.Evaluation.Environments)
	}
	for _, env := range environments {
		limits := env.Limits
		prompt := int64(cmp.Or(limits.PromptTokens, longestPrompt))
		request := cmp.Or(int64(limits.TrajectoryTokens), prompt+int64(env.Sampling.MaxTokens))
		most[env.Name] = max(most[env.Name], request)
		largestGroup = max(largestGroup, int64(env.GroupSize)*request)
	}
	return most, largestGroup
}

// skippable returns, for each environment of training, whether its groups are dropped while it is unavailable.
func skippable(file contract.RunFile) map[string]bool {
	environments := map[string]bool{}
	for _, env := range file.Fixed.Environments {
		environments[env.Name] = env.SkipUnavailable
	}
	return environments
}

// taught lists the environments that have a teacher.
func taught(file contract.RunFile) map[string]bool {
	environments := map[string]bool{}
	for name := range file.Fixed.Teachers() {
		environments[name] = true
	}
	return environments
}

// constantIn returns the function that reports whether a group is dropped because nothing can be learned from it; nil
// if such groups are kept.
func constantIn(file contract.RunFile) func(rl.Group) bool {
	alg := file.Fixed.Algorithm
	if alg == nil || alg.ConstantGroups != algorithm.DropConstantGroups {
		return nil
	}
	return func(group rl.Group) bool { return group.IsConstant(alg.Grouping) }
}

// recordedSlots returns the number of slots of a batch whose conversations are recorded: all slots if rollouts are
// sent to a service.
func recordedSlots(file contract.RunFile) int64 {
	if file.Tracking != nil && file.Tracking.OpenReward != nil {
		return math.MaxInt64
	}
	return file.RecordedGroups
}

// batchConfig returns the configuration of the run's batches.
func batchConfig(file contract.RunFile) (leases.BatchConfig, error) {
	alg := file.Fixed.Algorithm
	refill := alg.OnDroppedGroup == algorithm.RefillDroppedGroups
	config := leases.BatchConfig{
		// With slots of their own, later steps are sampled before the outcomes of earlier ones are known.
		Rules: rl.Rules{TasksPerStep: int(alg.TasksPerStep), Refill: refill, OwnSlots: refill && alg.Lag > 0,
			Lag: int(alg.Lag), Steps: alg.Steps},
		Seed: uint64(alg.Seed), Groups: map[string]leases.GroupShape{}, Transcripts: recordedSlots(file),
	}
	var sources []rl.Source
	for _, env := range file.Fixed.Environments {
		config.Groups[env.Name] = leases.GroupShape{Size: env.GroupSize, MinMembers: env.MinMembers}
		for _, split := range env.Splits {
			sources = append(sources, rl.Source{
				Environment: env.Name, Split: split.Name, Tasks: split.Tasks, Shuffle: split.Shuffle, Weight: env.Weight,
			})
		}
	}
	var err error
	if config.Stream, err = rl.NewStream(config.Seed, sources); err != nil {
		return config, preflight.Reject(problem.EnvironmentsRejected, "%v", err)
	}
	return config, nil
}
