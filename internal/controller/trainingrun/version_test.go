// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// runFiles is an API server that has the run files of some attempts, by their names.
type runFiles map[string]string

func (f runFiles) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	content, ok := f[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	config := object.(*corev1.ConfigMap)
	config.Name, config.Data = key.Name, map[string]string{contract.RunFileName: content,
		desired.PinsKey: `{"env": {"definition": {"dataset": {"arithmetic": {}}}}}`}
	return nil
}

func (runFiles) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// noRuns is a client of an API server without runs. Only List may be called.
type noRuns struct{ client.Client }

func (noRuns) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// prepareNext prepares the next attempt of a run whose first attempt ended and left a run file.
func prepareNext(t *testing.T, run *v1alpha1.TrainingRun, file string) plan {
	t.Helper()
	files := runFiles{}
	if file != "" {
		files[desired.RunFileName(run, 1)] = file
	}
	r := New(Reconciler{Client: noRuns{}, Live: files, Now: func() time.Time { return now }})
	p, err := r.prepare(t.Context(), run, observe.State{}, plan{start: 2})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRunKeepsItsFormatVersion checks that the run file of an earlier attempt decides the fixed settings of the next
// one, including the version of the format.
func TestRunKeepsItsFormatVersion(t *testing.T) {
	golden, err := os.ReadFile("../../contract/testdata/run-file.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	run := newRun(attempts(endedAttempt(1, contract.CauseDrained, 0, 5, 0)))
	p := prepareNext(t, run, string(golden))
	if p.file == nil {
		t.Fatalf("the attempt is blocked: %+v", p.blocked)
	}
	before, err := contract.DecodeRunFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if p.file.Version != 1 || p.file.SpecDigest != before.SpecDigest || p.file.Attempt != 2 {
		t.Errorf("the next run file has version %d, digest %s and attempt %d", p.file.Version, p.file.SpecDigest,
			p.file.Attempt)
	}
}

// TestRunFileOfALaterVersionBlocks checks that a run waits, after a rollback, for a build that reads its file.
func TestRunFileOfALaterVersionBlocks(t *testing.T) {
	later := contract.FormatVersion + 1
	run := newRun(attempts(endedAttempt(1, contract.CauseDrained, 0, 5, 0)))
	p := prepareNext(t, run, fmt.Sprintf(`{"version": %d, "surprise": true}`, later))
	want := fmt.Sprintf("the run file has version %d, and this build reads version", later)
	if p.start != 0 || p.blocked == nil || p.blocked.Code != problem.RunFileUnreadable ||
		!strings.Contains(p.blocked.Message(), want) ||
		!strings.Contains(p.blocked.Message(), "Install the version of the operator that wrote it") {
		t.Errorf("the plan starts attempt %d, blocked by %+v; want %q", p.start, p.blocked, want)
	}
}
