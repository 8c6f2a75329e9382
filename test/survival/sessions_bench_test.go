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

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/ors/orstest"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// sessionLoad is a number of sessions at once, their number of turns, and the times that a call of the tool and a
// sample take. text returns the output of a call of the tool.
type sessionLoad struct {
	sessions, turns int
	tool, sample    time.Duration
	text            func(s *orstest.Session) string
}

// delayedEndpoint answers requests for samples with the same reply after a time, and forwards other requests to the
// simulator.
type delayedEndpoint struct {
	next  http.Handler
	delay time.Duration
	reply []byte
	count atomic.Int64

	mu  sync.Mutex
	due map[string]time.Time
}

func newDelayedEndpoint(t testing.TB, target string, tokens []int32, delay time.Duration) *delayedEndpoint {
	t.Helper()
	address, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	sequence := tinker.SampledSequence{StopReason: tinker.StopReasonStop, Tokens: tokens,
		Logprobs: make([]float32, len(tokens))}
	for i := range sequence.Logprobs {
		sequence.Logprobs[i] = -1
	}
	reply, err := tinker.EncodeSample(tinker.SampleResult{Sequences: []tinker.SampledSequence{sequence}})
	if err != nil {
		t.Fatal(err)
	}
	return &delayedEndpoint{next: httputil.NewSingleHostReverseProxy(address), delay: delay, reply: reply,
		due: map[string]time.Time{}}
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
		e.due[request.RequestID] = time.Now().Add(e.delay)
		e.mu.Unlock()
		w.Header().Set("Content-Type", tinker.ContentJSON)
		_ = json.NewEncoder(w).Encode(tinker.FutureResponse{RequestID: request.RequestID,
			SampleSequenceIDs: []string{request.RequestID}})
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
func newSlowEnvironment(load sessionLoad, turns *atomic.Int64) *orstest.Server {
	return &orstest.Server{
		Name: "slow", Splits: map[string]int64{"train": 1 << 20},
		Prompt: func(s *orstest.Session) string { return fmt.Sprintf("This is task %d.", s.Index) },
		Tools: map[string]orstest.Tool{"say": func(s *orstest.Session, _ json.RawMessage) (orstest.Output, error) {
			time.Sleep(load.tool)
			turns.Add(1)
			reward := float64(s.Index % 2)
			return orstest.Output{Text: load.text(s), Reward: &reward, Finished: s.Calls == load.turns}, nil
		}},
	}
}

// onSlowEnvironment changes a run to the run of the benchmark: one step that does not end while it is measured.
func onSlowEnvironment(f *contract.RunFile, url string, load sessionLoad) {
	e := served("slow", url)
	e.Definition.ORS.AnswerTool = &settings.AnswerTool{Name: "say", Argument: "text"}
	e.Splits[0].Tasks, e.GroupSize, e.Sampling.MaxTokens = 1<<20, 10, 64
	e.Limits = playing.Limits{Turns: int32(2 * load.turns), OnLimit: "Grade"}
	f.Fixed.Environments, f.Evaluation, f.Concurrency = []contract.Environment{e}, nil, load.sessions
	f.Fixed.Algorithm.TasksPerStep, f.Fixed.Algorithm.Steps = 2000, 1
}

// BenchmarkSessions plays 500 sessions of 10 turns at once in one worker process of one core. The bound is 500 turns
// in the time that a sample and a call of the tool take together.
func BenchmarkSessions(b *testing.B) {
	load := sessionLoad{
		sessions: 500, turns: 10, tool: 20 * time.Millisecond, sample: 400 * time.Millisecond,
		text: func(*orstest.Session) string { return "Try again." },
	}
	b.Run("bytes", func(b *testing.B) {
		w := newFixture(b, nil)
		benchmarkSessions(b, w, append(byteTokens(sessionReply), model.TokenEnd), load)
	})
	b.Run("Qwen3", func(b *testing.B) { benchmarkSessions(b, newQwenFixture(b), qwenReply(b), load) })
}

// sessionReply is the reply of the policy at each turn.
const sessionReply = "I shall look again and then say what I have found."

func byteTokens(text string) []int32 {
	tokens := make([]int32, len(text))
	for i := range tokens {
		tokens[i] = int32(text[i])
	}
	return tokens
}

// qwenReply returns sessionReply in tokens of Qwen3.
func qwenReply(b *testing.B) []int32 {
	tokens, err := tokenizer.Parse(qwenTokenizer(b))
	if err != nil {
		b.Fatal(err)
	}
	return tokens.AppendEncode(nil, sessionReply+"<|im_end|>", tokenizer.Specials)
}

func benchmarkSessions(b *testing.B, w *fixture, reply []int32, load sessionLoad) {
	s := newSessionFixture(b, w, reply, load)
	bound := float64(load.sessions) / (load.tool + load.sample).Seconds()
	for b.Loop() {
		worker := s.start()
		s.until("all sessions have begun", func() bool { return s.turns.Load() >= int64(2*load.sessions) })
		before, began, busy := s.turns.Load(), time.Now(), processSeconds(b, worker)
		time.Sleep(benchTime())
		played, took := float64(s.turns.Load()-before), time.Since(began).Seconds()
		spent := processSeconds(b, worker) - busy
		b.ReportMetric(played/took/bound, "turns/bound")
		b.ReportMetric(played/took, "turns/s")
		b.ReportMetric(1e6*spent/played, "cpu-µs/turn")
		// The result that a whole core would have, if other programs have used a part of this core.
		b.ReportMetric(played/spent/bound, "core/bound")
		b.ReportMetric(float64(peak(b, worker))/1024, "MiB")
	}
	b.ReportMetric(0, "ns/op")
}

// sessionFixture is a worker process of one core whose sessions follow a load.
type sessionFixture struct {
	*processFixture
	b     *testing.B
	turns atomic.Int64
}

func newSessionFixture(b *testing.B, w *fixture, reply []int32, load sessionLoad) *sessionFixture {
	b.Helper()
	s := &sessionFixture{b: b}
	environment := httptest.NewServer(newSlowEnvironment(load, &s.turns))
	endpoint := httptest.NewServer(newDelayedEndpoint(b, w.url, reply, load.sample))
	b.Cleanup(func() {
		for _, server := range []*httptest.Server{environment, endpoint} {
			server.CloseClientConnections()
			server.Close()
		}
	})
	onSlowEnvironment(&w.file, environment.URL, load)
	w.url = endpoint.URL
	s.processFixture = newProcessFixtureOf(b, w)
	s.file.Capabilities = allCapabilities(s.file.Fixed)
	return s
}

// start starts the learner and the worker, and returns the worker's process.
func (s *sessionFixture) start() int {
	s.startLearner(1, nil)
	worker := s.processFixture.start("rollout", []string{"POD_NAME=w0", "GOMAXPROCS=1", "HF_ENDPOINT=" + s.url},
		"--run-file", s.runFile(1), "--credentials-dir", s.dir, "--spill-dir", s.b.TempDir(), "--health-listen", "")
	return worker.Process.Pid
}

// benchTime returns the duration of the benchmark: BENCH_SECONDS, or a minute.
func benchTime() time.Duration {
	if seconds, err := strconv.Atoi(os.Getenv("BENCH_SECONDS")); err == nil {
		return time.Duration(seconds) * time.Second
	}
	return time.Minute
}

// processSeconds returns the CPU time of a process in seconds.
func processSeconds(t testing.TB, pid int) float64 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	// The fields after the name count from the third; utime and stime are the 14th and the 15th, in hundredths of a
	// second.
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
