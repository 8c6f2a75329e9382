// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// averageWeights divides the weights of cross entropy by their sum, as SkyRL does. A sum that is not positive counts as
// 1e-9.
func averageWeights() middleware {
	return editPass(func(r *tinker.ForwardBackwardRequest) {
		if r.Loss.Name != tinker.LossCrossEntropy {
			return
		}
		for _, d := range r.Data {
			weights := d.LossFnInputs[tinker.InputWeights]
			sum := 0.0
			for _, w := range weights.Float {
				sum += float64(w)
			}
			averaged := make([]float32, len(weights.Float))
			for i, w := range weights.Float {
				averaged[i] = float32(float64(w) / math.Max(sum, 1e-9))
			}
			d.LossFnInputs[tinker.InputWeights] = tinker.Floats(averaged)
		}
	})
}

// refuseBatchesWithLongSeeds refuses samples with seeds of more than 31 bits, and with them the rest of their batch:
// the samples that arrive shortly before or after.
func refuseBatchesWithLongSeeds(batch time.Duration) middleware {
	var newest atomic.Int64 // when the newest such seed arrived
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/asample") {
				next.ServeHTTP(w, r)
				return
			}
			body, _ := io.ReadAll(r.Body)
			var sample struct {
				Params struct {
					Seed json.Number `json:"seed"`
				} `json:"sampling_params"`
			}
			_ = json.Unmarshal(body, &sample)
			arrived := time.Now()
			if seed, err := sample.Params.Seed.Int64(); err == nil && seed > math.MaxInt32 {
				newest.Store(arrived.UnixNano())
			}
			time.Sleep(batch)
			if arrived.Add(-batch).UnixNano() <= newest.Load() {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"detail":"Python integer 4611686018427387915 out of bounds for int32"}`)
				return
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			next.ServeHTTP(w, r)
		})
	}
}

// TestChecksAtAServerThatAverages checks a server like SkyRL 0.4.0, which reads protobuf: the faults in one feature
// must not show in others.
func TestChecksAtAServerThatAverages(t *testing.T) {
	t.Parallel()
	_, checker := server(t, chain(averageWeights(), refuseBatchesWithLongSeeds(50*time.Millisecond)))
	checker.Features = append([]capability.Feature{capability.SamplerSnapshot, capability.Protobuf},
		append(optimizer, sampling...)...)
	report := run(t, checker)
	want := map[capability.Feature]capability.Support{capability.Seed: capability.Unsupported}
	if diff := cmp.Diff(want, lacks(report, checker.Features)); diff != "" {
		t.Errorf("missing features (-want +got):\n%s%v", diff, report.Findings)
	}
}
