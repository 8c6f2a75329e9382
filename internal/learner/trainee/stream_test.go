// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

// smallRequests makes the models of a factory at a simulator that takes two sequences a request.
func smallRequests(t *testing.T) *Factory {
	t.Helper()
	config := tinker.DefaultServerConfig()
	config.ParallelChunks, config.MaxChunkLen = false, 2
	_, url := simulatortest.Serve(t, tinkersim.Options{APIKey: key, Config: &config})
	api, err := client.New(client.Config{BaseURL: url, APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	o, _ := opener(t)
	o.API, o.Session = api, func(ctx context.Context) (string, error) { return api.CreateSession(ctx, client.SessionRequest{}) }
	return o
}

// trainTwice makes two steps, of which the second has the weights of the first, and returns the replies. The first data
// of each are streamed, in parts of the given size, if that is not 0.
func trainTwice(t *testing.T, step Step, first, part int) (all []Replies) {
	t.Helper()
	m := fresh(t, smallRequests(t))
	for range 2 {
		own := step
		if part > 0 {
			own.Streamed = m.Stream(t.Context(), step.Losses)
			for from := 0; from < first; from += part {
				if _, err := own.Streamed.Add(t.Context(), step.Datums[from:min(from+part, first)]); err != nil {
					t.Fatal(err)
				}
			}
		}
		training, err := m.Train(t.Context(), own)
		if err != nil {
			t.Fatal(err)
		}
		replies, err := training.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, replies)
	}
	return all
}

// TestStreamedStepIsThatOfTrain compares steps whose first data are streamed with steps whose data are all known, with one loss and with
// two, whose data alternate.
func TestStreamedStepIsThatOfTrain(t *testing.T) {
	for name, algorithm := range map[string]contract.Algorithm{
		"one loss": ofRoles(sampling), "two losses": ofRoles(sampling, contract.Role{Name: "judge", Loss: clipped}),
		"two losses but no data of the first": ofRoles(narrow, contract.Role{Name: "judge", Loss: clipped}, contract.Role{Name: "solver", Loss: sampling}),
	} {
		all := step
		all.Substeps, all.Losses, all.Datums = 1, LossesOf(algorithm), nil
		for i := range 9 {
			d := datum(int32(48 + i))
			d.Role = []string{"solver", "judge", "solver"}[i%3]
			all.Datums = append(all.Datums, d)
		}
		want := trainTwice(t, all, 0, 0)
		for _, part := range []int{1, 2, 5} {
			for _, first := range []int{1, 5, 9} {
				t.Run(fmt.Sprintf("%s, %d of 9 in parts of %d", name, first, part), func(t *testing.T) {
					if diff := cmp.Diff(want, trainTwice(t, all, first, part)); diff != "" {
						t.Errorf("replies (-together +streamed):\n%s", diff)
					}
				})
			}
		}
	}
}

// TestNoStateContainsAPartOfAStep has a model refuse to save its state from the first streamed request to optim_step.
func TestNoStateContainsAPartOfAStep(t *testing.T) {
	m := fresh(t, smallRequests(t))
	stream := m.Stream(t.Context(), step.Losses)
	add := func(d ...rl.Datum) bool {
		t.Helper()
		submitted, err := stream.Add(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		return submitted
	}
	if add(step.Datums[0]) {
		t.Error("a request was submitted for one datum, want it for two")
	}
	save(t, m, "before")
	if !add(step.Datums[1]) {
		t.Error("no request was submitted for two datums")
	}
	if _, err := m.SaveState(t.Context(), "between"); !errors.Is(err, errPartOfStep) {
		t.Errorf("saving a part of a step: %v, want %v", err, errPartOfStep)
	}
	whole := step
	whole.Substeps, whole.Streamed = 1, stream
	if _, err := m.Train(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	save(t, m, "after")
}

// TestStepBeginsWithWhatWasStreamed refuses steps that do not contain what was submitted before.
func TestStepBeginsWithWhatWasStreamed(t *testing.T) {
	for name, change := range map[string]func(*Step){
		"fewer data":     func(s *Step) { s.Datums = s.Datums[:1] },
		"no data":        func(s *Step) { s.Datums = nil },
		"other substeps": func(s *Step) { s.Substeps = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			m := fresh(t, smallRequests(t))
			other := step
			other.Substeps, other.Streamed = 1, m.Stream(t.Context(), step.Losses)
			if _, err := other.Streamed.Add(t.Context(), step.Datums); err != nil {
				t.Fatal(err)
			}
			change(&other)
			if _, err := m.Train(t.Context(), other); !errors.Is(err, errNotStreamed) {
				t.Errorf("training gives %v, want %v", err, errNotStreamed)
			}
		})
	}
}

// TestNothingIsStreamedWhereGradientsAreAveraged needs the number of sequences of a step for each of its advantages.
func TestNothingIsStreamedWhereGradientsAreAveraged(t *testing.T) {
	o, _ := opener(t)
	o.Averages.Store(true)
	if stream := fresh(t, o).Stream(t.Context(), step.Losses); stream != nil {
		t.Error("a step is streamed, want none")
	}
}
