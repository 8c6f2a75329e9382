// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"errors"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking"
)

// trackingSilence is how long a service that shows the run's curves receives nothing at most: it takes a run that is
// silent for longer for one that has crashed.
const trackingSilence = 30 * time.Second

// tracked is a learner whose committed steps are sent to services that show the run's curves.
type tracked struct{ *learner }

// prepare prepares what sends the committed steps to the services that show the run's curves.
func (l tracked) prepare() error {
	run, err := tracking.RunInfo(l.file)
	if err != nil {
		return err
	}
	l.uploads = tracking.NewUploads(l.file.Tracking, run,
		func() *artifacts.UploadFiles { return artifacts.UploadFilesOf(l.journal) }, l.config.Logger)
	l.tracker = tracking.NewTracker(tracking.Config{
		Sinks: tracking.New(l.file.Tracking, run,
			func() *artifacts.EventFiles { return artifacts.EventFilesOf(l.journal) }),
		Uploads: l.uploads, Rows: l.journal, Report: l.status.SetTracking, Logger: l.config.Logger,
		Interval: l.config.Timing.Tracking, Silence: max(trackingSilence, l.config.Timing.Tracking),
		Pause: l.config.Timing.Pause,
	})
	return nil
}

// advance makes the lines available to services up to the version that is saved. Evaluations of it have begun.
func (l tracked) advance() {
	at := l.loop.saved
	last := l.batches == nil || at.Step >= l.file.Fixed.Algorithm.Steps
	l.tracker.Advance(at.Version, last, l.evaluator.Outstanding())
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
