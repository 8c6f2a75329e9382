// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
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
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
)

// upstreamVariable names the variable that makes a process of the tests a broker. Its value is the server's address.
const upstreamVariable = "BROKER_BENCH_UPSTREAM"

// plainVariable names the variable that makes such a process pass everything on with httputil.ReverseProxy, which
// records, counts and checks nothing.
const plainVariable = "BROKER_BENCH_PLAIN"

// profileVariable names the variable with the file of such a process's CPU profile; it may be unset.
const profileVariable = "BROKER_BENCH_CPUPROFILE"

func TestMain(m *testing.M) {
	if upstream := os.Getenv(upstreamVariable); upstream != "" {
		serveBench(upstream)
		return
	}
	os.Exit(m.Run())
}

// serveBench runs a broker until the standard input of the process ends.
func serveBench(upstream string) {
	broker.ReserveHeap()
	dir, err := os.MkdirTemp("", "broker")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	counter, err := meter.Open(meter.Config{Dir: dir})
	if err != nil {
		panic(err)
	}
	sender := secureClient()
	if os.Getenv(plainVariable) != "" {
		servePlain(upstream, sender)
		return
	}
	passing, err := broker.Open(broker.Config{BaseURL: upstream, APIKey: apiKey, TokenKey: tokenKey, Dir: dir,
		HTTP: sender, Meter: counter, Gate: share.New(share.Config{})})
	if err != nil {
		panic(err)
	}
	settings := endpoint.Settings{BaseURL: upstream, Runs: []endpoint.Run{{UID: first.UID, Namespace: first.Namespace,
		Name: "run", Model: "m", Weight: 1}}}
	if err := passing.Apply(settings, apiKey, tokenKey, sender); err != nil {
		panic(err)
	}
	server := secureServer(passing)
	if name := os.Getenv(profileVariable); name != "" {
		file, err := os.Create(name)
		if err != nil {
			panic(err)
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			panic(err)
		}
		defer pprof.StopCPUProfile()
	}
	_, _ = fmt.Fprintln(os.Stdout, server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// servePlain runs a reverse proxy of the standard library until the standard input of the process ends.
func servePlain(upstream string, sender *http.Client) {
	base, err := url.Parse(upstream)
	if err != nil {
		panic(err)
	}
	proxy := &httputil.ReverseProxy{Transport: sender.Transport,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(base) }}
	_, _ = fmt.Fprintln(os.Stdout, secureServer(proxy).URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// secureServer starts a server with HTTP/2 over TLS.
func secureServer(handler http.Handler) *httptest.Server {
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1000}
	server.StartTLS()
	return server
}

// secureClient returns the client that the programs use, for such servers, which all have one certificate.
func secureClient() *http.Client {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	made, err := transport.New(transport.Options{})
	if err != nil {
		panic(err)
	}
	trusted := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	made.TLSClientConfig = &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS13}
	return &http.Client{Transport: made}
}

// bench is a server that answers at once, and a broker in front of it, in a process of its own.
type bench struct {
	*testing.B
	direct, brokered string
	// pid is the broker's process.
	pid              int
	client           *http.Client
	numbers, waiting atomic.Int64
}

func newBench(b *testing.B) *bench {
	b.Helper()
	n := &bench{B: b, client: secureClient()}
	upstream := secureServer(n)
	b.Cleanup(func() {
		upstream.CloseClientConnections()
		upstream.Close()
	})
	n.direct = upstream.URL
	n.brokered, n.pid = n.start(upstreamVariable + "=" + upstream.URL)
	n.send(b.Context(), n.brokered, "create_session", tinker.ContentJSON, "", []byte(`{}`))
	n.send(b.Context(), n.brokered, "create_sampling_session", tinker.ContentJSON, "", []byte(`{"session_id":"session"}`))
	n.send(b.Context(), n.brokered, "create_model", tinker.ContentJSON, "", []byte(`{"session_id":"session"}`))
	return n
}

// start starts a process of the tests with environment variables, and returns its address and its process ID.
func (n *bench) start(env ...string) (address string, pid int) {
	n.Helper()
	command := exec.Command(os.Args[0])
	command.Env, command.Stderr = append(os.Environ(), env...), os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		n.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		n.Fatal(err)
	}
	if err := command.Start(); err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait()
	})
	if _, err := fmt.Fscanln(output, &address); err != nil {
		n.Fatal(err)
	}
	return address, command.Process.Pid
}

