// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/runner/python"
	"github.com/tinker-operator/tinker-operator/internal/runner/spawn"
)

// onOneCore calls f so that all processes that f starts run on one core.
func onOneCore(b *testing.B, f func()) {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		b.Fatal(err)
	}
	for cpu := range 1024 {
		if before.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		b.Fatal(err)
	}
	f()
	if err := unix.SchedSetaffinity(0, &before); err != nil {
		b.Fatal(err)
	}
}

// trips is the number of calls that a benchmark makes, and callers the number of calls that are open at once.
const (
	trips   = 5000
	callers = 16
)

// BenchmarkReward calls a trivial reward with replies of 2 kB. Runner and Python share a core. The bound is a Python
// program on that core that returns the same lines through two pipes.
func BenchmarkReward(b *testing.B) {
	needPython(b)
	request := params(b, map[string]string{"answer": "4"}, strings.Repeat("reply ", 340))
	for range b.N {
		var echo time.Duration
		var h *host
		onOneCore(b, func() {
			echo = echoes(b, request)
			h = startRunner(b)
		})
		p := start(b, h.dial(b), "reward", python.Function{
			Code: "def reward(row, reply): return 1.0 if reply.text.strip() == row['answer'] else 0.0\n",
		}, protocol.Spec{})
		begin := time.Now()
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range trips / callers {
					if _, err := p.Call(b.Context(), client.Call{Method: "reward", Params: request}); err != nil {
						b.Error(describe(err))
						return
					}
				}
			})
		}
		all.Wait()
		took := time.Since(begin) / (trips / callers * callers)
		b.ReportMetric(float64(time.Second)/float64(took), "calls/s")
		b.ReportMetric(float64(took)/float64(echo), "call/echo")
		b.ReportMetric(0, "ns/op")
	}
}

// echoes returns the time of one echo through a Python program.
func echoes(b *testing.B, request json.RawMessage) time.Duration {
	b.Helper()
	const program = "import sys\nfor line in sys.stdin.buffer:\n    sys.stdout.buffer.write(line)\n    " +
		"sys.stdout.buffer.flush()\n"
	command := exec.Command(python3, "-c", program)
	in, err1 := command.StdinPipe()
	out, err2 := command.StdoutPipe()
	if err1 != nil || err2 != nil {
		b.Fatal(err1, err2)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	line := append(slices.Clone(request), '\n')
	reader := bufio.NewReader(out)
	begin := time.Now()
	for range trips {
		if _, err := in.Write(line); err != nil {
			b.Fatal(err)
		}
		if _, err := reader.ReadSlice('\n'); err != nil && err != io.EOF {
			b.Fatal(err)
		}
	}
	took := time.Since(begin)
	in.Close()
	_ = command.Wait()
	return took / trips
}

// BenchmarkAsync makes 200 calls at once, which await 100 ms each. The bound is these 100 ms.
func BenchmarkAsync(b *testing.B) {
	const n, wait = 200, 100 * time.Millisecond
	request := params(b, map[string]string{}, strings.Repeat("reply ", 340))
	for range b.N {
		p := start(b, startRunner(b).dial(b), "reward", python.Function{
			Code: "import asyncio\nasync def reward(row, reply):\n    await asyncio.sleep(0.1)\n    return 1.0\n",
		}, protocol.Spec{Concurrency: n})
		took := make([]time.Duration, n)
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				begin := time.Now()
				if _, err := p.Call(b.Context(), client.Call{Method: "reward", Params: request}); err != nil {
					b.Error(describe(err))
				}
				took[i] = time.Since(begin)
			})
		}
		all.Wait()
		slices.Sort(took)
		b.ReportMetric(float64(took[n/2].Milliseconds()), "median-ms")
		b.ReportMetric(float64(took[n/2])/float64(wait), "median/await")
		b.ReportMetric(0, "ns/op")
	}
}

// benchPython names the variable with the path of an interpreter that has the package openai.
const benchPython = "RUNNER_BENCH_PYTHON"

// preforkAgent makes a client, and prints the memory in KiB that its process shares with no other.
const preforkAgent = `
import os
from openai import OpenAI
OpenAI(base_url="http://127.0.0.1:9/v1", api_key="key").chat.completions
lines = [line.split() for line in open("/proc/self/smaps_rollup")]
print(sum(int(line[1]) for line in lines if line[0] in ("Private_Clean:", "Private_Dirty:")))
`

// BenchmarkForkedCommand starts an agent that imports openai: by a fork for each episode, and afresh.
func BenchmarkForkedCommand(b *testing.B) {
	interpreter := os.Getenv(benchPython)
	if interpreter == "" {
		b.Skipf("give %s, an interpreter that has the package openai", benchPython)
	}
	dir := writeModules(b, map[string]string{"agent.py": preforkAgent})
	command := []string{interpreter, filepath.Join(dir, "agent.py")}
	h := tryRunner(b, false, "") // as the user of the test, who owns the interpreter
	if h == nil {
		b.Fatal("the runner does not start")
	}
	c := h.dial(b)
	for range b.N {
		forked, said := startCommand(b, c, "forked", spawn.Config{Command: command, Variables: []string{"TASK"}}, nil)
		if !slices.Contains(said.Modules, "openai") {
			b.Fatalf("the program says %+v, want that openai was imported", said)
		}
		afresh, _ := startCommand(b, c, "afresh", spawn.Config{Command: command}, nil)
		forkedCPU, forkedMiB := costOf(b, forked)
		afreshCPU, afreshMiB := costOf(b, afresh)
		b.ReportMetric(1000*afreshCPU, "afresh-cpu-ms")
		b.ReportMetric(1000*forkedCPU, "forked-cpu-ms")
		b.ReportMetric(forkedCPU/afreshCPU, "forked/afresh")
		b.ReportMetric(afreshMiB, "afresh-MiB")
		b.ReportMetric(forkedMiB, "forked-MiB")
		b.ReportMetric(0, "ns/op")
		for _, p := range []*client.Program{forked, afresh} {
			if err := p.Stop(b.Context()); err != nil {
				b.Fatal(describe(err))
			}
		}
	}
}

// costOf returns the medians of the processor time and of the private memory of calls of a command.
func costOf(b *testing.B, p *client.Program) (seconds, mebibytes float64) {
	b.Helper()
	const calls = 7
	params, err := json.Marshal(spawn.Params{Env: map[string]string{"TASK": ""}})
	if err != nil {
		b.Fatal(err)
	}
	var all, private []float64
	for range calls {
		result, err := callWith(b, p.Try, client.Call{Method: spawn.Method, Params: params})
		var left spawn.Result
		if err == nil {
			err = json.Unmarshal(result.Value, &left)
		}
		kib, notNumber := strconv.ParseFloat(strings.TrimSpace(left.Output), 64)
		if err != nil || left.Exit != 0 || notNumber != nil {
			b.Fatalf("got %+v, %v", left, describe(err))
		}
		all, private = append(all, result.Evidence.CPUSeconds), append(private, kib/1024)
	}
	slices.Sort(all)
	slices.Sort(private)
	return all[calls/2], private[calls/2]
}
