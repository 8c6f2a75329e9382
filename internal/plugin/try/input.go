// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// input has the objects of the file.
type input struct {
	run          *v1alpha1.TrainingRun
	environments map[string]*v1alpha1.RewardEnvironment
	// others are ConfigMaps and Secrets.
	others []*unstructured.Unstructured
	// train is set if steps are trained.
	train bool
}

// read reads and checks the file, as the API server would.
func (f flags) read(ctx context.Context, data []byte) (input, error) {
	all, err := manifest.ParseAll(data)
	if err != nil {
		return input{}, err
	}
	in := input{others: all.Others}
	if in.environments, err = decodeEnvironments(ctx, all.Environments); err != nil {
		return input{}, err
	}
	if err := f.checkKind(all.Runs, len(in.environments)); err != nil {
		return input{}, err
	}
	var object *unstructured.Unstructured
	switch len(all.Runs) {
	case 0:
		if object, err = f.runFor(in.environments); err != nil {
			return input{}, err
		}
	case 1:
		object, in.train = all.Runs[0], f.episodes == 0 && f.environment == ""
	default:
		return input{}, fmt.Errorf("the file has %d TrainingRuns, want 1 at most: give the runs of a chain one by one, "+
			"each in a file with the RewardEnvironments that it names", len(all.Runs))
	}
	if in.train && f.checkpoint != "" {
		return input{}, cli.Misused("--checkpoint names weights that play episodes: add --episodes, or name a state to " +
			"train on from with spec.initFrom.checkpoint")
	}
	if err := f.adapt(object, in.train); err != nil {
		return input{}, err
	}
	in.run = &v1alpha1.TrainingRun{}
	if err := decode(ctx, object, in.run); err != nil {
		return input{}, err
	}
	return in, in.check(f)
}

// checkKind checks that there is something to play, or rows to train on.
func (f flags) checkKind(runs []*unstructured.Unstructured, environments int) error {
	switch rows := trainsOnRows(runs); {
	case rows && (f.episodes > 0 || f.environment != "" || f.checkpoint != ""):
		return cli.Misused("--episodes, --environment and --checkpoint play episodes, and mode Supervise trains on rows: " +
			"leave them out")
	case !rows && environments == 0:
		return fmt.Errorf("the file has no RewardEnvironment: put those that the run names into the same file, " +
			"separated by ---")
	case f.stepsGiven && len(runs) == 0:
		return cli.Misused("--steps trains a TrainingRun, and the file has none: add the run, or give --episodes")
	}
	return nil
}

// trainsOnRows reports whether the one run of a file is supervised.
func trainsOnRows(runs []*unstructured.Unstructured) bool {
	if len(runs) != 1 {
		return false
	}
	mode, _, _ := unstructured.NestedString(runs[0].Object, "spec", "mode")
	return v1alpha1.Mode(mode) == v1alpha1.ModeSupervise
}

// decodeEnvironments checks and reads RewardEnvironments, by their names.
func decodeEnvironments(ctx context.Context,
	objects []*unstructured.Unstructured) (map[string]*v1alpha1.RewardEnvironment, error) {
	environments := map[string]*v1alpha1.RewardEnvironment{}
	for _, object := range objects {
		environment := &v1alpha1.RewardEnvironment{}
		if err := decode(ctx, object, environment); err != nil {
			return nil, err
		}
		environments[environment.Name] = environment
	}
	return environments, nil
}

// decode checks an object and reads it.
func decode(ctx context.Context, object *unstructured.Unstructured, into any) error {
	if err := manifest.Check(ctx, object); err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return fmt.Errorf("reading %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// runFor returns a run that plays the one environment of a file.
func (f flags) runFor(environments map[string]*v1alpha1.RewardEnvironment) (*unstructured.Unstructured, error) {
	name := f.environment
	if name == "" && len(environments) > 1 {
		return nil, cli.Misused("the file has %d RewardEnvironments: choose one with --environment", len(environments))
	}
	for only := range environments {
		name = cmp.Or(name, only)
	}
	const defaultTokens = 256
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": manifest.KindRun,
		"metadata": map[string]any{"name": "try"},
		"spec": map[string]any{
			"model":  map[string]any{"name": cmp.Or(f.model, tinkersim.ModelName)},
			"tinker": map[string]any{"apiKeySecretKeyRef": map[string]any{"name": "try", "key": "TINKER_API_KEY"}},
			"environments": []any{map[string]any{"name": name, "groupSize": int64(2),
				"sampling": map[string]any{"maxTokens": int64(defaultTokens)}}},
			"algorithm": map[string]any{"tasksPerStep": int64(1), "steps": int64(1),
				"optimizer": map[string]any{"learningRate": 1e-5}},
		},
	}}, nil
}

