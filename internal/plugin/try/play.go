// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/plugin/transcripts"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

const defaultEpisodes = 4

// play plays episodes of the tasks that the run would train on first, one of each.
func (t *trial) play(ctx context.Context, file contract.RunFile) error {
	leases, err := t.leases(file)
	if err != nil {
		return err
	}
	format, err := t.readRenderer(ctx, file)
	if err != nil {
		return err
	}
	file.Fixed.Model.Template = format.Template()
	play, err := contract.EncodePlay(contract.Play{
		Version: file.Version, Model: file.Fixed.Model, Environments: file.Fixed.Environments,
		Concurrency: min(len(leases), file.Concurrency),
	})
	if err != nil {
		return err
	}
	lessor := newLessor(leases, play, t.progress)
	worker, endpoint, err := t.worker(file, format, lessor)
	if err != nil {
		return err
	}
	if lessor.session, err = endpoint.CreateSession(ctx,
		client.SessionRequest{Tags: []string{"kubectl-tinker-try"}}); err != nil {
		return t.explain(err)
	}
	defer finish(ctx, endpoint, lessor.session)
	if err := lessor.play(ctx, worker.Run); err != nil {
		return t.explain(err)
	}
	return t.printGroups(lessor.results())
}

// finish ends a session at the endpoint, where it would expire otherwise.
func finish(ctx context.Context, endpoint *client.Client, session string) {
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = endpoint.FinishSession(ctx, session)
}

// leases returns a lease for each episode.
func (t *trial) leases(file contract.RunFile) ([]exchange.Lease, error) {
	var sources []rl.Source
	for _, env := range file.Fixed.Environments {
		for _, split := range env.Splits {
			sources = append(sources, rl.Source{Environment: env.Name, Split: split.Name, Tasks: split.Tasks,
				Shuffle: split.Shuffle, Weight: env.Weight})
		}
	}
	seed := uint64(file.Fixed.Algorithm.Seed)
	stream, err := rl.NewStream(seed, sources)
	if err != nil {
		return nil, err
	}
	lineage := rl.Genesis(file.SpecDigest)
	leases := make([]exchange.Lease, cmp.Or(t.episodes, defaultEpisodes))
	for i := range leases {
		slot := int64(i)
		task := stream.Task(slot)
		leases[i] = exchange.Lease{
			Key:         rl.Key{Kind: rl.Train, Slot: slot, Lineage: lineage},
			Environment: task.Environment, Split: task.Split, Task: task.Index, GroupSize: 1, MinMembers: 1, Seed: seed,
			Sampler: cmp.Or(t.checkpoint, file.Fixed.Model.Name), SamplingSession: 1, Transcript: true,
		}
	}
	return leases, nil
}

// printGroups prints the played groups. Episodes that gave no reward are an error.
func (t *trial) printGroups(groups []rl.Group) error {
	list := []transcript.Group{}
	var failed, usable int
	total := 0.0
	tasks := make([]passes, len(groups))
	for i, group := range groups {
		g := transcript.FromGroup(group)
		list = append(list, g)
		for _, e := range g.Episodes {
			tasks[i] = tasks[i].with(e)
			if e.Outcome != rl.Usable.String() {
				failed++
				continue
			}
			usable++
			total += e.Reward
		}
	}
	switch t.format {
	case output.JSON:
		if err := output.PrintJSON(t.env.Stdout, list); err != nil {
			return err
		}
	case output.Plain:
		if err := output.Print(t.env, t.format, transcripts.Tabulate(transcript.Step{Groups: list})); err != nil {
			return err
		}
	default:
		for _, g := range list {
			transcripts.PrintGroup(t.env.Stdout, g)
			fmt.Fprintln(t.env.Stdout)
		}
	}
	if usable > 0 {
		mean := total / float64(usable)
		t.progress("%s, %s, mean reward %s", cli.Count(usable, "episode"), passLine(tasks), output.Number(&mean))
	}
	if failed > 0 {
		return fmt.Errorf("of %s, %d without a reward: the reasons stand beside them", cli.Count(failed+usable, "episode"),
			failed)
	}
	return nil
}

// explain adds the repair to an error of the endpoint.
func (t *trial) explain(err error) error {
	switch client.CategoryFrom(err) {
	case tinker.CategoryUnauthorized:
		return fmt.Errorf("%w: set the variable %s to a key of %s", err, keyVariable, t.url)
	case tinker.CategoryNotTinker, tinker.CategoryUnreachable:
		return fmt.Errorf("%w: check --url and that this machine reaches it", err)
	case tinker.CategoryNotFound:
		return fmt.Errorf("%w: the endpoint does not know the model or the checkpoint: choose another with --model or "+
			"--checkpoint", err)
	}
	return err
}

// errPlayed ends the worker once all groups are there.
var errPlayed = errors.New("all episodes are played")

// play runs a worker until it has submitted all groups.
func (l *lessor) play(ctx context.Context, run func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		select {
		case err := <-l.ended:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	group.Go(func() error {
		if err := run(ctx); err != nil {
			return fmt.Errorf("playing: %w", err)
		}
		return nil
	})
	if err := group.Wait(); !errors.Is(err, errPlayed) {
		return err
	}
	return nil
}
