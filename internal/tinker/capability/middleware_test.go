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

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// door stands before a simulator and makes a server of it that somebody else might have written.
type door func(next http.Handler) http.Handler

// rewriting changes the JSON bodies that are posted to an endpoint.
func rewriting(op string, change func(body map[string]any)) door {
	return editing(op, func(t []byte) []byte {
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

// recasting changes the passes that are asked for.
func recasting(change func(*tinker.ForwardBackwardRequest)) door {
	return editing("forward_backward", func(body []byte) []byte {
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

func editing(op string, edit func([]byte) []byte) door {
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

// answering replaces what the server says to some requests.
func answering(method, path string, status int, body string) door {
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

// outputs changes the results of passes, samples those of samples; other protobuf is left alone.
func outputs(change func(*tinker.ForwardBackwardResult)) door {
	return results(tinker.DecodeOutput, tinker.EncodeOutput, "ForwardBackward Forward", change)
}

func samples(change func(*tinker.SampleResult)) door {
	return results(tinker.DecodeSample, tinker.EncodeSample, "Sample", change)
}

func results[T any](decode func([]byte) (T, error), encode func(T) ([]byte, error), kinds string, change func(*T)) door {
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

// all puts doors one behind the other.
func all(doors ...door) door {
	return func(next http.Handler) http.Handler {
		for _, d := range doors {
			next = d(next)
		}
		return next
	}
}

// adam sets one of the settings of optim_step to what the server takes instead.
func adam(setting string, instead float64) door {
	return rewriting("optim_step", func(body map[string]any) {
		body["adam_params"].(map[string]any)[setting] = instead
	})
}

// lossSetting has a loss computed by another value than the one that was given.
func lossSetting(loss, setting string, instead float64) door {
	return recasting(func(r *tinker.ForwardBackwardRequest) {
		if r.Loss.Name == loss {
			r.Loss.Config[setting] = instead
		}
	})
}

// silent leaves the metrics of passes out, as some servers do.
func silent() door {
	return outputs(func(r *tinker.ForwardBackwardResult) { r.Metrics = map[string]float64{} })
}

func noLoss(name string) door {
	return recasting(func(r *tinker.ForwardBackwardRequest) {
		if r.Loss.Name == name {
			r.Loss.Name = "none"
		}
	})
}