// adapt applies the flags, and removes the fields of a run that a trial does not use.
func (f flags) adapt(object *unstructured.Unstructured, train bool) error {
	mode, _, _ := unstructured.NestedString(object.Object, "spec", "mode")
	if v1alpha1.Mode(mode) == v1alpha1.ModeEvaluate {
		return errors.New("spec.mode is Evaluate, and a trial plays training environments: give the file of the " +
			"RewardEnvironment alone")
	}
	fields := [][]string{
		{"spec", "evaluation"}, {"spec", "artifacts"}, {"spec", "budget"}, {"spec", "tracking"}, {"spec", "initFrom"},
		{"spec", "suspend"}, {"spec", "resumeFrom"},
	}
	if f.url != "" && train {
		kept := []string{"initFrom", "budget"}
		fields = slices.DeleteFunc(fields, func(field []string) bool { return slices.Contains(kept, field[1]) })
	}
	for _, field := range fields {
		unstructured.RemoveNestedField(object.Object, field...)
	}
	if _, limited, _ := unstructured.NestedMap(object.Object, "spec", "budget"); limited {
		// Budgets need artifacts, whose folder is one of this machine.
		_ = unstructured.SetNestedField(object.Object, "try", "spec", "artifacts", "claimName")
	}
	set := func(value any, path ...string) error {
		if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
			return fmt.Errorf("setting %s: %w", strings.Join(path, "."), err)
		}
		return nil
	}
	if f.model != "" {
		if err := set(f.model, "spec", "model", "name"); err != nil {
			return err
		}
	}
	if train {
		unstructured.RemoveNestedField(object.Object, "spec", "algorithm", "epochs")
		if err := set(f.steps, "spec", "algorithm", "steps"); err != nil {
			return err
		}
	}
	return f.limitTokens(object)
}

// limitTokens sets --max-tokens in each environment of a run, unless it is 0.
func (f flags) limitTokens(object *unstructured.Unstructured) error {
	if f.maxTokens == 0 {
		return nil
	}
	list, given, err := unstructured.NestedSlice(object.Object, "spec", "environments")
	if err == nil && !given {
		return nil // A supervised run has no environments.
	}
	if err != nil {
		return fmt.Errorf("reading spec.environments: %w", err)
	}
	for _, entry := range list {
		if fields, ok := entry.(map[string]any); ok {
			if err := unstructured.SetNestedField(fields, int64(f.maxTokens), "sampling", "maxTokens"); err != nil {
				return fmt.Errorf("setting sampling.maxTokens: %w", err)
			}
		}
	}
	if err := unstructured.SetNestedSlice(object.Object, list, "spec", "environments"); err != nil {
		return fmt.Errorf("setting spec.environments: %w", err)
	}
	return nil
}

// check checks the references between the objects of a file.
func (in input) check(f flags) error {
	if err := in.checkReferences(); err != nil {
		return err
	}
	if f.environment != "" && in.environments[f.environment] == nil {
		return cli.Misused("--environment: the file has no RewardEnvironment %q", f.environment)
	}
	served := []string{tinkersim.ModelName, tinkersim.CountdownModelName, tinkersim.SumsModelName}
	if name := in.run.Spec.Model.Name; f.url == "" && !slices.Contains(served, name) {
		return fmt.Errorf("spec.model.name: the simulator of this program serves %s, and the run's model is %s: name an "+
			"endpoint with --url, or add --model %s",
			strings.Join(served, ", "), name, tinkersim.ModelName)
	}
	return nil
}

// checkReferences returns an error if the file lacks an environment that the run names.
func (in input) checkReferences() error {
	for _, name := range desired.References(in.run) {
		if in.environments[name] == nil {
			return fmt.Errorf("the run names RewardEnvironment %q, which the file does not have: put it into the same file, "+
				"separated by ---", name)
		}
	}
	return nil
}

// files returns the files of the ConfigMaps or Secrets of the input, by their names.
func (in input) files(kind string) (map[string]map[string][]byte, error) {
	all := map[string]map[string][]byte{}
	for _, object := range in.others {
		if object.GetKind() != kind {
			continue
		}
		var m corev1.ConfigMap
		var s corev1.Secret
		into := map[string]any{"ConfigMap": &m, "Secret": &s}[kind]
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
			return nil, fmt.Errorf("reading %s %q: %w", kind, object.GetName(), err)
		}
		files := map[string][]byte{}
		for _, texts := range []map[string]string{m.Data, s.StringData} {
			for name, text := range texts {
				files[name] = []byte(text)
			}
		}
		maps.Copy(files, m.BinaryData)
		maps.Copy(files, s.Data)
		all[object.GetName()] = files
	}
	return all, nil
}
