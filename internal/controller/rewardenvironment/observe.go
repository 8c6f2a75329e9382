// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rewardenvironment

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/configkey"
	"github.com/tinker-operator/tinker-operator/internal/controller/datafiles"
	"github.com/tinker-operator/tinker-operator/internal/controller/refusal"
	"github.com/tinker-operator/tinker-operator/internal/controller/warmpool"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// observed is the state of an environment in the cluster, read once.
type observed struct {
	// filled is the environment with the code of ConfigMaps and the pods of a warm pool in its spec. definition is made
	// from this spec.
	filled     *v1alpha1.RewardEnvironment
	definition contract.Definition
	// code are the digests of that code, and unreadable is the problem that keeps the code or the warm pool from being
	// used.
	code       []v1alpha1.CodeStatus
	unreadable *problem.Problem
	// digest is the digest of the definition and of the ConfigMap that it reads.
	digest string
	// files are the digests of the keys that the definition reads of a ConfigMap, "" for one that does not exist; nil
	// if it reads none.
	files datafiles.Files
	// job is the newest try of this definition, and try its number; nil and 0 before the first.
	job *batchv1.Job
	try int32
	pod *corev1.Pod
	// others are Jobs of earlier tries and of other definitions.
	others []*batchv1.Job
	// started is the time at which this process started the newest probe; zero if another did.
	started time.Time
	// refused is the API server's refusal of the next try, and podRefused its refusal of the pod of the newest try.
	refused    refusal.Try
	podRefused problem.Problem
}

func (r *Reconciler) observe(ctx context.Context, env *v1alpha1.RewardEnvironment) (observed, error) {
	seen := observed{filled: env.DeepCopy()}
	var err error
	if seen.code, seen.unreadable, err = desired.FillCode(seen.filled.Spec.Reward, seen.filled.Spec.Interaction,
		configkey.Reader(ctx, r.Live, env.Namespace)); err != nil {
		return observed{}, err
	}
	if seen.unreadable == nil {
		if seen.unreadable, err = r.Pools.Fill(ctx, r.Live, seen.filled); err != nil {
			return observed{}, err
		}
	}
	seen.definition = desired.Definition(seen.filled.Spec)
	if seen.files, err = datafiles.Read(ctx, r.Live, env.Namespace, seen.definition); err != nil {
		return observed{}, err
	}
	if seen.digest, err = seen.files.Digest(seen.definition); err != nil {
		return observed{}, err
	}
	var jobs batchv1.JobList
	labels := client.MatchingLabels(desired.EnvironmentLabels(env))
	if err := r.Client.List(ctx, &jobs, client.InNamespace(env.Namespace), labels); err != nil {
		return observed{}, fmt.Errorf("listing probe jobs: %w", err)
	}
	for i := range jobs.Items {
		if metav1.IsControlledBy(&jobs.Items[i], env) {
			seen.add(env, &jobs.Items[i])
		}
	}
	seen.started = r.probes.Get(env).started
	seen.refused = r.refusals.Latest(env, v1alpha1.RoleProbe)
	if seen.job == nil {
		return seen, nil
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(env.Namespace),
		client.MatchingLabels(seen.job.Spec.Template.Labels)); err != nil {
		return observed{}, fmt.Errorf("listing probe pods: %w", err)
	}
	if len(pods.Items) > 0 {
		// A pod that is lost with its node may still exist beside the pod that replaces it.
		newest := slices.MaxFunc(pods.Items, func(a, b corev1.Pod) int {
			return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		})
		seen.pod = &newest
		return seen, nil
	}
	if !hasAnswer(env, seen) {
		seen.podRefused, err = refusal.OfPods(ctx, r.Live, seen.job)
	}
	return seen, err
}

// readsOthers reports whether the environment changes with ConfigMaps or a warm pool, which are looked at now and then.
func (o *observed) readsOthers() bool {
	return o.files != nil || o.code != nil || o.unreadable != nil || warmpool.PoolOf(o.filled) != ""
}

// add files a Job: as the newest try of the definition, or as one of the others.
func (o *observed) add(env *v1alpha1.RewardEnvironment, job *batchv1.Job) {
	try, err := strconv.ParseInt(job.Labels[v1alpha1.LabelAttempt], 10, 32)
	current := err == nil && job.Labels[v1alpha1.LabelDefinition] == o.digest[:8] && job.DeletionTimestamp == nil
	if current && job.Name != desired.ProbeName(env, o.digest, int32(try)) {
		return // The Job is a copy that a person made.
	}
	if !current || int32(try) <= o.try {
		o.others = append(o.others, job)
		return
	}
	if o.job != nil {
		o.others = append(o.others, o.job)
	}
	o.job, o.try = job, int32(try)
}
