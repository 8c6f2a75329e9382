// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/report"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking"
)

// trackingSilence is the maximum time without a message to a service that shows the run's curves: the service treats a
// run that is silent for longer as crashed.
const trackingSilence = 30 * time.Second

// tracks sends the committed steps to the services that show the run's curves.
type tracks struct {
	tracker *tracking.Tracker
	uploads *tracking.Uploads // nil if rollouts are not sent
	// patience is the time for which a learner that ends tries to send the last steps.
	patience time.Duration
	logger   *slog.Logger
	running  sync.WaitGroup
}

// newTracks returns the senders of the journal's steps, which report their progress to the status.
func newTracks(file contract.RunFile, config Config, journal *artifacts.Journal,
	status *report.Status) (*tracks, error) {
	run, err := tracking.RunInfo(file)
	if err != nil {
		return nil, err
	}
	t := &tracks{patience: config.Timing.TrackingPatience, logger: config.Logger}
	t.uploads = tracking.NewUploads(file.Tracking, run,
		func() *artifacts.UploadFiles { return artifacts.UploadFilesOf(journal) }, config.Logger)
	t.tracker = tracking.NewTracker(tracking.Config{
		Sinks: tracking.New(file.Tracking, run,
			func() *artifacts.EventFiles { return artifacts.EventFilesOf(journal) }),
		Uploads: t.uploads, Rows: journal, Report: status.SetTracking, Logger: config.Logger,
		Interval: config.Timing.Tracking, Silence: max(trackingSilence, config.Timing.Tracking),
		Pause: config.Timing.Pause,
	})
	return t, nil
}

// run sends steps beside the loop until ctx ends.
func (t *tracks) run(ctx context.Context) { t.running.Go(func() { t.tracker.Run(ctx) }) }

// wait waits until nothing more is sent.
func (t *tracks) wait() {
	if t != nil {
		t.running.Wait()
	}
}

// end reports to the services how the run ended, and waits until the last steps are sent, but no longer than
// patience.
func (t *tracks) end(ctx context.Context, err error) {
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
	t.tracker.End(outcome)
	sent := make(chan struct{})
	go func() {
		t.running.Wait()
		close(sent)
	}()
	select {
	case <-sent:
	case <-time.After(t.patience):
		t.logger.Warn("tracking services have not received the last steps")
	case <-ctx.Done():
	}
}
