// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// invalidToken is not in the vocabulary.
const invalidToken = 1 << 20

// strictEndpoint validates training data before it accepts them. It answers data with an invalid token with a status,
// whereas the simulator accepts such data and reports a failed result.
type strictEndpoint struct{ status int }

// RoundTrip refuses a request, or forwards it.
func (s strictEndpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/forward_backward") {
		return http.DefaultTransport.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	valid, err := hasValidTokens(r.Header.Get("Content-Encoding"), body)
	if err != nil {
		return nil, err
	}
	if valid {
		forwarded := r.Clone(r.Context())
		forwarded.Body = io.NopCloser(bytes.NewReader(body))
		return http.DefaultTransport.RoundTrip(forwarded)
	}
	return &http.Response{
		StatusCode: s.status, Status: strconv.Itoa(s.status), Header: http.Header{"Content-Type": {tinker.ContentJSON}},
		Request: r,
		Body:    io.NopCloser(strings.NewReader(`{"detail":"data are refused"}`)),
	}, nil
}

func hasValidTokens(encoding string, body []byte) (bool, error) {
	if encoding != "" {
		var err error
		if body, err = tinker.Decompress(encoding, body); err != nil {
			return false, err
		}
	}
	request, err := tinker.DecodeForwardBackward(body)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(request.Data, func(d tinker.Datum) bool {
		tokens, _ := d.ModelInput.TextTokens()
		return slices.Contains(tokens, invalidToken)
	}), nil
}

// TestDataRefusedAtSubmit refuses a group before the endpoint accepts the pass: the group becomes a tombstone, and the
// run has the weights of a run in which the group was always a tombstone.
func TestDataRefusedAtSubmit(t *testing.T) {
	t.Parallel()
	const slot = 5
	reference := newFixture(t, nil)
	reference.startWorker("w0", behavior{outcome: func(at int64) rl.Outcome {
		if at == slot {
			return rl.InvalidTokens
		}
		return rl.Usable
	}})
	want := reference.outcome(reference.waitFor(reference.startLearner(1, nil), contract.CauseCompleted))
	for _, status := range []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			w := newFixtureOn(t, tinkersim.Options{SessionTimeout: time.Minute, GapPatience: 20 * time.Millisecond}, nil)
			w.http = &http.Client{Transport: strictEndpoint{status}}
			w.startWorker("w0", behavior{change: func(g rl.Group) rl.Group {
				if g.Key.Kind == rl.Train && g.Key.Slot == slot {
					g.Members[1].Trajectories[0].Segments[0].Tokens[0] = invalidToken
				}
				return g
			}})
			w.compareWeights(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted), want)
		})
	}
}
