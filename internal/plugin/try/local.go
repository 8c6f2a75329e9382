// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
)

// Local is a run whose environments are probed on this machine.
type Local struct {
	// Run is the TrainingRun, and Beside are the objects of its file.
	Run    *unstructured.Unstructured
	Beside manifest.Manifests
	// ORS, Data and Secrets are the values of the flags of these names: NAME=URL and NAME=DIR.
	ORS, Data, Secrets []string
}

// RunFile probes the environments that a run names and returns what its first attempt would be given. The name of the
// endpoint is the run's, or a stand-in where the operator would fill in its own.
func (l Local) RunFile(ctx context.Context, env cli.IO) (contract.RunFile, error) {
	in := input{run: &v1alpha1.TrainingRun{}, others: l.Beside.Others}
	var err error
	if in.environments, err = decodeEnvironments(ctx, l.Beside.Environments); err != nil {
		return contract.RunFile{}, err
	}
	if err := decode(ctx, l.Run, in.run); err != nil {
		return contract.RunFile{}, err
	}
	if err := in.checkReferences(); err != nil {
		return contract.RunFile{}, err
	}
	dir, err := os.MkdirTemp("", "kubectl-tinker-plan-")
	if err != nil {
		return contract.RunFile{}, fmt.Errorf("making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	env.Stderr = &lines{w: env.Stderr}
	t := trial{flags: flags{ors: l.ORS, data: l.Data, secrets: l.Secrets}, input: in, env: env, dir: dir,
		logger: newLogger(env.Stderr, false)}
	t.url = cmp.Or(in.run.Spec.Tinker.BaseURL, "http://endpoint")
	pins, stop, err := t.pins(ctx)
	if err != nil {
		return contract.RunFile{}, err
	}
	defer stop()
	return t.runFile(pins)
}
