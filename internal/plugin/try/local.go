// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

// Local is a run whose environments are probed on this machine.
type Local struct {
	// Run is the TrainingRun, and Beside are the objects of its file.
	Run    *unstructured.Unstructured
	Beside manifest.Manifests
	// ORS, Data and Secrets are the values of the flags of these names: NAME=URL and NAME=DIR.
	ORS, Data, Secrets []string
}

// Probed has the environments of a file, as this machine has probed them.
type Probed struct {
	// Pins are the pins of the environments, by the names of their objects.
	Pins  desired.Pins
	trial trial
	stop  func()
}

// Probe probes environments of the file, by the names of their objects; nil means all environments that the run names,
// which the file has. Close ends everything that Probe has started.
func (l Local) Probe(ctx context.Context, env cli.IO, names []string) (*Probed, error) {
	in := input{run: &v1alpha1.TrainingRun{}, others: l.Beside.Others}
	var err error
	if in.environments, err = decodeEnvironments(ctx, l.Beside.Environments); err != nil {
		return nil, err
	}
	if err := decode(ctx, l.Run, in.run); err != nil {
		return nil, err
	}
	if names != nil {
		maps.DeleteFunc(in.environments, func(name string, _ *v1alpha1.RewardEnvironment) bool {
			return !slices.Contains(names, name)
		})
	}
	dir, err := os.MkdirTemp("", "kubectl-tinker-plan-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	env.Stderr = &lines{w: env.Stderr}
	logger := newLogger(env.Stderr, false)
	p := &Probed{trial: trial{flags: flags{ors: l.ORS, data: l.Data, secrets: l.Secrets}, input: in, env: env, dir: dir,
		logger: logger, only: names}}
	p.trial.hub = &fetch.Fetcher{Endpoint: env.Getenv("HF_ENDPOINT"), Token: env.Getenv("HF_TOKEN"),
		Cache: env.TokenizerCache(), Logger: logger}
	p.trial.url = cmp.Or(in.run.Spec.Tinker.BaseURL, "http://endpoint")
	pins, stop, err := p.trial.pins(ctx)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p.Pins, p.stop = pins, stop
	return p, nil
}

// Close ends the programs of the environments and removes their files.
func (p *Probed) Close() {
	p.stop()
	_ = os.RemoveAll(p.trial.dir)
}

// RunFile returns the run file of the first attempt, if all environments that the run names are in the file. The
// address of the endpoint is the run's, or a stand-in for the operator's default.
func (p *Probed) RunFile() (contract.RunFile, error) { return p.trial.runFile(p.Pins) }

// CheckReferences returns an error if the file lacks an environment that the run names.
func (l Local) CheckReferences(ctx context.Context) error {
	in := input{run: &v1alpha1.TrainingRun{}}
	var err error
	if in.environments, err = decodeEnvironments(ctx, l.Beside.Environments); err != nil {
		return err
	}
	if err := decode(ctx, l.Run, in.run); err != nil {
		return err
	}
	return in.checkReferences()
}
