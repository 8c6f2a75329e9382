// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/broker/meter"
	"github.com/tinker-operator/tinker-operator/internal/broker/share"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/latency"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/limit"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

const (
	benchRuns = 20
	benchRate = 40
	// benchWarmUp passes before the minute that counts.
	benchWarmUp = 10 * time.Second
	benchTime   = time.Minute
)

// BenchmarkShares samples for 20 runs, with weights from 1 to 3, against a simulator that limits requests per second
// and unfinished samples. Each run asks for 4 to 180 samples at once. The benchmark prints how much of its share each
// weight got in a minute: the goals are at least half of the share for each run, and nine tenths of the rate for all
// runs together.
func BenchmarkShares(b *testing.B) {
	for name, configured := range map[string]float64{"configured": benchRate, "twice_configured": 2 * benchRate} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				shares(b, configured)
			}
		})
	}
}

func shares(b *testing.B, configured float64) {
	places := 150
	sim, url := simulatortest.Serve(b, tinkersim.Options{APIKey: apiKey,
		Limits:  limit.Limits{RequestsPerSecond: benchRate, UnfinishedSamples: places},
		Latency: latency.Profile{Sample: 2 * time.Second, SampleSigma: 0.5}})
	counter, err := meter.Open(meter.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer counter.Close()
	passing, err := broker.Open(broker.Config{BaseURL: url, APIKey: apiKey, TokenKey: tokenKey, Dir: b.TempDir(),
		Meter: counter, Gate: share.New(share.Config{})})
	if err != nil {
		b.Fatal(err)
	}
	defer passing.Close()
	settings := endpoint.Settings{BaseURL: url, Limits: endpoint.Limits{RequestsPerSecond: configured,
		UnfinishedSamples: places}}
	weights := 0
	for i := range benchRuns {
		settings.Runs = append(settings.Runs, endpoint.Run{UID: fmt.Sprint("run", i), Namespace: "team",
			Model: tinkersim.ModelName, Weight: 1 + i%3})
		weights += 1 + i%3
	}
	if err := passing.Apply(settings, apiKey, tokenKey, nil); err != nil {
		b.Fatal(err)
	}
	front := httptest.NewServer(passing)
	defer front.Close()
	ctx, cancel := context.WithTimeout(b.Context(), benchWarmUp+benchTime)
	defer cancel()
	began := time.Now()
	var counts [benchRuns]atomic.Int64
	var clients sync.WaitGroup
	for i := range benchRuns {
		clients.Go(func() { sampleAsOften(ctx, b, front.URL, i, began.Add(benchWarmUp), &counts[i]) })
	}
	clients.Wait()
	total := 0.0
	least := map[int]float64{}
	for i := range counts {
		weight, n := 1+i%3, float64(counts[i].Load())
		total += n
		part := n / (benchRate * benchTime.Seconds() * float64(weight) / float64(weights))
		least[weight] = min(part, cmp.Or(least[weight], part))
	}
	b.ReportMetric(min(least[1], least[2], least[3]), "least-share")
	b.ReportMetric(total/benchTime.Seconds()/benchRate, "throughput/rate")
	b.ReportMetric(float64(sim.Refused())/(benchWarmUp+benchTime).Seconds(), "429/s")
	b.ReportMetric(0, "ns/op")
	b.Logf("%.1f results a second; least part of its share of a run with weight 1: %.2f, 2: %.2f, 3: %.2f; waited: %d",
		total/benchTime.Seconds(), least[1], least[2], least[3], len(passing.Report().Throttled))
}

// sampleAsOften samples for a run with many requests at once until ctx ends, and counts the samples that ended after a
// time.
func sampleAsOften(ctx context.Context, b *testing.B, url string, i int, from time.Time, count *atomic.Int64) {
	c, err := client.New(client.Config{BaseURL: url, APIKey: contract.RunToken(tokenKey, fmt.Sprint("run", i))})
	if err != nil {
		b.Error(err)
		return
	}
	session, err := c.CreateSession(ctx, client.SessionRequest{})
	if err != nil {
		b.Error(err)
		return
	}
	sampler, err := c.CreateSamplingSession(ctx, session, 0, "", tinkersim.ModelName)
	if err != nil {
		b.Error(err)
		return
	}
	var seq atomic.Int64
	var requests sync.WaitGroup
	for range slices.Clone([]int{20, 40, 60, 4})[i%4] * (1 + i%3) {
		requests.Go(func() {
			for ctx.Err() == nil {
				params := tinker.DefaultSampling()
				params.MaxTokens = new(2)
				number := seq.Add(1)
				_, err := c.Sample(ctx, tinker.SampleRequest{SamplingSession: sampler, SeqID: &number, NumSamples: 1,
					Prompt: tinker.Text([]int32{49, 43, 50, 61}), SamplingParams: params})
				if err == nil && time.Now().After(from) {
					count.Add(1)
				}
			}
		})
	}
	requests.Wait()
}
