// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// heldInTests is the number of bytes up to which a broker of these tests holds bodies: large bodies have more than
// twice as many bytes as the broker withholds.
const heldInTests = 64 << 10

// sink is a server that counts the large bodies that it received whole, and the bytes of the last one.
type sink struct {
	whole, bytes atomic.Int64
	digest       atomic.Pointer[[sha256.Size]byte]
	length       atomic.Int64
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch strings.TrimPrefix(r.URL.Path, "/api/v1/") {
	case "client/config":
		_, _ = io.WriteString(w, `{}`)
		return
	case "create_session":
		_, _ = io.WriteString(w, `{"session_id":"s1"}`)
		return
	case "create_model":
		_, _ = io.WriteString(w, `{"request_id":"f1","model_id":"m1"}`)
		return
	case "create_sampling_session":
		_, _ = io.WriteString(w, `{"sampling_session_id":"sampler1"}`)
		return
	}
	hash := sha256.New()
	n, err := io.Copy(hash, r.Body)
	s.bytes.Store(n)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	s.length.Store(r.ContentLength)
	s.digest.Store((*[sha256.Size]byte)(hash.Sum(nil)))
	s.whole.Add(1)
	_, _ = io.WriteString(w, `{"request_id":"f2"}`)
}

// newSink serves a broker in front of a sink, at which the first run has a session, a model and a sampler.
func newSink(t *testing.T) (*fixture, *sink) {
	t.Helper()
	s := &sink{}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	f := newFixture(t, func(c *broker.Config) { c.BaseURL = server.URL })
	f.broker.HoldAtMost(heldInTests)
	for _, path := range []string{"create_session", "create_model", "create_sampling_session"} {
		if got := f.callAs(first, http.MethodPost, "/api/v1/"+path, `{}`); got.status != http.StatusOK {
			t.Fatalf("%s = %+v", path, got)
		}
	}
	return f, s
}

// largeBodies returns bodies that are larger than the broker holds. They name m1 or sampler1 before or after their
// large part.
func largeBodies(t *testing.T, of string) map[string][]string {
	t.Helper()
	data, err := tinker.EncodeForwardBackward(tinker.ForwardBackwardRequest{ModelID: of, SeqID: 1,
		Loss: tinker.Loss{Name: "cross_entropy"},
		Data: []tinker.Datum{{ModelInput: tinker.Text(make([]int32, 50<<10)), LossFnInputs: map[string]tinker.Tensor{}}}})
	if err != nil {
		t.Fatal(err)
	}
	name := func(field, text string) string { return fmt.Sprintf("%q:%q", field, text) }
	filler := `"prompt":{"chunks":[{"type":"image","data":"` + strings.Repeat("A", 200<<10) + `"}]}`
	tokens := `"forward_backward_input":{"data":[` + strings.Repeat("12345,", 50<<10) + `1]}`
	sampler := strings.Replace(of, "m", "sampler", 1)
	return map[string][]string{
		"protobuf":         {"forward_backward", string(data), tinker.ContentProtobuf},
		"model, then data": {"forward_backward", "{" + name("model_id", of) + "," + tokens + "}", tinker.ContentJSON},
		"data, then model": {"forward", "{" + tokens + "," + name("model_id", of) + "}", tinker.ContentJSON},
		"image, then sampler": {"asample", "{" + filler + "," + name("sampling_session_id", sampler) + "}",
			tinker.ContentJSON},
		"sampler, then spaces": {"asample", "{" + name("sampling_session_id", sampler) + strings.Repeat(" ", 200<<10) + "}",
			tinker.ContentJSON},
	}
}

// unknownLength hides the length of a body.
type unknownLength struct{ io.Reader }

func (f *fixture) sendLarge(path, media string, body io.Reader) answer {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.url+"/api/v1/"+path, body)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set(tinker.HeaderAPIKey, contract.RunToken(tokenKey, first.UID))
	r.Header.Set("Content-Type", media)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(read)}
}

func TestLargeBodiesPassAsTheyCame(t *testing.T) {
	f, s := newSink(t)
	for name, body := range largeBodies(t, "m1") {
		for _, known := range []bool{true, false} {
			var from io.Reader = strings.NewReader(body[1])
			length := int64(len(body[1]))
			if !known {
				from, length = unknownLength{from}, -1
			}
			if got := f.sendLarge(body[0], body[2], from); got.status != http.StatusOK {
				t.Errorf("%s: answer = %.300s, want the server's", name, fmt.Sprint(got))
			}
			if want := sha256.Sum256([]byte(body[1])); *s.digest.Load() != want || s.length.Load() != length {
				t.Errorf("%s: the server received another body, of length %d, want %d", name, s.length.Load(), length)
			}
		}
	}
	if stats := f.broker.Stats(); stats.BodyBytes != 0 {
		t.Errorf("%d bytes of bodies are reserved after the requests, want 0", stats.BodyBytes)
	}
}

