// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/ors/orstest"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// The benchmark has this many sessions at once, of this many turns, with these times of a tool and of a sample.
const (
	benchSessions = 500
	benchTurns    = 10
	benchTool     = 20 * time.Millisecond
	benchSample   = 400 * time.Millisecond
)

// delayedEndpoint answers requests for samples with the same reply after a time, and passes others to the simulator.
type delayedEndpoint struct {
	next  http.Handler
	reply []byte
	count atomic.Int64

	mu  sync.Mutex
	due map[string]time.Time
}

func newDelayedEndpoint(t testing.TB, target string, tokens []int32) *delayedEndpoint {
	t.Helper()
	address, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	sequence := tinker.SampledSequence{StopReason: tinker.StopReasonStop, Tokens: tokens, Logprobs: make([]float32, len(tokens))}
	for i := range sequence.Logprobs {
		sequence.Logprobs[i] = -1
	}
	reply, err := tinker.EncodeSample(tinker.SampleResult{Sequences: []tinker.SampledSequence{sequence}})
	if err != nil {
		t.Fatal(err)
	}
	return &delayedEndpoint{next: httputil.NewSingleHostReverseProxy(address), reply: reply, due: map[string]time.Time{}}
}

// ServeHTTP implements http.Handler.
func (e *delayedEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isSample, isPoll := strings.HasSuffix(r.URL.Path, "/asample"), strings.HasSuffix(r.URL.Path, "/retrieve_future")
	if !isSample && !isPoll {
		// Otherwise the server closes the request's body with the first byte of the response, and a proxy that has not seen
		// the end of the body yet breaks the response.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		e.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var request tinker.RetrieveRequest
	if isSample {
		request.RequestID = fmt.Sprintf("delayed-%d", e.count.Add(1))
		e.mu.Lock()
		e.due[request.RequestID] = time.Now().Add(benchSample)
		e.mu.Unlock()
		w.Header().Set("Content-Type", tinker.ContentJSON)
		_ = json.NewEncoder(w).Encode(tinker.FutureResponse{RequestID: request.RequestID, SampleSequenceIDs: []string{request.RequestID}})
		return
	}
	if err := json.Unmarshal(body, &request); err != nil || !strings.HasPrefix(request.RequestID, "delayed-") {
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		e.next.ServeHTTP(w, r)
		return
	}
	e.mu.Lock()
	due := e.due[request.RequestID]
	delete(e.due, request.RequestID)
	e.mu.Unlock()
	time.Sleep(time.Until(due))
	w.Header().Set("Content-Type", tinker.ContentProtobuf)
	_, _ = w.Write(e.reply)
}

// newSlowEnvironment is an environment whose tool takes a while and ends an episode at its last turn.
func newSlowEnvironment(turns *atomic.Int64) *orstest.Server {
	return &orstest.Server{
		Name: "slow", Splits: map[string]int64{"train": 1 << 20},
		Prompt: func(s *orstest.Session) string { return fmt.Sprintf("This is task %d.", s.Index) },
		Tools: map[string]orstest.Tool{"say": func(s *orstest.Session, _ json.RawMessage) (orstest.Output, error) {
			time.Sleep(benchTool)
			turns.Add(1)
			reward := float64(s.Index % 2)
			return orstest.Output{Text: "Try again.", Reward: &reward, Finished: s.Calls == benchTurns}, nil
		}},
	}
}

// onSlowEnvironment is the run of the benchmark: one step that does not end while it is measured.
func onSlowEnvironment(f *contract.RunFile, url string) {
	e := served("slow", url)
	e.Definition.ORS.AnswerTool = &contract.AnswerTool{Name: "say", Argument: "text"}
	e.Splits[0].Tasks, e.GroupSize, e.Sampling.MaxTokens = 1<<20, 10, 64
	e.Limits = contract.Limits{Turns: 2 * benchTurns, OnLimit: "Grade"}
	f.Fixed.Environments, f.Evaluation, f.Concurrency = []contract.Environment{e}, nil, benchSessions
	f.Fixed.Algorithm.TasksPerStep, f.Fixed.Algorithm.Steps = 2000, 1
}

// BenchmarkSessions has one worker process of one core play 500 sessions of 10 turns at once. The bound of turns in a second
// is 500 in the time of a sample and a tool.
func BenchmarkSessions(b *testing.B) {
	reply := "I shall look again and then say what I have found."
	b.Run("bytes", func(b *testing.B) {
		w := newFixture(b, nil)
		benchmarkSessions(b, w, append(byteTokens(reply), model.TokenEnd))
	})
	b.Run("Qwen3", func(b *testing.B) {
		w := newQwenFixture(b)
		tokens, err := tokenizer.Parse(qwenTokenizer(b))
		if err != nil {
			b.Fatal(err)
		}
		benchmarkSessions(b, w, tokens.AppendEncode(nil, reply+"<|im_end|>", tokenizer.Specials))
	})
}

func byteTokens(text string) []int32 {
	tokens := make([]int32, len(text))
	for i := range tokens {
		tokens[i] = int32(text[i])
	}
	return tokens
}

func benchmarkSessions(b *testing.B, w *fixture, reply []int32) {
	var turns atomic.Int64
	environment := httptest.NewServer(newSlowEnvironment(&turns))
	endpoint := httptest.NewServer(newDelayedEndpoint(b, w.url, reply))
	b.Cleanup(func() {
		for _, server := range []*httptest.Server{environment, endpoint} {
			server.CloseClientConnections()
			server.Close()
		}
	})
	onSlowEnvironment(&w.file, environment.URL)
	w.url = endpoint.URL
	f := newProcessFixtureOf(b, w)
	f.file.Capabilities = allCapabilities(f.file.Fixed)
	for b.Loop() {
		w.startLearner(1, nil)
		worker := f.start("rollout", []string{"POD_NAME=w0", "GOMAXPROCS=1", "HF_ENDPOINT=" + w.url}, "--run-file", f.runFile(1),
			"--link-dir", f.dir, "--spill-dir", b.TempDir(), "--health-listen", "")
		f.until("all sessions have begun", func() bool { return turns.Load() >= 2*benchSessions })
		before, began, busy := turns.Load(), time.Now(), processSeconds(b, worker.Process.Pid)
		time.Sleep(benchTime())
		played, took := float64(turns.Load()-before), time.Since(began).Seconds()
		spent := processSeconds(b, worker.Process.Pid) - busy
		bound := benchSessions / (benchTool + benchSample).Seconds()
		b.ReportMetric(played/took/bound, "turns/bound")
		b.ReportMetric(played/took, "turns/s")
		b.ReportMetric(1e6*spent/played, "cpu-µs/turn")
		// What a core of its own would give, where other programs have taken a part of it.
		b.ReportMetric(played/spent/bound, "core/bound")
		b.ReportMetric(float64(peak(b, worker.Process.Pid))/1024, "MiB")
	}
	b.ReportMetric(0, "ns/op")
}

// benchTime is how long the benchmark measures: BENCH_SECONDS, or a minute.
func benchTime() time.Duration {
	if seconds, err := strconv.Atoi(os.Getenv("BENCH_SECONDS")); err == nil {
		return time.Duration(seconds) * time.Second
	}
	return time.Minute
}

// processSeconds is the time that a process has spent on processors.
func processSeconds(t testing.TB, pid int) float64 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	// The fields after the name count from the third; utime and stime are the 14th and the 15th, in hundredths of a second.
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		t.Fatalf("the process has the stat %q", data)
	}
	seconds := 0.0
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			t.Fatal(err)
		}
		seconds += ticks / 100
	}
	return seconds
}
