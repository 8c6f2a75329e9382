// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package runpod runs pods in the namespace of a run for a person: pods with the mounts and variables of the run's
// pods. The person's program reads their log or connects to their port, and deletes them when the command ends.
package runpod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// Pods starts pods.
type Pods struct {
	Kube client.Client
	// Logs returns the log of a pod, until the pod ends.
	Logs func(ctx context.Context, namespace, pod string) (io.ReadCloser, error)
	// Forward connects to a port of a pod.
	Forward func(namespace, pod string, port int) (Dialer, error)
	// Report tells a person why a pod waits.
	Report func(format string, args ...any)
	// Image replaces the image of the run's newest attempt, if it is not empty.
	Image string
	// Task describes the work of the pods, as in "reads the artifacts". Otherwise describes how a person who may not
	// create pods does the same.
	Task, Otherwise string
	// Period is the time between two reads of a pod, and Patience the time that the pod has to start.
	Period, Patience time.Duration
}

// Dialer makes connections to a port of a pod.
type Dialer interface {
	io.Closer
	Dial() (net.Conn, error)
}

// New returns the pods of a cluster. They report on the standard error why a pod waits.
func New(env cli.IO, connection *cli.Connection) (Pods, error) {
	core, err := corev1client.NewForConfig(connection.Config)
	if err != nil {
		return Pods{}, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return Pods{
		Kube: connection, Period: 300 * time.Millisecond, Patience: 2 * time.Minute,
		Report: func(format string, args ...any) { fmt.Fprintf(env.Stderr, format+"\n", args...) },
		Logs: func(ctx context.Context, namespace, pod string) (io.ReadCloser, error) {
			return core.Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
		},
		Forward: func(namespace, pod string, port int) (Dialer, error) {
			return forward(connection.Config, core.RESTClient(), namespace, pod, port)
		},
	}, nil
}

// Create creates a pod of a run.
func (p Pods) Create(ctx context.Context, run *v1alpha1.TrainingRun, pod *corev1.Pod) error {
	if p.Image != "" {
		pod.Spec.Containers[0].Image = p.Image
	}
	err := p.Kube.Create(ctx, pod)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("creating a pod that %s of run %q: %w", p.Task, run.Name, err)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: ask for Kubernetes' role edit in namespace %s, or %s", err, run.Namespace, p.Otherwise)
	}
	return err
}

// Remove deletes a pod, even if the person has interrupted the command.
func (p Pods) Remove(ctx context.Context, pod *corev1.Pod) error {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := client.IgnoreNotFound(p.Kube.Delete(ending, pod, client.GracePeriodSeconds(0))); err != nil {
		return fmt.Errorf("deleting pod %q: %w", pod.Name, err)
	}
	return nil
}

// Settings returns the settings that the pods of the run's newest attempt had, and the ConfigMap of its run file, which
// is nil if the cluster has none.
func (p Pods) Settings(ctx context.Context, run *v1alpha1.TrainingRun) (desired.Settings, *corev1.ConfigMap, error) {
	var files corev1.ConfigMapList
	labels := client.MatchingLabels{v1alpha1.LabelRunUID: string(run.UID), v1alpha1.LabelRole: v1alpha1.RoleLearner}
	if err := p.Kube.List(ctx, &files, client.InNamespace(run.Namespace), labels); err != nil {
		return desired.Settings{}, nil, fmt.Errorf("listing the run files of run %q: %w", run.Name, err)
	}
	settings, latest, newest := desired.Settings{}, -1, (*corev1.ConfigMap)(nil)
	for i, file := range files.Items {
		attempt, _ := strconv.Atoi(file.Labels[v1alpha1.LabelAttempt])
		if s, ok := desired.PodSettings(file.Annotations); ok && attempt > latest {
			settings, latest, newest = s, attempt, &files.Items[i]
		}
	}
	if newest == nil && p.Image == "" {
		return settings, nil, fmt.Errorf("run %q has no attempt that says which image its pods have: name the operator's "+
			"image with --image", run.Name)
	}
	return settings, newest, nil
}

// Node returns the node of the run's learner: only this node may mount artifacts in a claim. It returns "" if no
// learner runs, or if the artifacts are not in a claim.
func (p Pods) Node(ctx context.Context, run *v1alpha1.TrainingRun) (string, error) {
	if a := run.Spec.Artifacts; a.URL != "" && !strings.HasPrefix(a.URL, "file:") {
		return "", nil
	}
	var pods corev1.PodList
	labels := client.MatchingLabels{v1alpha1.LabelRunUID: string(run.UID), v1alpha1.LabelRole: v1alpha1.RoleLearner}
	if err := p.Kube.List(ctx, &pods, client.InNamespace(run.Namespace), labels); err != nil {
		return "", fmt.Errorf("listing the pods of run %q: %w", run.Name, err)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && pod.Spec.NodeName != "" {
			return pod.Spec.NodeName, nil
		}
	}
	return "", nil
}

// AwaitStart waits until the pod runs or has ended, and reports the reason of its wait whenever it changes.
func (p Pods) AwaitStart(ctx context.Context, run *v1alpha1.TrainingRun, pod *corev1.Pod) error {
	ticker := time.NewTicker(p.Period)
	defer ticker.Stop()
	deadline := time.NewTimer(p.Patience)
	defer deadline.Stop()
	reported := ""
	for {
		if err := p.Kube.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return fmt.Errorf("reading pod %q: %w", pod.Name, err)
		}
		if phase := pod.Status.Phase; phase == corev1.PodRunning || phase == corev1.PodSucceeded ||
			phase == corev1.PodFailed {
			return nil
		}
		waits := "The pod is starting."
		found := podstate.Waiting(pod, desired.ReaderContainer, fields(run))
		if found.NeedsAction() {
			waits = found.Sentences()
		}
		if found.NeedsAction() && waits != reported {
			reported = waits
			p.Report("the pod that %s waits: %s", p.Task, reported)
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			return fmt.Errorf("the pod that %s of run %q has not started within %s: %s", p.Task, run.Name, p.Patience, waits)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fields names the fields by which a person repairs the pod.
func fields(run *v1alpha1.TrainingRun) podstate.Fields {
	return podstate.Fields{
		Image:  "podOverrides[target=Learner].image, podOverrides[target=Learner].imagePullSecrets or --image",
		Secret: func(string) string { return "artifacts.secretRef or podOverrides[target=Learner].envFrom" },
		Claim: func(name string) string {
			if run.Spec.Artifacts != nil && run.Spec.Artifacts.ClaimName == name {
				return "artifacts.claimName"
			}
			return "podOverrides[target=Learner].volumes"
		},
		Pod: "podOverrides[target=Learner]",
	}
}

// ErrUnserved reports that a pod does not answer: its image cannot answer questions, or its port cannot be forwarded.
var ErrUnserved = errors.New("the pod does not answer questions")
