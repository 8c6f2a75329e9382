// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcripts

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/learner/reader"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// storeKeys are the variables that have, or name, a person's own key of a kind of store.
var storeKeys = map[string][]string{
	"s3":     {"AWS_ACCESS_KEY_ID", "AWS_PROFILE"},
	"azblob": {"AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_CLIENT_ID"},
	"gs":     {"GOOGLE_CREDENTIALS", "GOOGLE_APPLICATION_CREDENTIALS"},
}

// storeEndpoints are the variables that name a server that is compatible with S3.
var storeEndpoints = []string{"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}

// harmless are the settings of an address that choose no server and no account.
var harmless = []string{"region", "use_path_style", "s3ForcePathStyle", "anonymous"}

// hasKeys reports whether the environment of this machine has keys of the store of a run. The author of a run chooses
// its address, and some keys are sent to the server: the environment must name the same server, if it is not the
// store's own.
func hasKeys(run *v1alpha1.TrainingRun, variable func(string) string) bool {
	if run.Spec.Artifacts == nil || run.Spec.Artifacts.URL == "" {
		return false
	}
	address, err := url.Parse(run.Spec.Artifacts.URL)
	if err != nil {
		return false
	}
	for name, values := range address.Query() {
		own := func(endpoint string) bool { return len(values) == 1 && values[0] == variable(endpoint) }
		if !slices.Contains(harmless, name) && (name != "endpoint" || !slices.ContainsFunc(storeEndpoints, own)) {
			return false
		}
	}
	return slices.ContainsFunc(storeKeys[address.Scheme], func(name string) bool { return variable(name) != "" })
}

// readStore answers a question from the store of a run, with the keys of this machine.
func readStore(ctx context.Context, run *v1alpha1.TrainingRun, asked question,
	variable func(string) string) (delivery.Delivery, error) {
	found := reader.Read(ctx, reader.Request{URL: run.Spec.Artifacts.URL, Variable: variable, RunUID: string(run.UID),
		Step: asked.step, Evaluation: asked.evaluation})
	if found.Problem != "" {
		return found, fmt.Errorf("reading the store of run %q with this machine's keys: %s", run.Name, found.Problem)
	}
	return found, nil
}
