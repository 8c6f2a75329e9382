// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/controller/kueue"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/resolve"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Fault points of the manager: see Reconciler.Fault.
const (
	FaultAttemptWritten = "attempt.written"
	FaultJobCreated     = "job.created"
)

// prepare makes the run file of the attempt that is to start, or sets the problem that blocks it. Until the settings
// are fixed, an attempt begins with the current spec and, if the spec has changed, with the current environments.
func (r *Reconciler) prepare(ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State, p plan) (plan, error) {
	if p.next != nil {
		run = run.DeepCopy()
		run.Status = *p.next
	}
	files, err := observe.ReadRunFiles(ctx, r.Live, run)
	if _, ok := errors.AsType[*observe.RunFileError](err); ok {
		return p.withBlock(resolve.UnreadableFile(err), 0), nil
	}
	if err != nil {
		p.start = 0
		return p, err
	}
	if err := r.fillPools(ctx, seen); err != nil {
		p.start = 0
		return p, err
	}
	input, blocked := r.fileInput(run, seen, files, p.start)
	if blocked != nil {
		return p.withBlock(blocked, seconds(*run.Spec.StalledAfterSeconds)), nil
	}
	if blocked, err = r.addTexts(ctx, run, seen, &input); err != nil {
		p.start = 0
		return p, err
	}
	if blocked != nil {
		return p.withBlock(blocked, 0), nil
	}
	file, err := desired.File(input)
	if newest := files.Newest(); err == nil && newest != nil && newest.SpecDigest != file.SpecDigest &&
		ptr.Deref(run.Status.Step, 0) == 0 {
		next := status.WithoutProgress(run.Status, equality.Semantic.DeepEqual(newest.Fixed.Model, file.Fixed.Model))
		p.next = &next
		input.Run = run.DeepCopy()
		input.Run.Status = next
		file, err = desired.File(input)
	}
	if err != nil {
		return p.withBlock(resolve.FileProblem(err), 0), nil
	}
	file.Former = files.Former(run, file)
	if err := r.shareCheck(ctx, run, seen, &file); err != nil {
		p.start = 0
		return p, err
	}
	p.file, p.pins = &file, input.Pins
	return p, nil
}

