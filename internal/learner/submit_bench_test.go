// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// BenchmarkSubmit does the learner's work between the last group of a batch and the optimizer step, for 2 million
// tokens: it computes advantages, makes the data, encodes and posts them, and posts the step. The endpoint answers at
// once and does not look at the bodies that it reads. The goal is at most 60 cpu-ms.
func BenchmarkSubmit(b *testing.B) {
	const groups, size, tokens = 64, 8, 4096
	batch := batchOf(groups, size, tokens)
	alg := importanceSampling()
	sink := &sink{}
	model := sinkModel(b, sink)
	b.ReportAllocs()
	before := processorTime(b)
	for b.Loop() {
		work, err := trainee.Prepare(alg, nil, batch)
		if err != nil {
			b.Fatal(err)
		}
		step := trainee.Step{Datums: work.Datums, Substeps: 1, Losses: trainee.LossesOf(alg), Adam: work.Adam}
		if _, err := model.Train(b.Context(), step); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((processorTime(b)-before).Seconds()*1000/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(sink.posts.Load())/float64(b.N), "posts/op")
	b.ReportMetric(float64(sink.bytes.Load())/1e6/float64(b.N), "MB/op")
}

// batchOf returns a decided batch with its groups.
func batchOf(groups, size, tokens int) leases.Batch {
	batch := leases.Batch{Slots: rl.Batch{Next: int64(groups), Certain: true}}
	for slot := range groups {
		g := rl.Group{Key: rl.Key{Slot: int64(slot)}, Environment: "e"}
		for i := range size {
			s := rl.Segment{Tokens: make([]int32, tokens), Actions: make([]bool, tokens), Logprobs: make([]float32, tokens)}
			for n := range tokens {
				s.Tokens[n], s.Actions[n], s.Logprobs[n] = int32(n*7919%150000), n >= tokens/4, -0.5
			}
			reward := float64(i % 2)
			g.Members = append(g.Members, rl.Member{Index: i, Reward: reward,
				Trajectories: []rl.Trajectory{{Reward: reward, Segments: []rl.Segment{s}}}})
		}
		batch.Groups, batch.Digests = append(batch.Groups, g), append(batch.Digests, rl.Digest{})
		batch.Slots.Members = append(batch.Slots.Members, int64(slot))
	}
	return batch
}

// processorTime is the processor time of the process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// sink is an endpoint in the process, which counts the training data that it accepts.
type sink struct{ posts, bytes atomic.Int64 }

func (s *sink) RoundTrip(r *http.Request) (*http.Response, error) {
	body, size := `{"request_id":"a"}`, int64(0)
	if r.Body != nil {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			return nil, err
		}
		size = n
	}
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/client/config"):
		body = `{}`
	case strings.HasSuffix(path, "/forward_backward"):
		s.posts.Add(1)
		s.bytes.Add(size)
	case strings.HasSuffix(path, "/retrieve_future") && r.Header.Get("X-Tinker-Request-Type") == "ForwardBackward":
		body = `{"loss_fn_outputs":[],"metrics":{}}`
	case strings.HasSuffix(path, "/retrieve_future"):
		body = `{"model_id":"model","metrics":{}}`
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(bytes.NewBufferString(body)), ContentLength: int64(len(body)),
	}, nil
}
