// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/learner"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/plugin/transcripts"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rl/measure"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

// shownGroups is the number of groups of each step that are shown.
const shownGroups = 2

// trialUID returns the uid of a run that no cluster has.
func trialUID() types.UID { return types.UID(uuid.NewString()) }

// listen returns credentials of a run, derived from a random key, and a listener for its learner.
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
	return nil
}

// follow prints transcripts as they appear, until the learner ends.
func (t *trial) follow(
	ctx context.Context, file contract.RunFile, verdict <-chan contract.Verdict, worked <-chan error,
) (contract.Verdict, error) {
	seen := trained{shown: map[string]bool{}}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	waiting := time.Now()
	for {
		select {
		case <-ticker.C:
			isNew, err := t.look(file, &seen)
			switch {
			case err != nil:
				return contract.Verdict{}, err
			case isNew:
				waiting = time.Now()
			case time.Since(waiting) > 5*time.Second:
				t.progress("%d of %d steps trained", seen.rows, file.Algorithm().Steps)
				waiting = time.Now()
			}
		case err := <-worked:
			if err == nil {
				err = ctx.Err()
			}
			return contract.Verdict{}, fmt.Errorf("the worker ended: %w", err)
		case v := <-verdict:
			if _, err := t.look(file, &seen); err != nil {
				return v, err
			}
			t.printPasses(seen.newest)
			if t.format != output.Table {
				return v, output.Print(t.env, t.format, transcripts.Tabulate(seen.steps...))
			}
			return v, nil
		}
	}
}

// trained has the results of a trial's training.
type trained struct {
	// shown are the names of the files of episodes that were shown, and steps their transcripts.
	shown map[string]bool
	steps []transcript.Step
	// newest are the lines of the newest of these files.
	newest []transcript.Line
	// rows counts the rows of metrics that were printed.
	rows int
}

// look shows the steps that are new, first their transcripts and then a line of metrics for each. It reports whether
// there are new steps.
func (t *trial) look(file contract.RunFile, seen *trained) (isNew bool, err error) {
	names, err := filepath.Glob(filepath.Join(file.ArtifactsDir, file.Run.UID, "episodes", "*.jsonl.gz"))
	if err != nil {
		return false, fmt.Errorf("listing episodes: %w", err)
	}
	slices.Sort(names)
	for _, name := range names {
		if seen.shown[name] {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return false, fmt.Errorf("reading episodes: %w", err)
		}
		if seen.newest, err = transcript.DecodeLines(data); err != nil {
			return false, fmt.Errorf("reading episodes: %w", err)
		}
		seen.shown[name], isNew = true, true
		step := transcript.StepOf(seen.newest)
		seen.steps = append(seen.steps, step)
		if t.format == output.Table {
			transcripts.Print(t.env.Stdout, step)
			fmt.Fprintln(t.env.Stdout)
		}
	}
	rows, err := readMetrics(file)
	for ; err == nil && seen.rows < len(rows); seen.rows++ {
		isNew = true
		t.progress("step %d of %d: %s", seen.rows+1, file.Algorithm().Steps, stepLine(rows[seen.rows]))
	}
	return isNew, err
}

// stepFigures are the metrics of the line of a step, in this order, with their names in the line.
var stepFigures = []struct {
	key, name string
	share     bool
}{
	{"env/all/reward/total", "reward", false},
	{"env/all/by_group/frac_mixed", "groups with a gradient", true},
	{"loss:sum", "loss", false},
	{"optim/entropy", "entropy", false},
	{"env/all/stop/length", "cut replies", true},
	{contract.MetricTeacherKL, contract.MetricTeacherKL, false},
}

// stepLine returns the figures of a step that has trained, for people.
func stepLine(row map[string]float64) string {
	var figures []string
	for _, figure := range stepFigures {
		value, ok := row[figure.key]
		switch {
		case !ok:
		case figure.share:
			figures = append(figures, fmt.Sprintf("%s %.0f%%", figure.name, 100*value))
		default:
			figures = append(figures, fmt.Sprintf("%s %.4g", figure.name, value))
		}
	}
	return strings.Join(figures, ", ")
}

// printPasses prints the pass@k of the tasks of a step.
func (t *trial) printPasses(lines []transcript.Line) {
	groups := map[int64]passes{}
	for _, line := range lines {
		if line.Episode != nil {
			groups[line.Slot] = groups[line.Slot].with(*line.Episode)
		}
	}
	if text := passLine(slices.Collect(maps.Values(groups))); text != "" {
		t.progress("%s of the last step's %s", text, cli.Count(len(groups), "task"))
	}
}

// passes counts the usable samples of a task, and the samples that pass.
type passes struct{ samples, passed int }

func (p passes) with(e transcript.Episode) passes {
	if e.Outcome != rl.Usable.String() {
		return p
	}
	p.samples++
	if measure.Passed(rl.Member{Metrics: e.Metrics, Reward: e.Reward}) {
		p.passed++
	}
	return p
}

// passLine returns the pass@k of tasks, for one sample and for as many samples as every task has. It is empty if no
// task has a sample.
func passLine(tasks []passes) string {
	tasks = slices.DeleteFunc(tasks, func(p passes) bool { return p.samples == 0 })
	if len(tasks) == 0 {
		return ""
	}
	most := slices.MinFunc(tasks, func(a, b passes) int { return cmp.Compare(a.samples, b.samples) }).samples
	var line []string
	for _, k := range slices.Compact([]int{1, most}) {
		sum := 0.0
		for _, task := range tasks {
			pass, _ := measure.PassAtK(task.samples, task.passed, k)
			sum += pass
		}
		line = append(line, fmt.Sprintf("pass@%d %.3g", k, sum/float64(len(tasks))))
	}
	return strings.Join(line, ", ")
}
