// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/dialect"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// skyModel is a model at a server in the dialect of SkyRL.
type skyModel struct {
	t      *testing.T
	server *Server
	dir    string
	// session and id are the ids of the session and of the model.
	session, id string
}

// longestCall is the time that a call may take on a slow machine.
const longestCall = 30 * time.Second

// object is a body in JSON.
type object = map[string]any

// newSkyModel creates a model of rank 2. The metadata of its session and of the model contain a marker.
func newSkyModel(t *testing.T, options Options, marker string) *skyModel {
	t.Helper()
	options.Dir, options.Dialect = t.TempDir(), dialect.NameSkyRL
	server, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	m := &skyModel{t: t, server: server, dir: options.Dir}
	metadata := object{"marker": marker}
	_, session := m.call("create_session", object{"tags": []string{}, "user_metadata": metadata, "sdk_version": "0.24.1",
		"type": "create_session"})
	_, created := m.call("create_model", object{
		"session_id": session["session_id"], "model_seq_id": 0, "base_model": ModelName, "user_metadata": metadata,
		"lora_config": object{"rank": 2, "seed": 1}, "type": "create_model",
	})
	m.session, _ = session["session_id"].(string)
	m.id, _ = created["model_id"].(string)
	m.result(created)
	return m
}

// call posts a body.
func (m *skyModel) call(path string, body object) (status int, answer object) {
	m.t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(m.t.Context(), longestCall)
	defer cancel()
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/"+path, bytes.NewReader(encoded))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Api-Key", "tml-test")
	response := httptest.NewRecorder()
	m.server.ServeHTTP(response, request)
	if ctx.Err() != nil {
		m.t.Fatalf("%s has no answer after %v", path, longestCall)
	}
	if err := json.Unmarshal(response.Body.Bytes(), &answer); err != nil {
		m.t.Fatalf("%s answers %d %s: %v", path, response.Code, response.Body, err)
	}
	return response.Code, answer
}

// poll polls for the result of an accepted operation.
func (m *skyModel) poll(accepted object) (status int, answer object) {
	m.t.Helper()
	return m.call("retrieve_future", object{"request_id": accepted["request_id"]})
}

// result returns the result of an accepted operation, which must succeed.
func (m *skyModel) result(accepted object) object {
	m.t.Helper()
	status, result := m.poll(accepted)
	for status == http.StatusRequestTimeout {
		status, result = m.poll(accepted)
	}
	if status != http.StatusOK {
		m.t.Fatalf("the result of %v is %d %v", accepted, status, result)
	}
	return result
}

// do executes an operation of the model.
func (m *skyModel) do(operation string, body object) object {
	m.t.Helper()
	status, accepted := m.call(operation, m.of(body))
	if status != http.StatusOK {
		m.t.Fatalf("%s answers %d %v", operation, status, accepted)
	}
	return m.result(accepted)
}

// of returns the body of an operation of the model.
func (m *skyModel) of(body object) object {
	body["model_id"], body["seq_id"] = m.id, 1
	return body
}

