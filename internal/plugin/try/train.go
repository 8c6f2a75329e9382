// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/learner"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/plugin/transcripts"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

// shownGroups is how many groups of each step are shown.
const shownGroups = 2

// trialUID returns the uid of a run that no cluster has.
func trialUID() types.UID { return types.UID(uuid.NewString()) }

// listen returns credentials of a run, by a key that nobody else has, and a listener for its learner.
func listen(ctx context.Context, uid string) (contract.Credentials, net.Listener, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	credentials, err := contract.DeriveCredentials(key, uid)
	if err != nil {
		return contract.Credentials{}, nil, err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return contract.Credentials{}, nil, fmt.Errorf("listening: %w", err)
	}
	return credentials, listener, nil
}

// train trains steps with a learner and a worker, and prints the transcript of each.
func (t *trial) train(ctx context.Context, file contract.RunFile) error {
	file.ArtifactsDir, file.RecordedGroups = filepath.Join(t.dir, "artifacts"), shownGroups
	file.Checkpoints.RollingEverySteps = 1
	credentials, listener, err := listen(ctx, file.Run.UID)
	if err != nil {
		return err
	}
	learnerClient, err := exchange.NewClient(exchange.ClientConfig{
		Address: file.LearnerAddress, Credentials: credentials, RunUID: file.Run.UID, SpecDigest: file.SpecDigest,
		Version: file.Version,
		Worker:  "try", Logger: t.logger,
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
		},
	})
	if err != nil {
		return err
	}
	format, err := t.readRenderer(ctx, file)
	if err != nil {
		return err
	}
	worker, _, err := t.worker(file, format, learnerClient)
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() { worked <- worker.Run(working) }()
	verdict := make(chan contract.Verdict, 1)
	go func() {
		verdict <- learner.Run(ctx, learner.Config{
			File: file, Credentials: credentials, APIKey: t.key, UserAgent: version.UserAgent(userAgent), Identity: "try",
			Exchange: listener, Logger: t.logger, HTTP: t.http, Hub: t.hub,
			Timing: learner.Timing{KeyPatience: time.Second}, Unattended: true,
		})
	}()
	ended, err := t.follow(ctx, file, verdict, worked)
	stop()
	_ = learnerClient.Close()
	if err != nil {
		return err
	}
	if ended.Cause != contract.CauseCompleted {
		return fmt.Errorf("the learner ended with %s (%s): %s", ended.Cause, ended.Reason, ended.Message)
	}
	steps, err := readMetrics(file)
	for _, step := range steps {
		if value, taught := step[contract.MetricTeacherKL]; taught {
			t.progress("step %d: %s %.4g", int64(step["step"])+1, contract.MetricTeacherKL, value)
		}
	}
	return err
}

// follow prints transcripts as they appear, until the learner ends.
func (t *trial) follow(
	ctx context.Context, file contract.RunFile, verdict <-chan contract.Verdict, worked <-chan error,
) (contract.Verdict, error) {
	shown := map[string]bool{}
	steps := []transcript.Step{}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	waiting := time.Now()
	for {
		select {
		case <-ticker.C:
			found, err := t.newSteps(file, shown)
			if err != nil {
				return contract.Verdict{}, err
			}
			if steps = append(steps, found...); len(found) > 0 {
				waiting = time.Now()
			} else if time.Since(waiting) > 5*time.Second {
				t.progress("%d of %d steps trained", len(steps), file.Algorithm().Steps)
				waiting = time.Now()
			}
		case err := <-worked:
			if err == nil {
				err = ctx.Err()
			}
			return contract.Verdict{}, fmt.Errorf("the worker ended: %w", err)
		case v := <-verdict:
			found, err := t.newSteps(file, shown)
			if steps = append(steps, found...); err == nil && t.format != output.Table {
				err = output.Print(t.env, t.format, transcripts.Tabulate(steps...))
			}
			return v, err
		}
	}
}

// newSteps returns the steps whose transcripts are new, and prints them.
func (t *trial) newSteps(file contract.RunFile, shown map[string]bool) ([]transcript.Step, error) {
	names, err := filepath.Glob(filepath.Join(file.ArtifactsDir, file.Run.UID, "episodes", "*.jsonl.gz"))
	if err != nil {
		return nil, fmt.Errorf("listing episodes: %w", err)
	}
	slices.Sort(names)
	var steps []transcript.Step
	for _, name := range names {
		if shown[name] {
			continue
		}
		shown[name] = true
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading episodes: %w", err)
		}
		lines, err := transcript.DecodeLines(data)
		if err != nil {
			return nil, fmt.Errorf("reading episodes: %w", err)
		}
		step := transcript.StepOf(lines)
		steps = append(steps, step)
		t.progress("step %d of %d is trained", step.Step, file.Algorithm().Steps)
		if t.format == output.Table {
			transcripts.Print(t.env.Stdout, step)
			fmt.Fprintln(t.env.Stdout)
		}
	}
	return steps, nil
}
