// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/diagnosis"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/historymap"
)

// TestWriteOfAHostileReplyEnds writes replies of a learner whose image a tenant chose: Reconcile calls Write, and a
// reply must not keep Reconcile from returning.
func TestWriteOfAHostileReplyEnds(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	kube := fake.NewClientBuilder().WithScheme(scheme).Build()
	writer := NewHistoryWriter(kube, kube, time.Now)
	run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "run", UID: "0123456789"}}
	written := make(chan time.Duration, 1)
	go func() {
		var wait time.Duration
		for poll := range int64(4) {
			reply := contract.HeartbeatReply{RunUID: string(run.UID), Attempt: 1,
				Progress: contract.Progress{Phase: contract.PhaseOpening}}
			for n := range int64(contract.MaxRecords) {
				number := poll*contract.MaxRecords + n + 1
				metrics := map[string]float64{}
				for i := range 300 {
					metrics[fmt.Sprintf("test/%d/%0240d", number, i)] = -1.23456e-7
				}
				reply.Records = append(reply.Records, contract.Record{Number: number, Step: number, Lineage: "l", Metrics: metrics})
			}
			wait = max(wait, writer.Write(t.Context(), run, "pod", &reply, time.Second))
		}
		written <- wait
	}()
	select {
	case wait := <-written:
		if wait != 0 {
			t.Errorf("Write is to be tried again after %s, want that all is written", wait)
		}
	case <-time.After(10 * time.Minute):
		t.Fatal("Write has not returned after ten minutes")
	}
	var maps corev1.ConfigMapList
	if err := kube.List(t.Context(), &maps); err != nil {
		t.Fatal(err)
	}
	bytes := 0
	for _, object := range maps.Items {
		bytes += len(object.Data[history.DataKey])
	}
	_, h, err := historymap.Read(t.Context(), kube, run)
	if err != nil || bytes > history.MaxBytes || h.Known != 4*contract.MaxRecords {
		t.Errorf("the history has %d bytes and record %d (%v), want at most %d bytes and record %d", bytes, h.Known, err,
			history.MaxBytes, 4*contract.MaxRecords)
	}
}

// TestFindings writes a history with one manager, and reads it with the next.
func TestFindings(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	kube := fake.NewClientBuilder().WithScheme(scheme).Build()
	run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "n", UID: "u"}}
	reply := contract.HeartbeatReply{RunUID: "u", Progress: contract.Progress{Phase: contract.PhaseTraining}}
	for n := range int64(10) {
		reply.Records = append(reply.Records, contract.Record{Number: n + 1, Step: n + 1, Lineage: "l",
			Metrics: map[string]float64{contract.MetricReward: 0, "env/all/by_group/frac_mixed": 0}})
	}
	writer := NewHistoryWriter(kube, kube, time.Now)
	if findings, ok := writer.Findings(run); ok {
		t.Errorf("Findings() = %v before the history is read, want not ok", findings)
	}
	writer.Write(t.Context(), run, "pod", &reply, time.Second)
	next := NewHistoryWriter(kube, kube, time.Now)
	next.Known(t.Context(), run, "pod")
	for name, w := range map[string]*HistoryWriter{"the writer": writer, "the next manager": next} {
		findings, ok := w.Findings(run)
		if !ok || len(findings) != 1 || findings[0].Cause != diagnosis.NoGradient {
			t.Errorf("%s: Findings() = %v, %v, want %s", name, findings, ok, diagnosis.NoGradient)
		}
	}
}
