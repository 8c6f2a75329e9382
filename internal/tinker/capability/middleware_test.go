// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// middleware wraps a simulator so that it behaves like another server.
type middleware func(next http.Handler) http.Handler

// editJSON changes the JSON bodies of requests to an endpoint.
func editJSON(op string, change func(body map[string]any)) middleware {
	return editBody(op, func(t []byte) []byte {
		var body map[string]any
		decoder := json.NewDecoder(bytes.NewReader(t))
		decoder.UseNumber() // sequence numbers have more digits than a float
		if decoder.Decode(&body) != nil {
			return t
		}
		change(body)
		changed, err := json.Marshal(body)
		if err != nil {
			return t
		}
		return changed
	})
}

// editPass changes requests for passes.
func editPass(change func(*tinker.ForwardBackwardRequest)) middleware {
	return editBody("forward_backward", func(body []byte) []byte {
		request, err := tinker.DecodeForwardBackward(body)
		if err != nil {
			return body
		}
		change(&request)
		if body, err = tinker.EncodeForwardBackward(request); err != nil {
			panic(err)
		}
		return body
	})
}

// editBody changes the bodies of requests to an endpoint.
func editBody(op string, edit func([]byte) []byte) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/"+op) {
				body, _ := io.ReadAll(r.Body)
				body = edit(body)
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			}
			next.ServeHTTP(w, r)
		})
	}
}

// respondWith replaces the responses to some requests.
func respondWith(method, path string, status int, body string) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != method || !strings.Contains(r.URL.Path, path) {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
}

// editOutput changes the results of passes.
func editOutput(change func(*tinker.ForwardBackwardResult)) middleware {
	return editResult(tinker.DecodeOutput, tinker.EncodeOutput, "ForwardBackward Forward", change)
}

// editSamples changes the results of sampling.
func editSamples(change func(*tinker.SampleResult)) middleware {
	return editResult(tinker.DecodeSample, tinker.EncodeSample, "Sample", change)
}

// editResult changes the protobuf results of some kinds of requests.
func editResult[T any](decode func([]byte) (T, error), encode func(T) ([]byte, error), kinds string,
	change func(*T)) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			kind := r.Header.Get("X-Tinker-Request-Type")
			if kind == "" || !strings.Contains(kinds, kind) {
				next.ServeHTTP(w, r)
				return
			}
			recorder := httptest.NewRecorder()
			next.ServeHTTP(recorder, r)
			body := recorder.Body.Bytes()
			if strings.Contains(recorder.Header().Get("Content-Type"), "protobuf") {
				if value, err := decode(body); err == nil {
					change(&value)
					body, _ = encode(value)
				}
			}
			w.Header().Set("Content-Type", recorder.Header().Get("Content-Type"))
			w.WriteHeader(recorder.Code)
			_, _ = w.Write(body)
		})
	}
}

// chain applies middlewares one after the other.
func chain(middlewares ...middleware) middleware {
	return func(next http.Handler) http.Handler {
		for _, d := range middlewares {
			next = d(next)
		}
		return next
	}
}

// ignoreAdam replaces the value of a setting of optim_step.
func ignoreAdam(setting string, instead float64) middleware {
	return editJSON("optim_step", func(body map[string]any) {
		body["adam_params"].(map[string]any)[setting] = instead
	})
}

// ignoreLossSetting replaces the value of a setting of a loss.
func ignoreLossSetting(loss tinker.LossName, setting string, instead float64) middleware {
	return editPass(func(r *tinker.ForwardBackwardRequest) {
		if r.Loss.Name == loss {
			r.Loss.Config[setting] = instead
		}
	})
}

// withoutMetrics drops the metrics of passes, as some servers do.
func withoutMetrics() middleware {
	return editOutput(func(r *tinker.ForwardBackwardResult) { r.Metrics = map[string]float64{} })
}

// withoutLoss rejects a loss.
func withoutLoss(name tinker.LossName) middleware {
	return editPass(func(r *tinker.ForwardBackwardRequest) {
		if r.Loss.Name == name {
			r.Loss.Name = "none"
		}
	})
}

// decayEverywhere makes a step with weight decay change all existing models, as it does at servers that keep the
// adapters of all models in one tensor. It changes the tokens of their later passes.
func decayEverywhere() middleware {
	var mu sync.Mutex
	decays, known := 0, map[string]int{}
	return chain(
		editJSON("optim_step", func(body map[string]any) {
			if decay, _ := body["adam_params"].(map[string]any)["weight_decay"].(json.Number).Float64(); decay == 0 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			decays++
			known[body["model_id"].(string)] = decays
		}),
		editPass(func(r *tinker.ForwardBackwardRequest) {
			mu.Lock()
			defer mu.Unlock()
			if _, ok := known[r.ModelID]; !ok {
				known[r.ModelID] = decays
			}
			if known[r.ModelID] == decays {
				return
			}
			tokens := r.Data[0].ModelInput.Chunks[0].Tokens
			for i := range tokens {
				tokens[i] = tokens[0]
			}
		}),
	)
}
