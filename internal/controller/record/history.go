// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/objectmap"
	"github.com/tinker-operator/tinker-operator/internal/diagnosis"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/historymap"
)

// pause is the time before a write that failed is tried again.
const pause = 30 * time.Second

// manyRecords is the number of records in a reply from which they are written at once, so that learners need not keep
// them.
const manyRecords = contract.MaxRecords / 2

// HistoryWriter writes histories. Its methods are safe for concurrent use with different runs.
type HistoryWriter struct {
	client client.Client
	live   client.Reader
	now    func() time.Time
	// runs has the known state of the ConfigMaps.
	runs objectmap.Map[known]
}

// known is the known state of a run's ConfigMap.
type known struct {
	// read says that the next three fields are known.
	read   bool
	source string
	number int64
	// findings are reasons why the policy does not learn, by the history that was last read or written.
	findings []diagnosis.Finding
	// wrote is the time of the last write of the history. A failed write is tried again at retry.
	wrote, retry time.Time
}

// NewHistoryWriter returns a HistoryWriter. live reads from the API server.
func NewHistoryWriter(c client.Client, live client.Reader, now func() time.Time) *HistoryWriter {
	return &HistoryWriter{client: c, live: live, now: now}
}

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;update;delete

// Known returns the number of the newest stored record of a learner's pod; 0 if there is none, or if it cannot be read.
func (w *HistoryWriter) Known(ctx context.Context, run *v1alpha1.TrainingRun, pod types.UID) int64 {
	k := w.runs.Get(run)
	if !k.read {
		_, h, err := w.read(ctx, run)
		if err != nil {
			log.FromContext(ctx).Info("history is not read", "err", err.Error())
			return 0
		}
		k.read, k.source, k.number, k.findings = true, h.Source, h.Known, diagnose(run, h)
		w.runs.Set(run, k)
	}
	if k.source != string(pod) {
		return 0
	}
	return k.number
}

// Write stores the records of a reply of a learner's pod, and returns when to try again; 0 if nothing is left to write.
// every is the time between two writes while the run trains. A history that cannot be written does not affect the run.
func (w *HistoryWriter) Write(ctx context.Context, run *v1alpha1.TrainingRun, pod types.UID,
	reply *contract.HeartbeatReply, every time.Duration) time.Duration {
	if reply == nil || len(reply.Records) == 0 || reply.RunUID != string(run.UID) {
		return 0
	}
	newest := reply.Records[len(reply.Records)-1].Number
	if newest <= w.Known(ctx, run, pod) {
		return 0
	}
	k := w.runs.Get(run)
	immediately := len(reply.Records) >= manyRecords || reply.MoreRecords || reply.Progress.Phase != contract.PhaseTraining
	next := k.retry
	if due := k.wrote.Add(every); !immediately && due.After(next) {
		next = due
	}
	if wait := next.Sub(w.now()); wait > 0 {
		return wait
	}
	h, err := w.add(ctx, run, pod, reply.Records)
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return time.Second
	case err != nil:
		log.FromContext(ctx).Error(err, "history is not written")
		k.retry = w.now().Add(pause)
		w.runs.Set(run, k)
		return pause
	}
	w.runs.Set(run, known{read: true, source: h.Source, number: h.Known, findings: diagnose(run, h), wrote: w.now()})
	return 0
}

// Findings returns why the policy of a run does not learn; ok is false while the history is not known.
func (w *HistoryWriter) Findings(run *v1alpha1.TrainingRun) (findings []diagnosis.Finding, ok bool) {
	k := w.runs.Get(run)
	return k.findings, k.read
}

func diagnose(run *v1alpha1.TrainingRun, h *history.History) []diagnosis.Finding {
	var settings diagnosis.Settings
	if a := run.Spec.Algorithm; a != nil {
		settings.GradClipNorm = a.Optimizer.GradClipNorm
	}
	return diagnosis.Of(h.Rows, settings)
}

// Forget forgets a run.
func (w *HistoryWriter) Forget(run types.NamespacedName) { w.runs.Forget(run) }

// read returns the ConfigMap of the head, nil if it does not exist, and the history. A history that cannot be decoded
// is replaced.
func (w *HistoryWriter) read(ctx context.Context,
	run *v1alpha1.TrainingRun) (*corev1.ConfigMap, *history.History, error) {
	head, h, err := historymap.Read(ctx, w.live, run)
	if errors.Is(err, historymap.ErrInvalid) {
		log.FromContext(ctx).Error(err, "history begins anew")
		return head, &history.History{}, nil
	}
	return head, h, err
}

// add adds records to the history.
func (w *HistoryWriter) add(ctx context.Context, run *v1alpha1.TrainingRun, pod types.UID,
	records []contract.Record) (*history.History, error) {
	head, h, err := w.read(ctx, run)
	if err != nil {
		return nil, err
	}
	before := h.Chunks()
	if !h.Add(string(pod), records) {
		return h, nil
	}
	parts, err := h.Encode()
	if err != nil {
		return nil, err
	}
	return h, historymap.Write(ctx, w.client, run, head, before, parts)
}
