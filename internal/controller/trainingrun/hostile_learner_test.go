// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/heartbeat"
	"github.com/tinker-operator/tinker-operator/internal/controller/poller"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// end ends a pod as any container may end: with any exit code, and with any termination message of up to 4,096 bytes.
func (w *hostileWorld) end(pod *corev1.Pod) {
	message := []byte(w.text(4096))
	if w.random.IntN(2) == 0 {
		var verdict contract.Verdict
		w.fill(reflect.ValueOf(&verdict).Elem(), 3)
		if w.random.IntN(4) > 0 { // a verdict that the manager believes
			causes := []contract.Cause{contract.CauseDrained, contract.CauseUpstream, contract.CauseCrashed,
				contract.CauseFenced, contract.CauseStalled}
			verdict.Cause, verdict.Attempt = causes[w.random.IntN(len(causes))], 1
		}
		message, _ = json.Marshal(verdict)
	}
	codes := []int32{0, 1, 64, 65, 75, 77, 137, -1, math.MaxInt32}
	exited(codes[w.random.IntN(len(codes))], w.text(100), string(message[:min(len(message), 4096)]))(pod)
}

// post sends a heartbeat with the manager's own client, whose transport makes up the learner's answer.
func (w *hostileWorld) post(ctx context.Context, target poller.Target) (contract.HeartbeatReply, error) {
	w.heartbeats.Add(1)
	transport := roundTripper(func(request *http.Request) (*http.Response, error) {
		if strings.HasPrefix(target.Address, "honest") {
			body, err := json.Marshal(honestReply(target.Request, w.step.Add(1)))
			return response(http.StatusOK, body), err
		}
		return w.hostileReply(request, target.Request)
	})
	return heartbeat.Client{HTTP: &http.Client{Transport: transport}, Token: "token"}.Post(ctx, target.Address,
		target.Request)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func response(code int, body []byte) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}
}

// honestReply says that a step was committed.
func honestReply(request contract.HeartbeatRequest, step int64) contract.HeartbeatReply {
	return contract.HeartbeatReply{RunUID: request.RunUID, Attempt: request.Attempt, Sequence: step,
		Progress: contract.Progress{Phase: contract.PhaseTraining, Step: step, Steps: 1_000_000, Lineage: "abc",
			WorkersSeen: 2, Metrics: map[string]float64{"env/all/reward/total": 0.5}}}
}

// hostileReply returns any answer that a learner's image can give.
func (w *hostileWorld) hostileReply(request *http.Request, asked contract.HeartbeatRequest) (*http.Response, error) {
	switch w.random.IntN(10) {
	case 0:
		<-request.Context().Done() // it hangs
		return nil, request.Context().Err()
	case 1:
		return response([]int{204, 302, 401, 404, 500, 503}[w.random.IntN(6)], []byte(w.text(100_000))), nil
	case 2:
		return response(http.StatusOK, bytes.Repeat([]byte("["), 100_000+w.random.IntN(500_000))), nil
	case 3:
		return response(http.StatusOK, []byte(w.text(1000))), nil
	}
	reply := honestReply(asked, w.integer())
	before := reply
	w.fill(reflect.ValueOf(&reply).Elem(), 2+w.random.IntN(3))
	if w.random.IntN(10) > 0 { // a reply that the manager believes
		reply.RunUID, reply.Attempt = before.RunUID, before.Attempt
	}
	if w.random.IntN(3) > 0 {
		reply.Progress.Phase, reply.SecondsSinceProgress = contract.PhaseTraining, w.random.Float64()*100
	}
	for i := range reply.Problems {
		if codes := problem.Codes(); w.random.IntN(3) > 0 {
			reply.Problems[i].Code = codes[w.random.IntN(len(codes))]
		}
	}
	if w.random.IntN(20) == 0 {
		reply.Records = hostileRecords(asked.KnownRecords, w.random)
	}
	body, err := json.Marshal(reply)
	return response(http.StatusOK, body), err
}

// hostileRecords returns records of steps, the second of which is an evaluation, with 5,000 metrics each.
func hostileRecords(known int64, random *rand.Rand) []contract.Record {
	var records []contract.Record
	for i := range int64(1 + random.IntN(3)) {
		r := contract.Record{Number: known + i + 1, Step: known + i + 1, Lineage: "abc", Evaluation: i == 1,
			Metrics: map[string]float64{}}
		for n := range 5000 {
			r.Metrics[fmt.Sprintf("test/%d/%d", n, random.IntN(100))] = random.NormFloat64()
		}
		records = append(records, r)
	}
	return records
}

// fill sets a value, and all values within it, to anything that JSON can encode. The larger the budget, the longer the
// lists and texts.
func (w *hostileWorld) fill(v reflect.Value, budget int) {
	if w.random.IntN(4) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				w.fill(v.Field(i), budget)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		w.fill(v.Elem(), budget)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), w.random.IntN(1<<(2*budget)), 1<<(2*budget)))
		for i := range v.Len() {
			w.fill(v.Index(i), budget/2)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range w.random.IntN(1 << (2 * budget)) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			w.fill(key, 0)
			w.fill(value, 0)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(w.text(1 << (4 * budget)))
	case reflect.Float64:
		numbers := []float64{0, 1, -1, math.MaxFloat64, -math.MaxFloat64, 5e-324, 1e18, w.random.NormFloat64()}
		v.SetFloat(numbers[w.random.IntN(len(numbers))])
	case reflect.Bool:
		v.SetBool(w.random.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(w.integer())
	default:
		w.t.Fatalf("fill knows no values of type %s", v.Type())
	}
}

func (w *hostileWorld) integer() int64 {
	numbers := []int64{0, 1, -1, 7, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, w.random.Int64N(100000)}
	return numbers[w.random.IntN(len(numbers))]
}

// text returns one of several short texts, or the text repeated up to limit bytes.
func (w *hostileWorld) text(limit int) string {
	kinds := []string{"", "a", "\x00", "\xff\xfe", "\n", "ä", "\u202e", "tinker://x/weights/", "%s%n", "{", "<script>",
		"2026-11-27T00:00:00Z", "env", "test/env/pass@1"}
	kind := kinds[w.random.IntN(len(kinds))]
	if kind == "" || w.random.IntN(2) == 0 {
		return kind
	}
	return strings.Repeat(kind, w.random.IntN(1+limit/len(kind)))
}
