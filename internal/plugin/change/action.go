// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// Action is a change of one run, which a command of the same name makes as well.
type Action struct {
	// Name is the name of the command.
	Name string
	// Does says what the action does.
	Does  string
	apply func(*v1alpha1.TrainingRun) (string, error)
}

// Actions are those that need nothing but a run.
func Actions() []Action {
	return []Action{
		{Name: "suspend", Does: "stops the run at a saved state and deletes its pods; resume continues it",
			apply: suspendRun},
		{Name: "resume", Does: "continues the suspended run from its last saved state", apply: resumeRun},
		{Name: "retry", Does: "continues the failed run from its last usable checkpoint, with a new restart budget",
			apply: retryRun},
	}
}

// Preview says what the action would do to a run as it is known, or why it does not apply. The run is not changed.
func (a Action) Preview(run *v1alpha1.TrainingRun) (string, error) { return a.apply(run.DeepCopy()) }

// Check has the API server check the action without doing it, and says what it would do.
func (a Action) Check(ctx context.Context, connection *cli.Connection, name string) (string, error) {
	return edit{apply: a.apply}.to(ctx, connection, name, client.DryRunAll)
}

// Do does the action, and says what follows.
func (a Action) Do(ctx context.Context, connection *cli.Connection, name string) (string, error) {
	return edit{apply: a.apply}.to(ctx, connection, name)
}