// ServeHTTP is the server.
func (n *bench) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	switch strings.TrimPrefix(r.URL.Path, "/api/v1/") {
	case "client/config":
		_, _ = io.WriteString(w, `{}`)
	case "create_session":
		_, _ = io.WriteString(w, `{"session_id":"session"}`)
	case "create_sampling_session":
		_, _ = io.WriteString(w, `{"sampling_session_id":"sampler"}`)
	case "retrieve_future":
		n.waiting.Add(1)
		<-r.Context().Done()
	default:
		_, _ = fmt.Fprintf(w, `{"request_id":"future-%d","model_id":"model"}`, n.numbers.Add(1))
	}
}

func (n *bench) send(ctx context.Context, base, path, media, encoding string, body []byte) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/api/v1/"+path, bytes.NewReader(body))
	if err != nil {
		n.Fatal(err)
	}
	r.Header.Set(tinker.HeaderAPIKey, contract.RunToken(tokenKey, first.UID))
	r.Header.Set("Content-Type", media)
	if encoding != "" {
		r.Header.Set("Content-Encoding", encoding)
	}
	resp, err := n.client.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			n.Error(err)
		}
		return
	}
	defer resp.Body.Close()
	if read, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		n.Errorf("%s: status %d, %v: %s", path, resp.StatusCode, err, read)
	}
}

// cpu returns the processor time of the broker's process.
func (n *bench) cpu() time.Duration { return n.cpuOf(n.pid) }

func (n *bench) cpuOf(pid int) time.Duration {
	n.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		n.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] {
		more, err := strconv.Atoi(field)
		if err != nil {
			n.Fatal(err)
		}
		ticks += more
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// load sends requests at a rate for a time, and returns how long each took.
func (n *bench) load(base string, rate int, d time.Duration, body []byte) []time.Duration {
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	began := time.Now()
	for i := range int(d.Seconds() * float64(rate)) {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		all.Go(func() {
			sent := time.Now()
			n.send(n.Context(), base, "asample", tinker.ContentJSON, "", body)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(sent))
		})
	}
	all.Wait()
	return took
}

func median(of []time.Duration) float64 {
	slices.Sort(of)
	return of[len(of)/2].Seconds() * 1000
}

// rateVariable names the variable with the number of samples that BenchmarkBrokerSubmit sends a second, for machines
// that are busy.
const rateVariable = "BENCH_RATE"

