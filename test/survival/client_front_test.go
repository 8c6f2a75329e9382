// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// front counts the requests of a trainer before the simulator answers them.
type front struct {
	mu               sync.Mutex
	processes        []*process
	requests, tokens int64
	steps            []moment
	// stepBodies are the bodies of the requests for optimizer steps: a request that is repeated counts as one step.
	stepBodies map[string]bool
	// memory is the peak memory of each process in MiB. shares is the same with each page divided by the number of
	// processes that share it.
	memory, shares []float64
}

// moment has the counters of a trainer at its request for an optimizer step.
type moment struct {
	at               time.Time
	cpu              []time.Duration // of each process
	requests, tokens int64
}

func (f *front) follow(processes []*process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.processes = processes
	f.memory, f.shares = make([]float64, len(processes)), make([]float64, len(processes))
	for i, p := range processes {
		go f.watch(i, p.Process.Pid)
	}
}

// watch follows the memory of a process until the process ends. The maximum that wait4 reports is of no use: it begins
// with the memory of the parent process, which includes the simulator.
func (f *front) watch(i, pid int) {
	const often = 50 * time.Millisecond
	for ; ; time.Sleep(often) {
		most := memoryField(pid, "status", "VmHWM:")
		share := memoryField(pid, "smaps_rollup", "Pss:")
		if most == 0 {
			return
		}
		f.mu.Lock()
		f.memory[i], f.shares[i] = max(f.memory[i], most), max(f.shares[i], share)
		f.mu.Unlock()
	}
}

// memoryField returns a field of a file in the folder of a process in /proc, in MiB; 0 if it does not exist.
func memoryField(pid int, file, field string) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, field); ok {
			kib, _ := strconv.ParseFloat(strings.Fields(value)[0], 64)
			return kib / 1024
		}
	}
	return 0
}

func (f *front) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		samples, steps := strings.HasSuffix(r.URL.Path, "/asample"), strings.HasSuffix(r.URL.Path, "/optim_step")
		var body []byte
		if samples || steps {
			var err error
			if body, err = io.ReadAll(r.Body); err != nil {
				http.Error(rw, err.Error(), http.StatusBadRequest)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		switch {
		case samples:
			f.count("", promptTokens(body))
		case steps:
			f.count(string(body), 0)
		default:
			f.count("", 0)
		}
		next.ServeHTTP(rw, r)
	})
}

// count counts a request. step is the body of a request for an optimizer step; "" for another request.
func (f *front) count(step string, prompts int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	f.tokens += prompts
	if step != "" && !f.stepBodies[step] {
		if f.stepBodies == nil {
			f.stepBodies = map[string]bool{}
		}
		f.stepBodies[step] = true
		f.steps = append(f.steps, moment{time.Now(), cpuOf(f.processes), f.requests, f.tokens})
	}
}

// figures returns the figures between the first optimizer step and the last. It expects least to most optimizer steps.
func (f *front) figures(b *testing.B, least, most int) figures {
	b.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.steps) < max(least, 2) || len(f.steps) > most {
		b.Fatalf("%d optimizer steps, want %d to %d; BENCH_STEPS must be at least 3", len(f.steps),
			max(least, 2), most)
	}
	first, last, n := f.steps[0], f.steps[len(f.steps)-1], float64(len(f.steps)-1)
	result := figures{
		secondsPerStep:  last.at.Sub(first.at).Seconds() / n,
		requestsPerStep: float64(last.requests-first.requests) / n, promptTokens: float64(last.tokens-first.tokens) / n,
		memory: f.memory, shares: f.shares, steps: n + 1,
	}
	for i := range last.cpu {
		result.cpuPerStep = append(result.cpuPerStep, (last.cpu[i]-first.cpu[i]).Seconds()/n)
	}
	return result
}

// promptTokens counts the tokens of the prompt of a request for samples.
func promptTokens(body []byte) (n int64) {
	var request struct {
		Prompt struct {
			Chunks []struct {
				Tokens []int32 `json:"tokens"`
			} `json:"chunks"`
		} `json:"prompt"`
	}
	if json.Unmarshal(body, &request) != nil {
		return 0
	}
	for _, chunk := range request.Prompt.Chunks {
		n += int64(len(chunk.Tokens))
	}
	return n
}

// cpuOf returns the CPU time of each of the running processes, in user and system mode.
func cpuOf(processes []*process) []time.Duration {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on Linux
	used := make([]time.Duration, len(processes))
	for i, p := range processes {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
		if err != nil {
			continue
		}
		// The name of the program, which may contain spaces, ends with the last parenthesis.
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		for _, field := range fields[11:13] { // utime, stime
			ticks, _ := strconv.ParseInt(field, 10, 64)
			used[i] += time.Duration(ticks) * tick
		}
	}
	return used
}
