// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcripts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/runpod"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// pods counts the pods of a test and their requests.
type pods struct {
	opened, closed, asked, once int
	// broken makes pods answer only once, and unserved makes them answer nothing.
	broken, unserved bool
	problem          string
	// keys says that this machine has keys of the store; refusal is the error if the store refuses them.
	keys    bool
	refusal error
	stores  int
}

// fakePod answers as its cluster says.
type fakePod struct {
	of    *pods
	asked int
}

func (p *fakePod) Ask(_ context.Context, step int64, _ bool) (delivery.Delivery, error) {
	p.asked++
	if p.of.broken && p.asked > 1 {
		return delivery.Delivery{}, errors.New("the pod has ended")
	}
	p.of.asked++
	return p.of.answer(step), nil
}

func (p *fakePod) Close(context.Context) error {
	p.of.closed++
	return nil
}

func (p *pods) answer(step int64) delivery.Delivery {
	data, err := json.Marshal(transcript.Step{Step: step})
	if err != nil {
		panic(err)
	}
	return delivery.Delivery{Steps: []int64{1, 2, step}, Transcript: data, Problem: p.problem}
}

func (p *pods) readers() *Readers {
	return &Readers{pods: map[types.UID]*pod{},
		direct: func(context.Context, *v1alpha1.TrainingRun, question) (delivery.Delivery, bool, error) {
			p.stores++
			return p.answer(2), p.keys, p.refusal
		},
		open: func(context.Context, *v1alpha1.TrainingRun) (session, error) {
			p.opened++
			if p.unserved {
				return nil, fmt.Errorf("connecting: %w", runpod.ErrUnserved)
			}
			return &fakePod{of: p}, nil
		},
		once: func(_ context.Context, _ *v1alpha1.TrainingRun, asked question) (delivery.Delivery, error) {
			p.once++
			return p.answer(asked.step), nil
		},
	}
}

// read reads a step of a run, and fails if it gets another step.
func read(t *testing.T, r *Readers, uid types.UID, step int64) {
	t.Helper()
	run := newRun()
	run.UID = uid
	got, steps, err := r.Read(t.Context(), run, step, false)
	if err != nil || got.Step != step || len(steps) != 3 {
		t.Fatalf("step %d is read as %+v of %v, %v", step, got, steps, err)
	}
}

func TestReadersKeepAPodOfARun(t *testing.T) {
	var p pods
	r := p.readers()
	for step := range int64(4) {
		read(t, r, "a", step+3)
	}
	if p.opened != 1 || p.asked != 4 || p.closed != 0 {
		t.Errorf("of %d pods %d are closed, after %d questions", p.opened, p.closed, p.asked)
	}
	for _, uid := range []types.UID{"b", "c", "d"} {
		read(t, r, uid, 3)
	}
	if p.opened != 4 || p.closed != 1 {
		t.Errorf("of %d pods %d are closed, want 4 and 1", p.opened, p.closed)
	}
	read(t, r, "b", 4) // The pod of the first run was closed, and this one not.
	if p.opened != 4 {
		t.Errorf("%d pods are opened, want 4", p.opened)
	}
	if err := r.Close(t.Context()); err != nil || p.closed != p.opened {
		t.Errorf("in the end %d of %d pods are closed, %v", p.closed, p.opened, err)
	}
}

func TestReadersReplaceAPodThatHasEnded(t *testing.T) {
	p := pods{broken: true}
	r := p.readers()
	for step := range int64(3) {
		read(t, r, "a", step+3)
	}
	if p.opened != 3 || p.closed != 2 {
		t.Errorf("of %d pods %d are closed, want 3 and 2", p.opened, p.closed)
	}
}

// TestReadersOfAnOldImage reads the logs of pods that answer one question each.
func TestReadersOfAnOldImage(t *testing.T) {
	p := pods{unserved: true}
	r := p.readers()
	for step := range int64(3) {
		read(t, r, "a", step+3)
	}
	if p.opened != 1 || p.once != 3 {
		t.Errorf("%d pods were tried, and %d asked once, want 1 and 3", p.opened, p.once)
	}
}

func TestReadersSayProblems(t *testing.T) {
	p := pods{problem: "access denied"}
	run := newRun()
	if _, _, err := p.readers().Read(t.Context(), run, 3, false); err == nil ||
		!strings.Contains(err.Error(), "access denied") {
		t.Errorf("the error is %v", err)
	}
	run.Spec.Artifacts = nil
	if _, _, err := p.readers().Read(t.Context(), run, 3, false); err == nil ||
		!strings.Contains(err.Error(), "set spec.artifacts") || p.opened != 1 {
		t.Errorf("without artifacts the error is %v, and %d pods are opened", err, p.opened)
	}
}

func TestAStoreIsReadWithThisMachinesKeys(t *testing.T) {
	p := &pods{keys: true}
	r := p.readers()
	read(t, r, "a", 2)
	read(t, r, "a", 2)
	if p.opened != 0 || p.stores != 2 {
		t.Errorf("%d pods are opened, and the store is read %d times", p.opened, p.stores)
	}
	p.refusal = errors.New("AccessDenied")
	read(t, r, "a", 3)
	read(t, r, "a", 4)
	if p.opened != 1 || p.stores != 3 {
		t.Errorf("keys that are refused: %d pods are opened, and the store is read %d times", p.opened, p.stores)
	}
	p.broken, p.problem = false, "no such claim"
	if _, _, err := r.Read(t.Context(), newRun(), 4, false); err == nil {
		t.Error("a problem of the pod is no error")
	}
}
