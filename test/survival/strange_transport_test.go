// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// wireOps are the operations whose answers are wrong; "any" stands for all operations.
var wireOps = []string{
	"any", "asample", "asample", "checkpoints", "config", "create_model", "create_sampling_session", "create_session",
	"delete_checkpoint", "finish", "forward", "forward_backward", "get_server_capabilities",
	"load_weights", "optim_step", "retrieve_future", "retrieve_future", "save_weights", "save_weights_for_sampler",
	"session_heartbeat",
	"training_runs", "ttl", "unload_model", "weights_info",
}

// wrongAnswer is an answer that an endpoint, or a proxy in front of it, gives instead of the right answer.
type wrongAnswer struct {
	op string
	// occurrence is the number of the first call of the operation that is answered wrongly, counted from 1.
	occurrence int
	// kind says how the answer is wrong. status is the answer's status if kind is "a status" or "a page".
	kind   string
	status int
	// executed says that the endpoint executes the request before it answers.
	executed bool
	// lasts is the time for which all calls of the operation are answered wrongly, from that call on; 0 means one call.
	lasts time.Duration
}

func (a wrongAnswer) String() string {
	text := fmt.Sprintf("%s from call %d on is answered with %s", a.op, a.occurrence, a.kind)
	if a.kind == "a status" || a.kind == "a page" {
		text += fmt.Sprint(" ", a.status)
	}
	if a.executed {
		text += ", although it was executed,"
	}
	return text + map[bool]string{true: " once", false: fmt.Sprint(" for ", a.lasts)}[a.lasts == 0]
}

// refusals are the statuses by which the API says that it has not executed a request. The bill of an endpoint that
// executes refused requests cannot be known.
var refusals = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden,
	http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge,
	http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusNotImplemented,
}

// drawWrongAnswer draws a wrong answer. If long is set, some wrong answers last for a minute.
func drawWrongAnswer(random *rand.Rand, long bool) wrongAnswer {
	a := wrongAnswer{op: wireOps[random.IntN(len(wireOps))], status: 400 + random.IntN(200), executed: random.IntN(2) == 0}
	a.occurrence = 1 + random.IntN(map[bool]int{true: 40, false: 4}[a.op == "any" || a.op == "asample" ||
		a.op == "retrieve_future"])
	a.kind = []string{"a status", "a status", "a status", "a status", "a page", "a page of 200", "a cut body",
		"other JSON", "a late answer"}[random.IntN(9)]
	if a.kind == "a status" && slices.Contains(refusals, a.status) {
		a.executed = false
	}
	if random.IntN(2) == 0 {
		a.lasts = time.Second
	}
	if draw := random.IntN(20); long && draw == 0 {
		a.lasts = time.Minute
	}
	return a
}

// strangeTransport is a transport that gives some calls a wrong answer.
type strangeTransport struct {
	answer wrongAnswer

	mu sync.Mutex
	// seen counts the calls of the operation, and given the wrong answers.
	seen, given int
	began       time.Time
	repaired    bool
	// called has the operations that were called.
	called map[string]bool
}

// opOf returns the operation of a request: the end of its path, unless the path ends with the name of an object.
func opOf(r *http.Request) string {
	switch end := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; {
	case strings.Contains(r.URL.Path, "/checkpoints/") && r.Method == http.MethodDelete:
		return "delete_checkpoint"
	case strings.HasSuffix(r.URL.Path, "/training_runs/"+end):
		return "training_run"
	default:
		return end
	}
}

// isWrong counts a call and reports whether its answer is wrong.
func (s *strangeTransport) isWrong(op string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.called == nil {
		s.called = map[string]bool{}
	}
	s.called[op] = true
	if s.answer.op != "any" && s.answer.op != op {
		return false
	}
	s.seen++
	switch {
	case s.repaired || s.seen < s.answer.occurrence:
		return false
	case s.given == 0:
		s.began = time.Now()
	case s.answer.lasts == 0, s.answer.lasts < time.Minute && time.Since(s.began) > s.answer.lasts:
		return false // the test repairs an answer that lasts for a minute, once the run has named the reason
	}
	s.given++
	return true
}

// repair makes all answers right.
func (s *strangeTransport) repair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repaired = true
}

// state returns the number of wrong answers, and the time for which answers have been wrong.
func (s *strangeTransport) state() (given int, lasted time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given > 0 {
		lasted = time.Since(s.began)
	}
	return s.given, lasted
}

// RoundTrip implements http.RoundTripper.
func (s *strangeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.isWrong(opOf(r)) {
		return http.DefaultTransport.RoundTrip(r)
	}
	if s.answer.kind == "a late answer" {
		select {
		case <-time.After(3 * time.Second):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		return http.DefaultTransport.RoundTrip(r)
	}
	var right *http.Response
	if s.answer.executed || s.answer.kind == "a cut body" {
		var err error
		if right, err = http.DefaultTransport.RoundTrip(r); err != nil {
			return nil, err
		}
		defer right.Body.Close()
	}
	if right == nil && r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return s.wrong(r, right)
}

// wrong returns the wrong answer to a call; right is the right one, if the call was executed.
func (s *strangeTransport) wrong(r *http.Request, right *http.Response) (*http.Response, error) {
	const page = "<!doctype html>\n<title>Service</title>"
	switch s.answer.kind {
	case "a page":
		return answer(r, s.answer.status, page), nil
	case "a page of 200":
		return answer(r, http.StatusOK, page), nil
	case "other JSON":
		return answer(r, http.StatusOK, `{"status":"ok","uptime":17}`), nil
	case "a cut body":
		body, err := io.ReadAll(right.Body)
		if err != nil {
			return nil, err
		}
		cut := answer(r, right.StatusCode, string(body[:len(body)/2]))
		cut.Header = right.Header.Clone()
		return cut, nil
	}
	return answer(r, s.answer.status, `{"detail":"temporarily wrong"}`), nil
}