// shareCheck sets the shared capabilities of a run that has not found the capabilities of its endpoint itself. Another
// run of the namespace has found them or, at a TinkerEndpoint, the broker.
func (r *Reconciler) shareCheck(ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State,
	file *contract.RunFile) error {
	file.Connection = endpoint.Connection(run)
	if file.Capabilities != nil {
		return nil
	}
	if named := run.Spec.Tinker.EndpointRef; named != nil {
		file.SharedCapabilities = endpoint.ShareCheck(seen.Endpoint.Check, named.Name, file.Fixed.BaseURL)
		return nil
	}
	var runs v1alpha1.TrainingRunList
	// The runs are the cache's own objects, and must not be changed.
	if err := r.Client.List(ctx, &runs, client.InNamespace(run.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing runs: %w", err)
	}
	from := endpoint.LastChecked(runs.Items, file.Fixed.BaseURL, file.Fixed.Model.Name, file.Connection)
	file.SharedCapabilities = endpoint.Share(from, r.Now())
	return nil
}

// fileInput returns the input of a run file, or the problem that prevents the file.
func (r *Reconciler) fileInput(run *v1alpha1.TrainingRun, seen observe.State, files observe.RunFiles,
	attempt int32) (desired.FileInput, *problem.Problem) {
	input := desired.FileInput{Run: run, Attempt: attempt, DefaultBaseURL: r.Settings.BaseURL(run),
		Prices: seen.Endpoint.Prices}
	newest, matching := files.Newest(), files.Matching(run)
	if newest != nil {
		input.Version = newest.Version
	}
	var kept *observe.RunFile // the file whose settings and pins the attempt keeps
	switch {
	case status.SettingsFixed(run):
		kept = newest
	case observe.HasStep(run), matching == newest && !observe.BeginsAnew(run, newest, r.Settings.BaseURL(run)):
		kept = matching
	}
	var blocked *problem.Problem
	switch {
	case kept != nil:
		input.Fixed = &kept.Fixed
		input.Pins, blocked = resolve.Environments(run, kept.Pins, seen.Environments)
	case newest != nil:
		input.Pins, blocked = resolve.Repin(run, newest.Pins, seen.Environments)
	default:
		input.Pins, blocked = resolve.Environments(run, nil, seen.Environments)
	}
	switch {
	case blocked != nil || kept != nil:
	case matching != nil && matching.Fixed.InitFrom != nil:
		input.InitFrom = matching.Fixed.InitFrom.Checkpoint
	default:
		input.InitFrom, blocked = resolve.InitFrom(run, seen.Source)
		if blocked != nil && seen.Cycle != "" {
			blocked = &problem.Problem{Code: problem.InitFromCycle, Evidence: seen.Cycle}
		}
	}
	return input, r.firstProblem(blocked, seen, input.Pins)
}

// firstProblem returns the problem that blocks a run: a problem of its references, of its TinkerEndpoint, or of servers
// that this installation does not share.
func (r *Reconciler) firstProblem(blocked *problem.Problem, seen observe.State, pins desired.Pins) *problem.Problem {
	switch {
	case blocked != nil:
		return blocked
	case seen.Endpoint.Problem != nil:
		return seen.Endpoint.Problem
	case !r.Settings.SharedServers:
		return resolve.SharedServers(pins)
	}
	return nil
}

// withBlock returns the plan without its start.
func (p plan) withBlock(by *problem.Problem, grace time.Duration) plan {
	p.start, p.blocked, p.requeue = 0, by, maxRequeue
	if by.Row().Grace {
		p.requeue = min(maxRequeue, grace+time.Second)
	}
	return p
}

// startAttempt makes the objects that an attempt needs and then its Job. The attempt is already recorded: if anything
// fails here, no Job of this number is made later.
func (r *Reconciler) startAttempt(ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State, p plan) error {
	if err := r.fault(FaultAttemptWritten); err != nil {
		return err
	}
	secrets, err := contract.DeriveCredentials(r.ManagerKey, string(run.UID))
	if err != nil {
		return err
	}
	file, err := desired.RunFile(run, *p.file, p.pins, r.Settings)
	if err != nil {
		return err
	}
	// The Secret is named after its contents and exists from the second attempt on.
	if err := client.IgnoreAlreadyExists(r.Client.Create(ctx,
		desired.CredentialsSecret(run, secrets, r.credentialsName(run)))); err != nil {
		return fmt.Errorf("creating credentials secret: %w", err)
	}
	if err := r.addEndpoint(ctx, run, file); err != nil {
		return err
	}
	if err := r.Client.Create(ctx, file); err != nil {
		return fmt.Errorf("creating run file: %w", err)
	}
	job := desired.LearnerJob(run, p.start, r.credentialsName(run), r.Settings)
	desired.AnnotateData(job, p.pins.Data())
	desired.AnnotateServers(job, p.pins.Servers())
	job.Annotations[v1alpha1.AnnotationSpecDigest] = p.file.SpecDigest
	if err := r.place(ctx, seen, kueue.LearnerSet, &job.Spec.Template); err != nil {
		return err
	}
	if err := r.Client.Create(ctx, job); err != nil {
		return fmt.Errorf("creating learner job: %w", err)
	}
	return r.fault(FaultJobCreated)
}

// addEndpoint makes the Secret with the token of a run at its TinkerEndpoint, and adds the authority of the broker to
// the run file's ConfigMap. The Secret is named after its contents and exists from the second attempt on.
func (r *Reconciler) addEndpoint(ctx context.Context, run *v1alpha1.TrainingRun, file *corev1.ConfigMap) error {
	named := run.Spec.Tinker.EndpointRef
	if named == nil {
		return nil
	}
	key, err := contract.DeriveEndpointKey(r.ManagerKey, named.Name)
	if err != nil {
		return err
	}
	authority, _, err := contract.DeriveBrokerCertificate(r.ManagerKey, named.Name,
		desired.BrokerHosts(named.Name, r.Settings.Namespace)...)
	if err != nil {
		return err
	}
	secret := desired.EndpointSecret(run, contract.RunToken(key, string(run.UID)),
		desired.EndpointSecretName(run, r.credentialsName(run)))
	file.Data[desired.AuthorityKey] = string(authority)
	file.Annotations[v1alpha1.AnnotationEndpointSecret] = secret.Name
	if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, secret)); err != nil {
		return fmt.Errorf("creating the secret of the endpoint: %w", err)
	}
	return nil
}

// credentialsName is the name of the Secret with the credentials that derive from this manager's key.
func (r *Reconciler) credentialsName(run *v1alpha1.TrainingRun) string {
	return desired.CredentialsName(run, contract.SecretSuffix(r.ManagerKey, string(run.UID)))
}

// pruneFiles deletes the run files that neither the run nor its workers' Job needs.
func (r *Reconciler) pruneFiles(ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State,
	newest int32) error {
	keep := observe.RunFilesToKeep(run, newest)
	if seen.Rollout != nil {
		keep = append(keep, seen.Rollout.Annotations[v1alpha1.AnnotationRunFile])
	}
	return observe.PruneRunFiles(ctx, r.Live, run, keep, func(file client.Object) error {
		return r.delete(ctx, file, metav1.DeletePropagationBackground)
	})
}
