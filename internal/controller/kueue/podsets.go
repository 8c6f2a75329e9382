// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// LearnerSet and WorkersSet name the pod sets of the learner and of the workers. ServerSet begins the name of the pod
// set of each shared environment server, which ends with the server's port, and ProgramSet begins the name of the pod
// set of each program with pods of its own.
const (
	LearnerSet = "learner"
	WorkersSet = "workers"
	ServerSet  = "server-"
	ProgramSet = "program-"
)

// maxSets is the greatest number of pod sets of a Workload.
const maxSets = 18

// SetOf returns the name of the pod set of a Deployment of a run.
func SetOf(d *appsv1.Deployment) string {
	if id := d.Labels[v1alpha1.LabelProgram]; id != "" {
		return ProgramSet + id
	}
	return ServerSet + d.Labels[v1alpha1.LabelServerPort]
}

// PodSets returns the pod sets of a run: the learner, the workers, and one for each shared environment server and for
// each program that has pods of its own. data and servers are the attempt's desired.Pins.Data and Servers.
func PodSets(run *v1alpha1.TrainingRun, data, servers string, settings desired.Settings) ([]PodSet, error) {
	sets := []PodSet{{Name: LearnerSet, Count: 1,
		Template: quotaTemplate(desired.LearnerJob(run, 1, "", settings).Spec.Template)}}
	if workers := *run.Spec.Rollouts.Workers; workers > 0 && desired.HasWorkers(run) {
		job := desired.RolloutJob(run, 1, "", settings)
		desired.MountData(job, data, desired.PodOverrides(run, v1alpha1.TargetWorkers), settings)
		if err := desired.RunServers(job, servers, desired.ServiceName(run), settings); err != nil {
			return nil, err
		}
		sets = append(sets, PodSet{Name: WorkersSet, Count: workers, MinCount: run.Spec.Rollouts.MinWorkers,
			Template: quotaTemplate(job.Spec.Template)})
	}
	shared, err := desired.SharedServers(run, servers, settings)
	if err != nil {
		return nil, err
	}
	programs, err := desired.ProgramPods(run, servers, "", settings)
	if err != nil {
		return nil, err
	}
	for _, d := range append(shared, programs...) {
		sets = append(sets, PodSet{Name: SetOf(d), Count: *d.Spec.Replicas, Template: quotaTemplate(d.Spec.Template)})
	}
	if len(sets) > maxSets {
		return nil, fmt.Errorf("making workload: the run has %d pod sets, and Kueue admits at most %d: "+
			"use fewer shared environment servers and programs with pods of their own", len(sets), maxSets)
	}
	return sets, nil
}

// quotaTemplate returns the part of a template that decides which quota its pods need, and which nodes they may use. It
// is the same for all attempts, and names no Secret and no image.
func quotaTemplate(of corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	spec := corev1.PodSpec{
		NodeSelector: of.Spec.NodeSelector, Affinity: of.Spec.Affinity, Tolerations: of.Spec.Tolerations,
		TopologySpreadConstraints: of.Spec.TopologySpreadConstraints, PriorityClassName: of.Spec.PriorityClassName,
		RuntimeClassName: of.Spec.RuntimeClassName, SchedulerName: of.Spec.SchedulerName,
		RestartPolicy: of.Spec.RestartPolicy, ResourceClaims: of.Spec.ResourceClaims, Overhead: of.Spec.Overhead,
		Containers: quotaContainers(of.Spec.Containers), InitContainers: quotaContainers(of.Spec.InitContainers),
	}
	template := corev1.PodTemplateSpec{Spec: spec}
	template.Labels = maps.Clone(of.Labels)
	delete(template.Labels, v1alpha1.LabelAttempt)
	return template
}

func quotaContainers(of []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for _, c := range of {
		kept = append(kept, corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	return kept
}

// Digest digests the inputs of a Workload: a run whose digest has changed needs another Workload, since pod sets cannot
// be changed.
func Digest(run *v1alpha1.TrainingRun, sets []PodSet) string {
	text, err := json.Marshal(struct {
		Queue, Priority string
		Sets            []PodSet
		Provisioning    map[string]string `json:",omitempty"`
		Longest         *int32            `json:",omitempty"`
	}{Queue(run), run.Labels[LabelPriority], sets, provisioning(run), longest(run)})
	if err != nil {
		panic("kueue: encoding pod sets: " + err.Error()) // They are plain data.
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
