// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// SharedFor is the time for which runs rely on the check of another run, or of a broker.
const SharedFor = endpoint.CheckLife

// checkedAnew are the features that each run checks itself, whatever other runs have found: if such a feature changed,
// the size of each step would change, and nothing would show that.
var checkedAnew = []string{contract.CapabilityGradientSum, contract.CapabilityRepeats}

// Connection digests the inputs of a check besides the address, the model and the version of the client: the Secrets,
// proxy and authorities of the connection, the matrices that are trained, and the variables of the learner's pod. The
// contents of Secrets are not known to the manager.
func Connection(run *v1alpha1.TrainingRun) string {
	pod := desired.PodOverrides(run, v1alpha1.TargetLearner)
	decisive := struct {
		Tinker  v1alpha1.Tinker
		Modules []v1alpha1.TrainModule
		Env     []corev1.EnvVar
		EnvFrom []corev1.EnvFromSource
	}{run.Spec.Tinker, slices.Sorted(slices.Values(run.Spec.Model.TrainModules)), pod.Env, pod.EnvFrom}
	decisive.Tinker.BaseURL, decisive.Tinker.Weight = "", nil
	data, err := json.Marshal(decisive)
	if err != nil {
		panic("endpoint: digesting a connection: " + err.Error()) // These are plain API types, which were decoded from JSON.
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// LastChecked returns the run with the newest findings about an endpoint with a model; nil if there is none. If baseURL
// is empty, it considers runs whose spec has no address, which use the manager's. An empty connection stands for any.
func LastChecked(runs []v1alpha1.TrainingRun, baseURL, model, connection string) *v1alpha1.TrainingRun {
	var newest *v1alpha1.TrainingRun
	for i := range runs {
		found := runs[i].Status.Capabilities
		switch {
		case found == nil || found.Model != model || connection != "" && found.Connection != connection:
		case found.BaseURL != baseURL && (baseURL != "" || runs[i].Spec.Tinker.BaseURL != ""):
		case newest == nil || isNewer(&runs[i], newest):
			newest = &runs[i]
		}
	}
	return newest
}

// isNewer compares the times of two runs' checks. Equal times belong to runs that rely on the same check; then the run
// that has found more is newer.
func isNewer(a, b *v1alpha1.TrainingRun) bool {
	if at, than := checkedAt(a), checkedAt(b); !at.Equal(than) {
		return at.After(than)
	}
	if more := len(a.Status.Capabilities.Supported) - len(b.Status.Capabilities.Supported); more != 0 {
		return more > 0
	}
	return a.Name < b.Name
}

// checkedAt returns the time of the oldest of a run's findings, or the run's creation if that is not known.
func checkedAt(run *v1alpha1.TrainingRun) time.Time {
	found := run.Status.Capabilities
	switch {
	case found.CheckedAt == nil && found.SharedFrom == nil:
		return run.CreationTimestamp.Time
	case found.SharedFrom == nil, found.CheckedAt != nil && found.CheckedAt.Before(&found.SharedFrom.CheckedAt):
		return found.CheckedAt.Time
	}
	return found.SharedFrom.CheckedAt.Time
}

// Share returns the capabilities of a run that another run may rely on; nil if there are none. They are the features
// that were found supported less than a day ago. All other features are checked again, since the endpoint may have been
// repaired.
func Share(from *v1alpha1.TrainingRun, now time.Time) *contract.Capabilities {
	if from == nil {
		return nil
	}
	found := from.Status.Capabilities
	at := checkedAt(from)
	if found.CheckedAt == nil && found.SharedFrom == nil || now.Sub(at) >= SharedFor {
		return nil
	}
	shared := status.Capabilities(found)
	shared.Supported = slices.DeleteFunc(slices.Clone(shared.Supported),
		func(name string) bool { return slices.Contains(checkedAnew, name) })
	if len(shared.Supported) == 0 {
		return nil
	}
	shared.Ignored, shared.Unsupported, shared.CheckedAt = nil, nil, ""
	shared.SharedFrom = &contract.SharedCheck{Name: from.Name, CheckedAt: at.UTC().Format(time.RFC3339)}
	return shared
}
