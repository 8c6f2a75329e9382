// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// combine combines the results of the chunks of a call by the rules of the official SDK. It concatenates their
// outputs. It keeps a metric if every chunk has it. The name of a metric has exactly one colon, and the part after it
// is the reduction: sum, min, max; mean, weighted by the chunks' datums; slack, which is the maximum less the mean;
// unique, which keeps each value under its own name. combine drops metrics with other reductions.
func combine(results []tinker.ForwardBackwardResult) (tinker.ForwardBackwardResult, error) {
	out := tinker.ForwardBackwardResult{LossFnOutputType: results[0].LossFnOutputType, Metrics: map[string]float64{}}
	weights := make([]float64, len(results))
	for i, result := range results {
		weights[i] = float64(len(result.LossFnOutputs))
		out.LossFnOutputs = append(out.LossFnOutputs, result.LossFnOutputs...)
		for name := range result.Metrics {
			if strings.Count(name, ":") != 1 {
				return tinker.ForwardBackwardResult{}, fmt.Errorf("metric %q has not exactly one colon", name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(results[0].Metrics)) {
		if values, ok := valuesOf(name, results); ok {
			combineMetric(out.Metrics, name, values, weights)
		}
	}
	return out, nil
}

func valuesOf(name string, results []tinker.ForwardBackwardResult) ([]float64, bool) {
	values := make([]float64, len(results))
	for i, result := range results {
		value, ok := result.Metrics[name]
		if !ok {
			return nil, false
		}
		values[i] = value
	}
	return values, true
}

func combineMetric(metrics map[string]float64, name string, values, weights []float64) {
	_, reduction, _ := strings.Cut(name, ":")
	switch reduction {
	case "sum":
		metrics[name] = sum(values)
	case "min":
		metrics[name] = slices.Min(values)
	case "max":
		metrics[name] = slices.Max(values)
	case "mean":
		metrics[name] = mean(values, weights)
	case "slack":
		metrics[name] = slices.Max(values) - mean(values, weights)
	case "unique":
		for i, value := range values {
			metrics[uniqueName(name, i)] = value
		}
	}
}

func uniqueName(name string, i int) string {
	if i == 0 {
		return name
	}
	return name + "_" + strconv.Itoa(i)
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

// mean weights all values equally if no chunk has outputs.
func mean(values, weights []float64) float64 {
	total, weight := 0.0, sum(weights)
	if weight == 0 {
		return sum(values) / float64(len(values))
	}
	for i, v := range values {
		total += v * weights[i] / weight
	}
	return total
}
