// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/uitest"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

const countdown = "/environments/research/countdown"

func TestTaskOfAnEnvironment(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	f.expect(t, countdown, countdown+"?task=countdown-qwen3#task", "!each once, to make 24")
	f.expect(t, countdown+"?task=countdown-qwen3", "Use 3, 5, 8 and 2, each once, to make 24", "Read the replies to it",
		"train task 48", "!Let me check")
	f.expect(t, countdown+"?task=notes-sft", "has no conversation of the environment")
	f.expect(t, countdown+"?task=nobody", "does not exist")
	f = newFixture(t, interceptor.Funcs{}, func(context.Context, *v1alpha1.TrainingRun, int64, bool) (transcript.Step,
		[]int64, error) {
		return transcript.Step{}, nil, errors.New("pods is forbidden")
	})
	f.expect(t, countdown+"?task=countdown-qwen3", "pods is forbidden")
}

func TestUsageCurves(t *testing.T) {
	h := &history.History{Rows: []history.Row{
		{Step: 1, Time: 10, Metrics: map[string]float64{"batch/prompt_tokens": 10, "batch/sampled_tokens": 20}},
		{Step: 2, Time: 20, Metrics: map[string]float64{"reward": 1}},
		// The history leaves out step 3.
		{Step: 4, Time: 40, Metrics: map[string]float64{"batch/sampled_tokens": 30}},
	}}
	cost := 6.0
	used := withUsage(h, &cost)
	if len(used.Rows) != 2 || used.Rows[0].Metrics[curveTokens] != 30 || used.Rows[1].Metrics[curveTokens] != 120 ||
		math.Abs(used.Rows[0].Metrics[curveDollars]-1.5) > 1e-9 || used.Rows[1].Metrics[curveDollars] != 6 {
		t.Errorf("the usage is %+v", used.Rows)
	}
	if _, ok := withUsage(h, nil).Rows[0].Metrics[curveDollars]; ok {
		t.Error("an unknown cost is drawn")
	}
	if got := forksAt(h, []int64{3, 9}, false); !slices.Equal(got, []float64{3, 9}) {
		t.Errorf("forks are at %v", got)
	}
	if got := forksAt(h, []int64{3, 9}, true); !slices.Equal(got, []float64{40}) {
		t.Errorf("forks are at the times %v", got)
	}
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	f.expect(t, stuck, "curve.json?metric=usage/tokens", "curve.json?metric=usage/dollars")
	_, page := f.get(t, stuck+"/curve.json?metric=usage/dollars")
	var drawn curves
	if err := json.Unmarshal([]byte(page), &drawn); err != nil {
		t.Fatal(err)
	}
	if y := drawn.Lines[0].Y; len(y) != 48 || math.Abs(*y[47]-22.08) > 1e-6 || *y[0] >= *y[1] {
		t.Errorf("the cost is %v", y)
	}
	if !slices.Equal(drawn.Forks, []float64{40}) || !slices.Equal(drawn.Marks, []float64{22}) {
		t.Errorf("forks are at %v and attempts began at %v", drawn.Forks, drawn.Marks)
	}
}

// TestExpiredToken checks that pages report an expired token in the words of the API server, and keep the known state.
func TestExpiredToken(t *testing.T) {
	expired := false
	refuse := func() error {
		if expired {
			return apierrors.NewUnauthorized("the token has expired")
		}
		return nil
	}
	f := newFixture(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			options ...client.GetOption) error {
			if err := refuse(); err != nil {
				return err
			}
			return c.Get(ctx, key, object, options...)
		}}, uitest.Read)
	f.expect(t, stuck+"/actions/suspend", `method="post"`)
	expired = true
	f.expect(t, "/", uitest.Stuck)
	f.expect(t, stuck+"/actions/suspend", "the token has expired", `!method="post"`)
	f.expect(t, "/runs/research/countdown-llama", "The history cannot be read", "the token has expired", "Conditions")
	if answer, page := f.get(t, stuck+"/spec"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("the spec is answered with %s:\n%s", answer.Status, page)
	}
}
