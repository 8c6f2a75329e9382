// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/configkey"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// addTexts adds the texts of ConfigMaps to the input of a run file. It returns the problem of a text that it cannot
// add, or of a warm pool that cannot be used.
func (r *Reconciler) addTexts(ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State,
	input *desired.FileInput) (*problem.Problem, error) {
	blocked, err := r.addTemplate(ctx, run, input)
	if blocked != nil || err != nil {
		return blocked, err
	}
	if blocked, err = r.checkPools(ctx, run, input.Pins); blocked != nil || err != nil {
		return blocked, err
	}
	return r.addCode(ctx, run, seen, input.Pins)
}

// addTemplate adds the chat template to the input of a run file, from the ConfigMap that the run names, or returns the
// problem that prevents it. A run file that keeps the settings of an earlier one has its template already.
func (r *Reconciler) addTemplate(ctx context.Context, run *v1alpha1.TrainingRun,
	input *desired.FileInput) (*problem.Problem, error) {
	key := desired.TemplateKey(run.Spec.Model)
	if key == nil || input.Fixed != nil {
		return nil, nil
	}
	text, missing, err := configkey.Reader(ctx, r.Live, run.Namespace)(*key)
	if err != nil {
		return nil, fmt.Errorf("reading a chat template: %w", err)
	}
	if missing != "" {
		return &problem.Problem{Code: problem.TemplateUnusable, Evidence: missing}, nil
	}
	input.Template = &text
	return nil, nil
}

// addCode adds the code of the ConfigMaps that environments name to their new pins. If the code is not the code that
// the probe had, the run waits: the environment notices the change a little later, and is probed again. Pins of an
// earlier attempt have their code.
func (r *Reconciler) addCode(ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State,
	pins desired.Pins) (*problem.Problem, error) {
	for _, name := range slices.Sorted(maps.Keys(pins)) {
		definition := pins[name].Definition
		if definition.CheckRead() == nil {
			continue
		}
		read, unreadable, err := desired.FillCode(definition.Reward, definition.Interaction,
			configkey.Reader(ctx, r.Live, run.Namespace))
		if err != nil {
			return nil, fmt.Errorf("reading the code of environment %s: %w", name, err)
		}
		env := cmp.Or(seen.Environments[name], &v1alpha1.RewardEnvironment{})
		if unreadable != nil || !slices.Equal(read, env.Status.Code) {
			return &problem.Problem{Code: problem.EnvironmentProbing, Evidence: strconv.Quote(name)}, nil
		}
	}
	return nil, nil
}
