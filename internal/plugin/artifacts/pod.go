// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package artifacts has the commands that list and copy what a run has written to its artifacts, and the pod by which
// the plugin reads them.
package artifacts

import (
	"context"
	"crypto/rand"
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
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// Reader reads artifacts by a pod that has what the learner's pod has of them.
type Reader struct {
	kube client.Client
	// logs returns the log of a pod, until the pod ends.
	logs func(ctx context.Context, namespace, pod string) (io.ReadCloser, error)
	// forward connects to a port of a pod.
	forward func(namespace, pod string, port int) (dialer, error)
	image   string
	report  func(format string, args ...any)
	// period is the time between two looks at a pod, and patience how long it may take to start.
	period, patience time.Duration
	// deadline bounds a pod in the place of the usual time, if it is not 0.
	deadline time.Duration
}

// dialer makes connections to a port of a pod.
type dialer interface {
	io.Closer
	Dial() (net.Conn, error)
}

// NewReader returns a reader whose pods have the image of the run's newest attempt, or the given one if it is not
// empty. It reports on the standard error what a pod waits for.
func NewReader(env cli.IO, connection *cli.Connection, image string) (Reader, error) {
	core, err := corev1client.NewForConfig(connection.Config)
	if err != nil {
		return Reader{}, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return Reader{
		kube: connection, image: image, period: 300 * time.Millisecond, patience: 2 * time.Minute,
		report: func(format string, args ...any) { fmt.Fprintf(env.Stderr, format+"\n", args...) },
		logs: func(ctx context.Context, namespace, pod string) (io.ReadCloser, error) {
			return core.Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
		},
		forward: func(namespace, pod string, port int) (dialer, error) {
			return forward(connection.Config, core.RESTClient(), namespace, pod, port)
		},
	}, nil
}

// errCut says that the log of a pod ended before the last delivery.
var errCut = errors.New("the log of the pod that reads the artifacts is not whole")

// Ask has a pod answer a question, which are arguments of its program, and returns the answer, such as the transcript
// of a step and which steps have one.
func (r Reader) Ask(ctx context.Context, run *v1alpha1.TrainingRun, question []string) (delivery.Delivery, error) {
	var answer delivery.Delivery
	err := r.read(ctx, run, question, func(d delivery.Delivery) error {
		answer = d
		return nil
	})
	return answer, err
}

// read has a pod answer a question, and calls use with each delivery of the answer.
func (r Reader) read(ctx context.Context, run *v1alpha1.TrainingRun, question []string,
	use func(delivery.Delivery) error) (err error) {
	pod, err := r.podFor(ctx, run, question)
	if err != nil {
		return err
	}
	if err := r.kube.Create(ctx, pod); err != nil {
		return explainCreate(run, err)
	}
	defer func() {
		err = errors.Join(err, r.remove(ctx, pod))
	}()
	if err := r.awaitStart(ctx, run, pod); err != nil {
		return err
	}
	log, err := r.logs(ctx, pod.Namespace, pod.Name)
	if err != nil {
		return fmt.Errorf("reading the log of pod %q: %w", pod.Name, err)
	}
	defer func() { _ = log.Close() }()
	deliveries := delivery.NewReader(log)
	for first := true; ; first = false {
		found, err := deliveries.Next()
		switch {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case first && errors.Is(err, delivery.ErrMissing):
			return fmt.Errorf("the image %s does not read these artifacts: upgrade the operator, or name its image "+
				"with --image", pod.Spec.Containers[0].Image)
		case err != nil:
			return fmt.Errorf("%w: %w", errCut, err)
		case found.Problem != "":
			return fmt.Errorf("reading the artifacts of run %q: %s", run.Name, found.Problem)
		}
		if err := use(found); err != nil || !found.More {
			return err
		}
	}
}

// remove deletes a pod, also where the person has interrupted the command.
func (r Reader) remove(ctx context.Context, pod *corev1.Pod) error {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := client.IgnoreNotFound(r.kube.Delete(ending, pod, client.GracePeriodSeconds(0))); err != nil {
		return fmt.Errorf("deleting pod %q: %w", pod.Name, err)
	}
	return nil
}

// podFor returns the pod that answers a question.
func (r Reader) podFor(ctx context.Context, run *v1alpha1.TrainingRun, question []string) (*corev1.Pod, error) {
	settings, err := r.settings(ctx, run)
	if err != nil {
		return nil, err
	}
	node, err := r.node(ctx, run)
	if err != nil {
		return nil, err
	}
	args := append([]string{"transcripts", "--run-uid=" + string(run.UID), "--dir=" + desired.ArtifactsDir},
		question...)
	if address := run.Spec.Artifacts.URL; address != "" {
		args = append(args, "--url="+address)
	}
	name := desired.ServiceName(run) + "-reader-" + strings.ToLower(rand.Text()[:6])
	pod := desired.ReaderPod(run, name, node, args, settings)
	if r.image != "" {
		pod.Spec.Containers[0].Image = r.image
	}
	if r.deadline > 0 {
		pod.Spec.ActiveDeadlineSeconds = new(int64(r.deadline / time.Second))
	}
	return pod, nil
}

// settings returns those that the pods of the newest attempt had.
func (r Reader) settings(ctx context.Context, run *v1alpha1.TrainingRun) (desired.Settings, error) {
	var files corev1.ConfigMapList
	labels := client.MatchingLabels{v1alpha1.LabelRunUID: string(run.UID), v1alpha1.LabelRole: v1alpha1.RoleLearner}
	if err := r.kube.List(ctx, &files, client.InNamespace(run.Namespace), labels); err != nil {
		return desired.Settings{}, fmt.Errorf("listing the run files of run %q: %w", run.Name, err)
	}
	found, latest := desired.Settings{}, -1
	for _, file := range files.Items {
		attempt, _ := strconv.Atoi(file.Labels[v1alpha1.LabelAttempt])
		if s, ok := desired.PodSettings(file.Annotations); ok && attempt > latest {
			found, latest = s, attempt
		}
	}
	if latest < 0 && r.image == "" {
		return found, fmt.Errorf("run %q has no attempt that says which image its pods have: name the operator's image "+
			"with --image", run.Name)
	}
	return found, nil
}

// node returns the node of the run's learner, which alone may mount the artifacts; "" if no learner runs.
func (r Reader) node(ctx context.Context, run *v1alpha1.TrainingRun) (string, error) {
	if a := run.Spec.Artifacts; a.URL != "" && !strings.HasPrefix(a.URL, "file:") {
		return "", nil
	}
	var pods corev1.PodList
	labels := client.MatchingLabels{v1alpha1.LabelRunUID: string(run.UID), v1alpha1.LabelRole: v1alpha1.RoleLearner}
	if err := r.kube.List(ctx, &pods, client.InNamespace(run.Namespace), labels); err != nil {
		return "", fmt.Errorf("listing the pods of run %q: %w", run.Name, err)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && pod.Spec.NodeName != "" {
			return pod.Spec.NodeName, nil
		}
	}
	return "", nil
}

// awaitStart waits until the pod runs or has ended, and reports what it waits for whenever that changes.
func (r Reader) awaitStart(ctx context.Context, run *v1alpha1.TrainingRun, pod *corev1.Pod) error {
	ticker := time.NewTicker(r.period)
	defer ticker.Stop()
	deadline := time.NewTimer(r.patience)
	defer deadline.Stop()
	reported := ""
	for {
		if err := r.kube.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
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
			r.report("the pod that reads the artifacts waits: %s", reported)
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			return fmt.Errorf("the pod that reads the artifacts of run %q has not started within %s: %s", run.Name, r.patience,
				waits)
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
			if run.Spec.Artifacts.ClaimName == name {
				return "artifacts.claimName"
			}
			return "podOverrides[target=Learner].volumes"
		},
		Pod: "podOverrides[target=Learner]",
	}
}

func explainCreate(run *v1alpha1.TrainingRun, err error) error {
	err = fmt.Errorf("creating a pod that reads the artifacts of run %q: %w", run.Name, err)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: ask for Kubernetes' role edit in namespace %s, or read the artifacts where they are stored, "+
			"as docs/artifacts.md describes", err, run.Namespace)
	}
	return err
}