// syncs appends a record to a file on the broker's disk and syncs it, several times, and returns how long each time
// took.
func (n *bench) syncs() (took []time.Duration) {
	n.Helper()
	file, err := os.CreateTemp(n.TempDir(), "record")
	if err != nil {
		n.Fatal(err)
	}
	defer file.Close()
	line := bytes.Repeat([]byte("record "), 30)
	for range 50 {
		began := time.Now()
		if _, err := file.Write(line); err != nil {
			n.Fatal(err)
		}
		if err := file.Sync(); err != nil {
			n.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	return took
}

// BenchmarkBrokerSubmit sends 2,000 samples a second with prompts of 1,000 tokens, in turn directly, through a broker,
// which stores the owner of each result before it passes the reply on, and through a reverse proxy of the standard
// library. The goal is that the broker adds at most 1 ms to the median, and takes at most 0.25 ms of CPU. sync-ms is
// how long the disk takes for one record when it has nothing else to do.
func BenchmarkBrokerSubmit(b *testing.B) {
	const slice, slices = 500 * time.Millisecond, 10
	rate, err := strconv.Atoi(cmp.Or(os.Getenv(rateVariable), "2000"))
	if err != nil {
		b.Fatal(err)
	}
	n := newBench(b)
	body := []byte(`{"sampling_session_id":"sampler","num_samples":1,"seq_id":1,"prompt":{"chunks":[{"type":"encoded_text",` +
		`"tokens":[` + strings.Repeat("12345,", 999) + `1]}]},"sampling_params":{"max_tokens":2}}`)
	n.load(n.direct, rate, slice, body)
	n.load(n.brokered, rate, slice, body)
	plain, pid := n.start(upstreamVariable+"="+n.direct, plainVariable+"=1")
	n.load(plain, rate, slice, body)
	for b.Loop() {
		var direct, brokered, proxied, syncs []time.Duration
		used, usedByPlain := time.Duration(0), time.Duration(0)
		for range slices {
			direct = append(direct, n.load(n.direct, rate, slice, body)...)
			syncs = append(syncs, n.syncs()...)
			before := n.cpu()
			brokered = append(brokered, n.load(n.brokered, rate, slice, body)...)
			used += n.cpu() - before
			before = n.cpuOf(pid)
			proxied = append(proxied, n.load(plain, rate, slice, body)...)
			usedByPlain += n.cpuOf(pid) - before
		}
		b.ReportMetric(median(direct), "direct-ms")
		b.ReportMetric(median(brokered)-median(direct), "added-ms")
		b.ReportMetric(median(proxied)-median(direct), "added-plain-ms")
		b.ReportMetric(used.Seconds()*1000/float64(len(brokered)), "cpu-ms/request")
		b.ReportMetric(usedByPlain.Seconds()*1000/float64(len(proxied)), "cpu-plain-ms/request")
		b.ReportMetric(median(syncs), "sync-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkBrokerData passes bodies of forward_backward of 8 MB. The goal is 10 ms of the broker's CPU per MB.
func BenchmarkBrokerData(b *testing.B) {
	n := newBench(b)
	tokens := make([]int32, 2<<20)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range tokens {
		tokens[i] = int32(random.IntN(150_000))
	}
	data, err := tinker.EncodeForwardBackward(tinker.ForwardBackwardRequest{ModelID: "model", SeqID: 1,
		Loss: tinker.Loss{Name: tinker.LossCrossEntropy},
		Data: []tinker.Datum{{ModelInput: tinker.Text(tokens), LossFnInputs: map[string]tinker.Tensor{}}}})
	if err != nil {
		b.Fatal(err)
	}
	zipped, err := tinker.Compress(data)
	if err != nil {
		b.Fatal(err)
	}
	for name, body := range map[string][]byte{"": data, tinker.EncodingZstd: zipped} {
		b.Run("encoding="+name, func(b *testing.B) {
			for b.Loop() {
				const requests = 20
				before := n.cpu()
				for range requests {
					n.send(b.Context(), n.brokered, "forward_backward", tinker.ContentProtobuf, name, body)
				}
				b.ReportMetric((n.cpu()-before).Seconds()*1000/requests/(float64(len(body))/1e6), "cpu-ms/MB")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkBrokerPolls holds 10,000 polls. The goal is 512 MiB.
func BenchmarkBrokerPolls(b *testing.B) {
	const polls = 10_000
	n := newBench(b)
	n.send(b.Context(), n.brokered, "asample", tinker.ContentJSON, "", []byte(`{"sampling_session_id":"sampler"}`))
	body := fmt.Appendf(nil, `{"request_id":"future-%d"}`, n.numbers.Load())
	for b.Loop() {
		ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
		var all sync.WaitGroup
		for range polls {
			time.Sleep(time.Millisecond) // else each poll connects, before the first connection is known to have many streams
			all.Go(func() { n.send(ctx, n.brokered, "retrieve_future", tinker.ContentJSON, "", body) })
		}
		for n.waiting.Load() < polls && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		if ctx.Err() != nil {
			b.Fatalf("%d polls wait, want %d", n.waiting.Load(), polls)
		}
		b.ReportMetric(n.memory(), "MiB")
		cancel()
		all.Wait()
	}
	b.ReportMetric(0, "ns/op")
}

// memory returns the peak memory of the broker's process, in MiB.
func (n *bench) memory() float64 {
	n.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.pid))
	if err != nil {
		n.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		n.Fatal(err)
	}
	return float64(kilobytes) / 1024
}
