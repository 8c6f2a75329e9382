// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// RunFile is the run file of an earlier attempt, with the environments that it pinned.
type RunFile struct {
	contract.RunFile
	Pins desired.Pins

	object *corev1.ConfigMap
}

// RunFiles are the existing run files of earlier attempts, the newest first.
type RunFiles []RunFile

// RunFileError says that the run file of an earlier attempt cannot be used. Another try would fail too.
type RunFileError struct {
	name string
	err  error
}

// Error names the file.
func (e *RunFileError) Error() string {
	return fmt.Sprintf("ConfigMap %s: %v", e.name, e.err)
}

// Unwrap returns why the file cannot be used.
func (e *RunFileError) Unwrap() error { return e.err }

// ReadRunFiles reads the run files of the attempts that the status lists. If the settings of the run are fixed, it
// reads only the newest, since all later files keep its settings. It fails with a *RunFileError if a file cannot be
// used.
func ReadRunFiles(ctx context.Context, live client.Reader, run *v1alpha1.TrainingRun) (RunFiles, error) {
	var files RunFiles
	for _, attempt := range run.Status.Attempts {
		config, err := Find(ctx, live, run.Namespace, desired.RunFileName(run, attempt.Number), &corev1.ConfigMap{})
		if err != nil {
			return nil, fmt.Errorf("reading run file: %w", err)
		}
		if config == nil {
			continue
		}
		file, err := decode(config)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
		if status.SettingsFixed(run) {
			break
		}
	}
	return files, nil
}

func decode(config *corev1.ConfigMap) (RunFile, error) {
	file, err := contract.DecodeRunFile([]byte(config.Data[contract.RunFileName]))
	if err != nil {
		return RunFile{}, &RunFileError{config.Name, err}
	}
	pins, err := desired.DecodePins(config, file)
	if err != nil {
		return RunFile{}, &RunFileError{config.Name, err}
	}
	return RunFile{RunFile: file, Pins: pins, object: config}, nil
}

// HasStep reports whether a step is committed, perhaps with other settings than the spec has now. If they differ, the
// settings of the spec are not fixed, and only the settings of that step can continue the run.
func HasStep(run *v1alpha1.TrainingRun) bool {
	attempts := run.Status.Attempts
	return ptr.Deref(run.Status.Step, 0) > 0 || len(attempts) > 0 && attempts[0].Reason == string(problem.SettingsDiffer)
}

// BeginsAnew reports whether a run without a step begins anew although its spec is the same: it is a failed run that is
// tried again, or the operator's default endpoint is another one.
func BeginsAnew(run *v1alpha1.TrainingRun, newest *RunFile, defaultBaseURL string) bool {
	retries := *run.Spec.RetryGeneration > ptr.Deref(run.Status.ObservedRetryGeneration, 0)
	return retries || newest != nil && run.Spec.Tinker.BaseURL == "" && newest.Fixed.BaseURL != defaultBaseURL
}

// Newest returns the run file of the newest attempt that has one; nil if there is none.
func (f RunFiles) Newest() *RunFile {
	if len(f) == 0 {
		return nil
	}
	return &f[0]
}

// Matching returns the newest run file whose settings equal the settings of the current spec; nil if there is none.
func (f RunFiles) Matching(run *v1alpha1.TrainingRun) *RunFile {
	i := slices.IndexFunc(f, func(file RunFile) bool {
		changed, known := desired.ChangedSettings(run, file.object.Annotations)
		return known && len(changed) == 0
	})
	if i < 0 {
		return nil
	}
	return &f[i]
}

// Former returns the history of settings for the run file of the next attempt; empty if all attempts have had the same
// settings. Each entry names the changed fields if a run file with its settings still exists.
func (f RunFiles) Former(run *v1alpha1.TrainingRun, next contract.RunFile) contract.SettingsHistory {
	newest := f.Newest()
	if newest == nil {
		return nil
	}
	former := contract.FormerSettings{LastAttempt: newest.Attempt, SpecDigest: newest.SpecDigest,
		ResumeFrom: newest.ResumeFrom}
	if former.Equal(next.SpecDigest, next.ResumeFrom) && len(newest.Former) == 0 {
		return nil
	}
	history := newest.Former.Append(former)
	for i := range history {
		history[i].Changed = nil
		for _, file := range f {
			if history[i].Equal(file.SpecDigest, file.ResumeFrom) {
				history[i].Changed, _ = desired.ChangedSettings(run, file.object.Annotations)
				break
			}
		}
	}
	return history
}

// RunFilesToKeep names the files that a run still needs: the newest two and, until its settings are fixed, the files of
// the attempts that the status lists.
func RunFilesToKeep(run *v1alpha1.TrainingRun, newest int32) []string {
	keep := []string{desired.RunFileName(run, newest), desired.RunFileName(run, newest-1)}
	if status.SettingsFixed(run) {
		return keep
	}
	for _, attempt := range run.Status.Attempts {
		keep = append(keep, desired.RunFileName(run, attempt.Number))
	}
	return keep
}

// PruneRunFiles deletes the run files of earlier attempts except those to keep.
func PruneRunFiles(ctx context.Context, live client.Reader, run *v1alpha1.TrainingRun, keep []string,
	remove func(client.Object) error) error {
	files := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}}
	if err := live.List(ctx, &files, client.InNamespace(run.Namespace),
		client.MatchingLabels(desired.RunLabels(run))); err != nil {
		return fmt.Errorf("listing run files: %w", err)
	}
	for i := range files.Items {
		if slices.Contains(keep, files.Items[i].Name) {
			continue
		}
		files.Items[i].SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		if err := remove(&files.Items[i]); err != nil {
			return fmt.Errorf("deleting run file: %w", err)
		}
	}
	return nil
}
