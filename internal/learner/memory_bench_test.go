// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// BenchmarkLargeBatch trains on a batch of 100 million tokens in 2,000 groups: it decodes the groups as workers send
// them, submits them to the lease table, makes the training data, posts them to an endpoint that answers without
// computing, and measures the step. The garbage collector has the limit of a learner's pod. MiB is the largest memory
// of the process, whose goal is 1 GiB.
func BenchmarkLargeBatch(b *testing.B) {
	const (
		groups, size, tokens = 2000, 8, 6250
		most                 = 1 << 30
	)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(most / 10 * 9))
	alg := importanceSampling()
	sink := &sink{}
	model := sinkModel(b, sink)
	for b.Loop() {
		batch := receiveBatch(b, groups, size, tokens)
		work, err := trainee.Prepare(alg, nil, batch)
		if err != nil {
			b.Fatal(err)
		}
		if n := work.Tokens(); n != groups*size*(tokens-1) {
			b.Fatalf("the batch has %d tokens", n)
		}
		training, err := model.Train(b.Context(), trainee.Step{Datums: work.Datums, Substeps: 1,
			Losses: trainee.LossesOf(alg), Adam: work.Adam})
		if err != nil {
			b.Fatal(err)
		}
		replies, err := training.Wait(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		trainee.Measure(batch, work, replies, trainee.NewStopwatch(time.Now), alg.Steps)
	}
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	peak := used.Maxrss << 10
	b.ReportMetric(float64(peak)/(1<<20), "MiB")
	b.ReportMetric(float64(peak)/most, "memory/goal")
	b.ReportMetric(float64(sink.posts.Load())/float64(b.N), "posts/op")
	if peak > most {
		b.Errorf("a batch of 100 million tokens took %d MiB, want at most %d", peak>>20, most>>20)
	}
}

func importanceSampling() algorithm.Algorithm {
	return algorithm.Algorithm{
		Steps: 10, Substeps: 1, Loss: algorithm.Loss{Name: algorithm.LossImportanceSampling},
		Advantage: algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleNone},
		Optimizer: algorithm.Optimizer{Beta1: new(0.9), Beta2: new(0.95)},
	}
}

// sinkModel makes a model at a sink.
func sinkModel(b *testing.B, s *sink) *trainee.Model {
	b.Helper()
	api, err := client.New(client.Config{BaseURL: "http://sink", APIKey: "tml-bench", HTTP: &http.Client{Transport: s}})
	if err != nil {
		b.Fatal(err)
	}
	factory := &trainee.Factory{
		API: api, Logger: slog.New(slog.DiscardHandler), Run: contract.RunReference{UID: "uid"}, Attempt: 1, Now: time.Now,
		Base:    contract.Model{Name: "m", LoraRank: 8},
		Session: func(context.Context) (string, error) { return "session", nil },
	}
	model, err := factory.Fresh(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	return model
}

// receiveBatch submits all groups of a batch to a lease table, and returns the decided batch.
func receiveBatch(b *testing.B, groups, size, tokens int) leases.Batch {
	b.Helper()
	table := leases.NewTable(leases.Config{Concurrency: groups * size, Silence: time.Hour,
		Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	stream, err := rl.NewStream(1, []rl.Source{{Environment: "e", Split: "train", Tasks: 10000}})
	if err != nil {
		b.Fatal(err)
	}
	source := leases.NewBatchSource(table, leases.BatchConfig{Rules: rl.Rules{TasksPerStep: groups, Steps: 10},
		Stream: stream, Groups: map[string]leases.GroupShape{"e": {Size: size, MinMembers: 1}}})
	source.Reset(rl.Position{}, []leases.Version{{Lineage: rl.Genesis("spec"), Sampler: "s"}})
	table.Open()
	handler := table.Handler()
	if _, err := handler.Hello(b.Context(), "worker", exchange.HelloRequest{}); err != nil {
		b.Fatal(err)
	}
	for known := 0; known < groups; {
		granted, err := handler.Acquire(b.Context(), "worker", groups*size)
		if err != nil {
			b.Fatal(err)
		}
		for _, lease := range granted {
			group, err := exchange.DecodeGroup(encodedGroup(b, lease, size, tokens))
			if err != nil {
				b.Fatal(err)
			}
			if reply := handler.Submit("worker", group, group.Digest()); reply.GetStatus() != exchange.Accepted {
				b.Fatalf("slot %d: %v", lease.Key.Slot, reply)
			}
			known++
		}
	}
	batch, err := source.Batch(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return batch
}

// encodedGroup is a group of a lease as a worker sends it.
func encodedGroup(b *testing.B, lease exchange.Lease, size, tokens int) []byte {
	b.Helper()
	group := batchOf(1, size, tokens).Groups[0]
	group.Key, group.Environment = lease.Key, lease.Environment
	for i := range group.Members {
		group.Members[i].StopReason, group.Members[i].Turns = "stop", 1
		group.Members[i].Trajectories[0].Segments[0].Turn = 1
		for n, action := range group.Members[i].Trajectories[0].Segments[0].Actions {
			if !action {
				group.Members[i].Trajectories[0].Segments[0].Logprobs[n] = 0
			}
		}
	}
	encoded, err := exchange.EncodeGroup(group)
	if err != nil {
		b.Fatal(err)
	}
	return encoded.Message
}