func TestLargeBodiesThatAreNotPermittedAreCut(t *testing.T) {
	f, s := newSink(t)
	for name, body := range largeBodies(t, "m2") {
		got := f.sendLarge(body[0], body[2], strings.NewReader(body[1]))
		checkRefusal(t, got, http.StatusNotFound, problem.ObjectNotOwned, false)
		if n := s.whole.Load(); n != 0 {
			t.Errorf("%s: the server received a whole request, want none", name)
		}
	}
	good := largeBodies(t, "m1")["model, then data"]
	for name, end := range map[string]string{"two models": `,"model_id":"m2"}`, "something after": `}{"model_id":"m2"}`,
		"capitals": `,"MODEL_ID":"m2"}`, "another team's checkpoint": `,"model_path":"tinker://m2/weights/a"}`} {
		got := f.sendLarge(good[0], good[2], strings.NewReader(strings.TrimSuffix(good[1], "}")+end))
		if got.status != http.StatusUnprocessableEntity && got.status != http.StatusNotFound ||
			got.header.Get(tinker.HeaderBrokerForwarded) != "false" || s.whole.Load() != 0 {
			t.Errorf("%s: answer = %.300s and %d whole requests, want a refusal and none", name, fmt.Sprint(got), s.whole.Load())
		}
	}
	if stats := f.broker.Stats(); stats.BodyBytes != 0 {
		t.Errorf("%d bytes of bodies are reserved after the requests, want 0", stats.BodyBytes)
	}
}

func TestLargeBodiesOfOtherRoutesAreRefusedSoThatClientsSplitThem(t *testing.T) {
	f, s := newSink(t)
	body := unknownLength{bytes.NewReader(bytes.Repeat([]byte{' '}, heldInTests+1))}
	got := f.sendLarge("optim_step", tinker.ContentJSON, body)
	checkRefusal(t, got, http.StatusRequestEntityTooLarge, problem.RequestTooLarge, false)
	if n := s.whole.Load(); n != 0 {
		t.Errorf("the server received %d requests, want none", n)
	}
}

// stopping is a body that breaks off.
type stopping struct{ io.Reader }

func (s stopping) Read(out []byte) (int, error) {
	n, err := s.Reader.Read(out)
	if errors.Is(err, io.EOF) {
		err = errors.New("the client ends")
	}
	return n, err
}

func TestLargeBodiesThatBreakOffReachNoServerWhole(t *testing.T) {
	f, s := newSink(t)
	body := largeBodies(t, "m1")["model, then data"]
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/api/v1/"+body[0],
		stopping{strings.NewReader(body[1][:len(body[1])-1])})
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(tinker.HeaderAPIKey, contract.RunToken(tokenKey, first.UID))
	if resp, err := http.DefaultClient.Do(r); err == nil {
		_ = resp.Body.Close()
		t.Errorf("answer = %d, want none", resp.StatusCode)
	}
	until := time.Now().Add(5 * time.Minute)
	for f.broker.Stats().BodyBytes != 0 && time.Now().Before(until) {
		time.Sleep(10 * time.Millisecond)
	}
	if n, held := s.whole.Load(), f.broker.Stats().BodyBytes; n != 0 || held != 0 {
		t.Errorf("the server received %d whole requests, and %d bytes are reserved, want none", n, held)
	}
}

// pausing is a body that blocks after its last byte until the request ends.
type pausing struct {
	io.Reader
	ended <-chan struct{}
}

func (p pausing) Read(out []byte) (int, error) {
	n, err := p.Reader.Read(out)
	if err != nil {
		<-p.ended
	}
	return n, err
}

func TestClientsThatSendSlowlyHoldNoMemory(t *testing.T) {
	f, s := newSink(t)
	f.broker.ReadFor(100 * time.Millisecond)
	secure := httptest.NewUnstartedServer(f.broker)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	defer secure.CloseClientConnections()
	for protocol, base := range map[string]string{"HTTP/1.1": f.url, "HTTP/2.0": secure.URL} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/api/v1/forward_backward",
			pausing{strings.NewReader(`{"model_id":"m1"`), ctx.Done()})
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = 1000
		r.Header.Set(tinker.HeaderAPIKey, contract.RunToken(tokenKey, first.UID))
		resp, err := secure.Client().Do(r)
		if err != nil {
			t.Fatalf("%s: %v", protocol, err)
		}
		_ = resp.Body.Close()
		cancel()
		if resp.Proto != protocol || resp.StatusCode != http.StatusBadRequest || s.whole.Load() != 0 {
			t.Errorf("%s: answer = %s %d, and %d whole requests", protocol, resp.Proto, resp.StatusCode, s.whole.Load())
		}
		if held := f.broker.Stats().BodyBytes; held != 0 {
			t.Errorf("%s: %d bytes are reserved, want none", protocol, held)
		}
	}
}

func TestWaitingPollsReserveTheirBodyAlone(t *testing.T) {
	f, s := scripted(t)
	f.callAs(first, http.MethodPost, "/api/v1/optim_step", step)
	waiting, proceed := make(chan struct{}), make(chan struct{})
	s.set("retrieve_future", func(w http.ResponseWriter, _ *http.Request) {
		close(waiting)
		<-proceed
		_, _ = io.WriteString(w, `{}`)
	})
	done := make(chan struct{})
	const body = `{"request_id":"future-of-optim_step"}`
	go func() {
		defer close(done)
		f.sendLarge("retrieve_future", tinker.ContentJSON, unknownLength{strings.NewReader(body)})
	}()
	<-waiting
	if got := f.broker.Stats().BodyBytes; got != int64(len(body)) {
		t.Errorf("a poll that waits reserves %d bytes, want %d", got, len(body))
	}
	close(proceed)
	<-done
}
