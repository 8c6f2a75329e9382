// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scripted is a sequence of phases that record themselves.
type scripted struct {
	done []string
	at   int64
}

func (s *scripted) number() int64 { return s.at }

var errFailed = errors.New("the phase failed")

// record returns a phase that records its name and the context that it was given.
func record(name string, interruptible bool, err error) phase[*scripted] {
	return phase[*scripted]{name: name, interruptible: interruptible, do: func(s *scripted, ctx context.Context) error {
		s.done = append(s.done, name+" "+ctx.Value(contextKey{}).(string))
		s.at++
		return err
	}}
}

type contextKey struct{}

func TestPerform(t *testing.T) {
	cases := map[string]struct {
		phases []phase[*scripted]
		killAt string
		want   []string
		points []string
		err    error
	}{
		"phases are done in order": {
			phases: []phase[*scripted]{record("a", false, nil), record("b", false, nil)},
			want:   []string{"a lasting", "b lasting"}, points: []string{"a@1", "b@2"},
		},
		"interruptible phases end with the learner's drain": {
			phases: []phase[*scripted]{record("a", true, nil), record("b", false, nil)},
			want:   []string{"a soft", "b lasting"}, points: []string{"a@1", "b@2"},
		},
		"an error ends the sequence before its point": {
			phases: []phase[*scripted]{record("a", false, nil), record("b", false, errFailed), record("c", false, nil)},
			want:   []string{"a lasting", "b lasting"}, points: []string{"a@1"}, err: errFailed,
		},
		"a fault ends the sequence": {
			phases: []phase[*scripted]{record("a", false, nil), record("b", false, nil)}, killAt: "a",
			want: []string{"a lasting"}, points: []string{"a@1"}, err: ErrKilled,
		},
		"no phases": {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := context.WithValue(t.Context(), contextKey{}, "lasting")
			soft := context.WithValue(t.Context(), contextKey{}, "soft")
			var points []string
			s := &scripted{}
			err := perform(ctx, soft, s, tc.phases, func(_ context.Context, point string, step int64) error {
				points = append(points, point+"@"+string(rune('0'+step)))
				if point == tc.killAt {
					return ErrKilled
				}
				return nil
			})
			if !errors.Is(err, tc.err) {
				t.Errorf("perform = %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, s.done); diff != "" {
				t.Errorf("phases (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.points, points); diff != "" {
				t.Errorf("fault points (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPerformWithoutFault(t *testing.T) {
	ctx := context.WithValue(t.Context(), contextKey{}, "lasting")
	s := &scripted{}
	if err := perform(ctx, ctx, s, []phase[*scripted]{record("a", false, nil)}, nil); err != nil || len(s.done) != 1 {
		t.Errorf("perform = %v after %v", err, s.done)
	}
}

func TestFaultPoints(t *testing.T) {
	got := FaultPoints()
	// Tests and scripts outside this package use these names.
	order := []string{
		"open.claimed", "open.probed", "open.listed", "open.loaded", "open.saved", "step.submitted", "replies.clean",
		"sampler.announced", "row.written", "save.submitted", "save.done-unanswered", "save.answered", "claim.looked",
		"covered.sent", "retire.before",
	}
	var known []string
	seen := map[string]bool{}
	for _, point := range got {
		if seen[point] {
			t.Errorf("%s is the name of two phases", point)
		}
		seen[point] = true
		if strings.Contains(" "+strings.Join(order, " ")+" ", " "+point+" ") {
			known = append(known, point)
		}
	}
	if diff := cmp.Diff(order, known); diff != "" {
		t.Errorf("order of the protocol (-want +got):\n%s", diff)
	}
}
