// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/resolve"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// Fault points of the manager: see Reconciler.Fault.
const (
	FaultAttemptWritten = "attempt.written"
	FaultJobCreated     = "job.created"
)

// prepare makes the run file of the attempt that is to start, or sets what blocks it.
func (r *Reconciler) prepare(ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State, p plan) (plan, error) {
	if p.next != nil {
		run = run.DeepCopy()
		run.Status = *p.next
	}
	earlier, pinned, err := r.earlierFile(ctx, run)
	var unreadable *fileError
	if errors.As(err, &unreadable) {
		return p.withBlock(&resolve.Problem{
			Condition: v1alpha1.ConditionAccepted, Reason: v1alpha1.ReasonRunFileInvalid, Message: unreadable.Error(), NeedsAction: true,
		}, 0), nil
	}
	if err != nil {
		p.start = 0
		return p, err
	}
	pins, blocked := resolve.Environments(run, pinned, seen.Environments)
	var path string
	if blocked == nil && earlier == nil {
		path, blocked = resolve.InitFrom(run, seen.Source)
	}
	if blocked == nil && !r.Settings.SharedServers {
		blocked = resolve.SharedServers(pins)
	}
	if blocked != nil {
		return p.withBlock(blocked, seconds(*run.Spec.FailurePolicy.StalledAfterSeconds)), nil
	}
	input := desired.FileInput{
		Run: run, Attempt: p.start, Pins: pins, DefaultBaseURL: r.Settings.DefaultBaseURL, InitFrom: path,
		Version: formatVersion(run),
	}
	if earlier != nil {
		input.Fixed, input.Version = &earlier.Fixed, earlier.Version
	}
	file, err := desired.File(input)
	if err != nil {
		return p.withBlock(resolve.FileProblem(err), 0), nil
	}
	p.file, p.pins = &file, pins
	return p, nil
}

// formatVersion is the format version that a run began with, by its status; 0 before its start. Runs of builds that did
// not note it have version 1.
func formatVersion(run *v1alpha1.TrainingRun) int {
	if run.Status.StartTime == nil {
		return 0
	}
	return int(ptr.Deref(run.Status.FormatVersion, 1))
}

// fileError says that the run file of an earlier attempt cannot be used, which trying again does not change.
type fileError struct {
	name string
	err  error
}

func (e *fileError) Error() string {
	return fmt.Sprintf("ConfigMap %s, the run file of an earlier attempt, cannot be read: %v: install the version of the operator that wrote it, "+
		"or create another run with initFrom.", e.name, e.err)
}

func (e *fileError) Unwrap() error { return e.err }

// withBlock gives the plan without its start.
func (p plan) withBlock(by *resolve.Problem, grace time.Duration) plan {
	p.start, p.blocked, p.requeue = 0, by, maxRequeue
	if by.Grace {
		p.requeue = min(maxRequeue, grace+time.Second)
	}
	return p
}

// earlierFile reads the run file of an earlier attempt, and the environments it had pinned; nil before the first, or
// when no file is left.
func (r *Reconciler) earlierFile(ctx context.Context, run *v1alpha1.TrainingRun) (*contract.RunFile, desired.Pins, error) {
	for _, attempt := range run.Status.Attempts {
		config, err := observe.Find(ctx, r.Live, run.Namespace, desired.RunFileName(run, attempt.Number), &corev1.ConfigMap{})
		if err != nil {
			return nil, nil, fmt.Errorf("reading run file: %w", err)
		}
		if config == nil {
			continue
		}
		file, err := contract.DecodeRunFile([]byte(config.Data[contract.RunFileName]))
		if err != nil {
			return nil, nil, &fileError{config.Name, err}
		}
		pins := desired.Pins{}
		if err := json.Unmarshal([]byte(config.Data[desired.PinsKey]), &pins); err != nil {
			return nil, nil, &fileError{config.Name, fmt.Errorf("decoding pinned environments: %w", err)}
		}
		return &file, pins, nil
	}
	return nil, nil, nil
}

// startAttempt makes what an attempt needs and then its Job. The attempt is recorded already: whatever goes
// wrong here, no Job of this number is made later.
func (r *Reconciler) startAttempt(ctx context.Context, run *v1alpha1.TrainingRun, p plan) error {
	if err := r.fault(FaultAttemptWritten); err != nil {
		return err
	}
	secrets, err := contract.DeriveCredentials(r.ManagerKey, string(run.UID))
	if err != nil {
		return err
	}
	file, err := desired.RunFile(run, *p.file, p.pins)
	if err != nil {
		return err
	}
	// The Secret is named after its contents and exists from the second attempt on.
	if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, desired.CredentialsSecret(run, secrets, r.credentialsName(run)))); err != nil {
		return fmt.Errorf("creating credentials secret: %w", err)
	}
	if err := r.Client.Create(ctx, file); err != nil {
		return fmt.Errorf("creating run file: %w", err)
	}
	job := desired.LearnerJob(run, p.start, r.credentialsName(run), r.Settings)
	desired.AnnotateData(job, p.pins.Data())
	desired.AnnotateServers(job, p.pins.Servers())
	if err := r.Client.Create(ctx, job); err != nil {
		return fmt.Errorf("creating learner job: %w", err)
	}
	return r.fault(FaultJobCreated)
}

// credentialsName is the name of the Secret with the credentials that derive from this manager's key.
func (r *Reconciler) credentialsName(run *v1alpha1.TrainingRun) string {
	return desired.CredentialsName(run, contract.SecretSuffix(r.ManagerKey, string(run.UID)))
}

// pruneFiles deletes the run files of attempts before the last one that no worker's Job mounts.
func (r *Reconciler) pruneFiles(ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State, newest int32) error {
	keep := []string{desired.RunFileName(run, newest), desired.RunFileName(run, newest-1)}
	if seen.Rollout != nil {
		keep = append(keep, seen.Rollout.Annotations[v1alpha1.AnnotationRunFile])
	}
	files := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}}
	labels := desired.RunLabels(run)
	if err := r.Live.List(ctx, &files, client.InNamespace(run.Namespace), client.MatchingLabels(labels)); err != nil {
		return fmt.Errorf("listing run files: %w", err)
	}
	for i := range files.Items {
		if slices.Contains(keep, files.Items[i].Name) {
			continue
		}
		files.Items[i].SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		if err := r.delete(ctx, &files.Items[i], metav1.DeletePropagationBackground); err != nil {
			return fmt.Errorf("deleting run file: %w", err)
		}
	}
	return nil
}
