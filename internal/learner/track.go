// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/journal"
	"github.com/tinker-operator/tinker-operator/internal/learner/store"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// trackingSilence is how long a service that shows the run's curves receives nothing at most: it takes a run that is silent for
// longer for one that has crashed.
const trackingSilence = 30 * time.Second

// tracked is a learner whose committed steps are sent to services that show the run's curves.
type tracked struct{ *learner }

// prepare prepares what sends the committed steps to the services that show the run's curves.
func (l tracked) prepare() error {
	config, err := trackedConfig(l.file)
	if err != nil {
		return err
	}
	reference := l.file.Run
	l.tracker = tracking.NewTracker(tracking.Config{
		Sinks: tracking.New(l.file.Tracking, tracking.Run{
			UID: reference.UID, Namespace: reference.Namespace, Name: reference.Name, Attempt: l.file.Attempt, Config: config,
		}, func() *store.EventFiles { return journal.EventFilesOf(l.journal) }),
		Rows: l.journal, Report: l.status.SetTracking, Logger: l.config.Logger,
		Interval: l.config.Timing.Tracking, Silence: max(trackingSilence, l.config.Timing.Tracking), Pause: l.config.Timing.Pause,
	})
	return nil
}

// trackedConfig returns what services show as the run's configuration: the spec as it runs, without the definitions of
// environments, of which the digests suffice.
func trackedConfig(file contract.RunFile) (map[string]any, error) {
	type environment struct {
		Name       string            `json:"name"`
		Digest     string            `json:"digest"`
		Weight     float64           `json:"weight,omitempty"`
		GroupSize  int               `json:"groupSize"`
		MinMembers int               `json:"minMembers"`
		Sampling   contract.Sampling `json:"sampling"`
		Limits     contract.Limits   `json:"limits"`
		Reward     contract.Reward   `json:"reward"`
	}
	list := func(environments []contract.Environment) []environment {
		var entries []environment
		for _, e := range environments {
			entries = append(entries, environment{e.Name, e.Digest, e.Weight, e.GroupSize, e.MinMembers, e.Sampling, e.Limits, e.Reward})
		}
		return entries
	}
	tracked := map[string]any{
		"run": file.Run, "specDigest": file.SpecDigest, "model": file.Fixed.Model, "baseURL": file.Fixed.BaseURL,
		"environments": list(file.Fixed.Environments), "checkpoints": file.Checkpoints,
	}
	if file.Fixed.Algorithm != nil {
		tracked["algorithm"] = file.Fixed.Algorithm
	}
	if file.Fixed.InitFrom != nil {
		tracked["initFrom"] = file.Fixed.InitFrom
	}
	if e := file.Evaluation; e != nil {
		tracked["evaluation"] = map[string]any{
			"everySteps": e.EverySteps, "before": e.Before, "after": e.After, "samplingShare": e.SamplingShare,
			"environments": list(e.Environments),
		}
	}
	data, err := json.Marshal(tracked)
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration: %w", err)
	}
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("decoding the configuration: %w", err)
	}
	return config, nil
}

// advance makes the lines available to services up to the version that is saved. Evaluations of it have begun.
func (l tracked) advance() {
	at := l.loop.saved
	var outstanding []tracking.Version
	for _, v := range l.evaluator.Outstanding() {
		if lineage, err := rl.LineageFromShort(v.Lineage); err == nil {
			outstanding = append(outstanding, tracking.Version{Step: v.Step, Lineage: lineage.String()})
		}
	}
	last := l.batches == nil || at.Step >= l.file.Fixed.Algorithm.Steps
	l.tracker.Advance(tracking.Version{Step: at.Step, Lineage: at.Lineage.String()}, last, outstanding)
}

// end has the last steps sent, for as long as the learner has patience, and reports to the services how the run ended.
func (l tracked) end(ctx context.Context, err error) {
	verdict := verdictOf(err)
	outcome := tracking.Interrupted
	switch {
	case errors.Is(err, ErrKilled) || ctx.Err() != nil:
		return
	case verdict.Cause == contract.CauseCompleted:
		outcome = tracking.Completed
	case verdict.Cause == contract.CauseConfigRejected || verdict.Cause == contract.CauseDataRejected:
		outcome = tracking.Failed
	case verdict.Cause == contract.CauseFenced:
		return
	}
	l.tracker.End(outcome)
	sent := make(chan struct{})
	go func() {
		l.tracking.Wait()
		close(sent)
	}()
	select {
	case <-sent:
	case <-time.After(l.config.Timing.TrackingPatience):
		l.config.Logger.Warn("tracking services have not received the last steps")
	case <-ctx.Done():
	}
}
