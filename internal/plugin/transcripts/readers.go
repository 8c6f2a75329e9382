// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcripts

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/runpod"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// mostPods limits the pods that wait for questions at once, each of another run.
const mostPods = 3

// storePatience bounds the wait for a store: some stores can only be reached from within the cluster.
const storePatience = 30 * time.Second

// session is a pod that answers questions.
type session interface {
	Ask(ctx context.Context, step int64, evaluation bool) (delivery.Delivery, error)
	Close(ctx context.Context) error
}

// Readers reads transcripts directly from the stores that this machine has keys of, and other transcripts through a
// pod for each run, which stays for further questions.
type Readers struct {
	// direct reads a store with the keys of this machine; false if it has none.
	direct func(ctx context.Context, run *v1alpha1.TrainingRun, asked question) (delivery.Delivery, bool, error)
	// open starts a pod that answers questions, and once starts a pod for a single question.
	open func(ctx context.Context, run *v1alpha1.TrainingRun) (session, error)
	once func(ctx context.Context, run *v1alpha1.TrainingRun, asked question) (delivery.Delivery, error)

	mu   sync.Mutex
	pods map[types.UID]*pod
}

// pod is the pod of a run. mu is held while it is used.
type pod struct {
	mu      sync.Mutex
	session session
	// unserved says that no pod of the run answers questions.
	unserved bool
	// refused is the error of reading the store with the keys of this machine, which is not tried again.
	refused error
	used    time.Time
}

// NewReaders returns readers without a pod. Close deletes the pods that they start.
func NewReaders(env cli.IO, connection *cli.Connection) *Readers {
	return &Readers{pods: map[types.UID]*pod{},
		direct: func(ctx context.Context, run *v1alpha1.TrainingRun, asked question) (delivery.Delivery, bool, error) {
			if !hasKeys(run, env.Getenv) {
				return delivery.Delivery{}, false, nil
			}
			ctx, cancel := context.WithTimeout(ctx, storePatience)
			defer cancel()
			found, err := readStore(ctx, run, asked, env.Getenv)
			return found, true, err
		},
		open: func(ctx context.Context, run *v1alpha1.TrainingRun) (session, error) {
			reader, err := artifacts.NewReader(env, connection, "")
			if err != nil {
				return nil, err
			}
			return reader.Open(ctx, run)
		},
		once: func(ctx context.Context, run *v1alpha1.TrainingRun, asked question) (delivery.Delivery, error) {
			return ask(ctx, env, connection, run, "", asked)
		},
	}
}

// Read returns the transcript of a step of training, or of the evaluation after it, and the steps that have one. The
// newest step is Newest. A step without a transcript is an error with the steps.
func (r *Readers) Read(ctx context.Context, run *v1alpha1.TrainingRun, step int64,
	evaluation bool) (transcript.Step, []int64, error) {
	if err := written(run, false); err != nil {
		return transcript.Step{}, nil, err
	}
	found, err := r.ask(ctx, run, question{step: step, evaluation: evaluation})
	if err != nil {
		return transcript.Step{}, nil, err
	}
	if found.Problem != "" {
		return transcript.Step{}, nil, fmt.Errorf("reading the artifacts of run %q: %s", run.Name, found.Problem)
	}
	decoded, err := chosen(run, step, found)
	return decoded, found.Steps, err
}

func (r *Readers) ask(ctx context.Context, run *v1alpha1.TrainingRun, asked question) (delivery.Delivery, error) {
	p := r.of(ctx, run.UID)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == nil {
		found, tried, err := r.direct(ctx, run, asked)
		if tried && (err == nil || ctx.Err() != nil) {
			return found, err
		}
		p.refused = err
	}
	found, err := r.askPod(ctx, run, p, asked)
	if err != nil && p.refused != nil {
		err = errors.Join(err, p.refused)
	}
	return found, err
}

// askPod asks the pod of a run. The lock of the pod is held.
func (r *Readers) askPod(ctx context.Context, run *v1alpha1.TrainingRun, p *pod,
	asked question) (delivery.Delivery, error) {
	if p.unserved {
		return r.once(ctx, run, asked)
	}
	// A pod ends if it is not asked for a while, and another pod replaces it.
	if p.session != nil {
		found, err := p.session.Ask(ctx, asked.step, asked.evaluation)
		if err == nil || ctx.Err() != nil {
			return found, err
		}
		_ = p.session.Close(ctx)
		p.session = nil
	}
	opened, err := r.open(ctx, run)
	if errors.Is(err, runpod.ErrUnserved) {
		p.unserved = true
		return r.once(ctx, run, asked)
	}
	if err != nil {
		return delivery.Delivery{}, err
	}
	p.session = opened
	return opened.Ask(ctx, asked.step, asked.evaluation)
}

// of returns the pod of a run, and deletes the least recently used pod if there are too many.
func (r *Readers) of(ctx context.Context, uid types.UID) *pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.pods[uid] == nil && len(r.pods) >= mostPods {
		var oldest types.UID
		for other, p := range r.pods {
			if r.pods[oldest] == nil || p.used.Before(r.pods[oldest].used) {
				oldest = other
			}
		}
		dropped := r.pods[oldest]
		delete(r.pods, oldest)
		_ = dropped.close(ctx)
	}
	if r.pods[uid] == nil {
		r.pods[uid] = &pod{}
	}
	r.pods[uid].used = time.Now()
	return r.pods[uid]
}

// close deletes the pod once it has answered.
func (p *pod) close(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil {
		return nil
	}
	err := p.session.Close(ctx)
	p.session = nil
	return err
}

// Close deletes all pods, even if the context has ended.
func (r *Readers) Close(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, p := range r.pods {
		errs = append(errs, p.close(ctx))
	}
	return errors.Join(errs...)
}