// step trains on one token.
func (m *skyModel) step() {
	m.t.Helper()
	m.do("forward_backward", object{"forward_backward_input": object{"loss_fn": "cross_entropy", "data": []object{{
		"model_input": object{"chunks": []object{{"tokens": []int{49, 50}, "type": "encoded_text"}}},
		"loss_fn_inputs": object{
			"target_tokens": object{"data": []int{50, 51}, "dtype": "int64", "shape": []int{2}},
			"weights":       object{"data": []float64{1, 1}, "dtype": "float32", "shape": []int{2}},
		},
	}}}})
	m.do("optim_step", object{"adam_params": object{"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8}})
}

// save saves sampler weights and returns their path.
func (m *skyModel) save(name string) string {
	m.t.Helper()
	path, _ := m.do("save_weights_for_sampler", object{"path": name})["path"].(string)
	return path
}

// sampled requests a sample under the weights at a path, and returns the answer to the request.
func (m *skyModel) sampled(path string, params object) (status int, accepted object) {
	m.t.Helper()
	_, session := m.call("create_sampling_session", object{"session_id": m.session, "sampling_session_seq_id": 1,
		"model_path": path})
	return m.call("asample", object{
		"num_samples": 1, "sampling_params": params, "sampling_session_id": session["sampling_session_id"], "seq_id": 1,
		"prompt": object{"chunks": []object{{"tokens": []int{49, 50}, "type": "encoded_text"}}},
	})
}

// TestSampleLoadsWeightsOfSkyRL samples older weights after newer ones: the model then continues to train from the
// older weights, with the optimizer of the newer ones. Sampling the same weights twice loads them once.
func TestSampleLoadsWeightsOfSkyRL(t *testing.T) {
	m := newSkyModel(t, Options{}, "")
	// sample samples weights and returns the log-probability of a token under the sampled weights.
	sample := func(path string) float64 {
		_, accepted := m.sampled(path, object{"max_tokens": 1, "seed": 1})
		logprobs, _ := m.result(accepted)["sequences"].([]any)[0].(object)["logprobs"].([]any)
		return logprobs[0].(float64)
	}
	// trained returns the log-probabilities under the weights that train.
	trained := func() string {
		result := m.do("forward", object{"forward_input": object{"loss_fn": "cross_entropy", "data": []object{{
			"model_input": object{"chunks": []object{{"tokens": []int{49, 50}, "type": "encoded_text"}}},
			"loss_fn_inputs": object{"target_tokens": object{"data": []int{50, 51}, "dtype": "int64", "shape": []int{2}},
				"weights": object{"data": []float64{1, 1}, "dtype": "float32", "shape": []int{2}}},
		}}}})
		text, err := json.Marshal(result["loss_fn_outputs"])
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first, initial := m.save("v0"), trained()
	sample(first)
	m.step()
	newer := trained()
	if newer == initial {
		t.Fatalf("the step changes nothing: got %v for both", newer)
	}
	sample(first)
	if got := trained(); got != newer {
		t.Errorf("a second sample of the weights that were loaded last changes the model:\n%s\nwant\n%s", got, newer)
	}
	sample(m.save("v1"))
	if got := trained(); got != newer {
		t.Errorf("a sample of the newest weights changes the model:\n%s\nwant\n%s", got, newer)
	}
	sample(first)
	if got := trained(); got != initial {
		t.Errorf("a sample of older weights leaves the model as\n%s\nwant\n%s", got, initial)
	}
}

// TestAnswersOfSkyRL checks answers that clients adapt to.
func TestAnswersOfSkyRL(t *testing.T) {
	m := newSkyModel(t, Options{}, "")
	path := m.save("v0")
	if want := "tinker://" + m.id + "/v0"; path != want {
		t.Errorf("sampler weights are at %s, want %s", path, want)
	}
	for name, params := range map[string]object{"without max_tokens": {"seed": 1}, "with null": {"max_tokens": nil}} {
		if status, answer := m.sampled(path, params); status != http.StatusBadRequest ||
			answer["detail"] != "max_tokens is currently required" {
			t.Errorf("a sample %s is answered %d %v", name, status, answer)
		}
	}
	if status, answer := m.sampled(path, object{"max_tokens": 1, "seed": int64(1) << 40}); status != http.StatusOK {
		t.Errorf("a sample with a long seed is answered %d %v", status, answer)
	} else if status, answer := m.poll(answer); status != http.StatusBadRequest || answer["detail"] == nil ||
		answer["error"] != nil {
		t.Errorf("the result of a sample that is not drawn is answered %d %v, want 400 with a detail", status, answer)
	}
}

// TestFailedResultsOfSkyRL fails operations in each place: when they are executed, and because their model is unloaded.
func TestFailedResultsOfSkyRL(t *testing.T) {
	m := newSkyModel(t, Options{Faults: []fault.Rule{{Op: "optim_step", Occurrence: 1, Do: fault.Fail,
		Category: "server"}}}, "")
	adam := object{"adam_params": object{"learning_rate": 0.01}}
	check := func(name string) {
		t.Helper()
		_, accepted := m.call("optim_step", m.of(adam))
		if status, answer := m.poll(accepted); status != http.StatusBadRequest || answer["detail"] == nil ||
			answer["error"] != nil {
			t.Errorf("%s: the result is answered %d %v, want 400 with a detail", name, status, answer)
		}
	}
	check("an operation that fails")
	m.do("unload_model", object{})
	check("an operation of a model that is not loaded")
}

// TestPollsOfSkyRL polls for a result that is late: the poll is held, and then answered 408.
func TestPollsOfSkyRL(t *testing.T) {
	const hold = 100 * time.Millisecond
	m := newSkyModel(t, Options{PollPatience: 10 * time.Millisecond, PollHold: hold, Faults: []fault.Rule{
		{ID: "late", Op: "optim_step", Do: fault.Hold, Stage: fault.Reply},
	}}, "")
	_, accepted := m.call("optim_step", m.of(object{"adam_params": object{"learning_rate": 0.01}}))
	began := time.Now()
	status, answer := m.poll(accepted)
	if status != http.StatusRequestTimeout || answer["detail"] != "Timeout waiting for result" {
		t.Errorf("the poll is answered %d %v, want 408", status, answer)
	}
	if took := time.Since(began); took < hold {
		t.Errorf("the poll was held for %v, want %v", took, hold)
	}
	if err := m.server.Faults().Release("late"); err != nil {
		t.Fatal(err)
	}
	m.result(accepted)
}

// TestMetadataAtSkyRL checks that the server's files contain no metadata of a session, a model or its checkpoints.
func TestMetadataAtSkyRL(t *testing.T) {
	const marker = "metadata-that-is-ignored"
	m := newSkyModel(t, Options{}, marker)
	m.do("save_weights", object{"path": "state", "user_metadata": object{"marker": marker}})
	m.do("save_weights_for_sampler", object{"path": "v0", "user_metadata": object{"marker": marker}})
	var found []string
	err := filepath.WalkDir(m.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(marker)) {
			found = append(found, filepath.Base(path))
		}
		return err
	})
	if slices.Sort(found); err != nil || len(found) > 0 {
		t.Errorf("the files %v have the metadata; %v", found, err)
	}
}
