// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package artifacts has the commands that list and copy the artifacts of a run, and the pod by which the plugin reads
// them.
package artifacts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/runpod"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// Reader reads artifacts by a pod with the mounts and variables for artifacts of the learner's pod.
type Reader struct {
	runpod.Pods

	// deadline replaces the usual time limit of a pod, if it is not 0.
	deadline time.Duration
}

// NewReader returns a reader whose pods have the image of the run's newest attempt, or the given one if it is not
// empty.
func NewReader(env cli.IO, connection *cli.Connection, image string) (Reader, error) {
	pods, err := runpod.New(env, connection)
	pods.Image, pods.Task = image, "reads the artifacts"
	pods.Otherwise = "read the artifacts where they are stored, as docs/artifacts.md describes"
	return Reader{Pods: pods}, err
}

// errCut says that the log of a pod ended before the last delivery.
var errCut = errors.New("the log of the pod that reads the artifacts is not whole")

// Ask asks a pod a question, which is the arguments of its program, and returns the answer, such as the transcript
// of a step and which steps have one.
func (r Reader) Ask(ctx context.Context, run *v1alpha1.TrainingRun, question []string) (delivery.Delivery, error) {
	var answer delivery.Delivery
	err := r.read(ctx, run, question, func(d delivery.Delivery) error {
		answer = d
		return nil
	})
	return answer, err
}

// read asks a pod a question, and calls use with each delivery of the answer.
func (r Reader) read(ctx context.Context, run *v1alpha1.TrainingRun, question []string,
	use func(delivery.Delivery) error) (err error) {
	pod, err := r.podFor(ctx, run, question)
	if err != nil {
		return err
	}
	if err := r.Create(ctx, run, pod); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, r.Remove(ctx, pod))
	}()
	if err := r.AwaitStart(ctx, run, pod); err != nil {
		return err
	}
	log, err := r.Logs(ctx, pod.Namespace, pod.Name)
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

// podFor returns the pod that answers a question.
func (r Reader) podFor(ctx context.Context, run *v1alpha1.TrainingRun, question []string) (*corev1.Pod, error) {
	settings, _, err := r.Settings(ctx, run)
	if err != nil {
		return nil, err
	}
	node, err := r.Node(ctx, run)
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
	if r.deadline > 0 {
		pod.Spec.ActiveDeadlineSeconds = new(int64(r.deadline / time.Second))
	}
	return pod, nil
}
