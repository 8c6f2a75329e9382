// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

func (s *skyRL) createSamplingSession(_ *http.Request, body object) (any, *httpError) {
	from := samplerSource{session: body.text("session_id"), base: body.text("base_model"), path: body.text("model_path")}
	if (from.base == "") == (from.path == "") {
		return nil, failf(http.StatusBadRequest, "Exactly one of base_model or model_path must be provided")
	}
	from.model, _, _ = strings.Cut(strings.TrimPrefix(from.path, "tinker://"), "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprintf("sampling_%08x", len(s.samplers))
	s.samplers[id] = from
	return map[string]string{"type": tinker.TypeCreateSamplingSession, "sampling_session_id": id}, nil
}

// sample samples the newest weights of the model whose sampler is asked for.
func (s *skyRL) sample(r *http.Request, body object) (any, *httpError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, known := s.samplers[body.text("sampling_session_id")]
	if !known {
		return nil, failf(http.StatusNotFound, "Sampling session not found")
	}
	var params struct {
		MaxTokens *int   `json:"max_tokens"`
		Seed      *int64 `json:"seed"`
	}
	if err := json.Unmarshal(body["sampling_params"], &params); err != nil || params.MaxTokens == nil {
		return nil, failf(http.StatusBadRequest, "max_tokens is currently required")
	}
	if from.path != "" {
		if err := s.sampleable(r, from); err != nil {
			return nil, err
		}
	}
	if s.unloaded[from.model] {
		return s.refuse(from.model), nil
	}
	if params.Seed != nil && *params.Seed > math.MaxInt32 {
		return s.refuseFor(fmt.Sprintf("Python integer %d out of bounds for int32", *params.Seed)), nil
	}
	id, err := s.innerSampler(r, from)
	if err != nil {
		return nil, err
	}
	body.set("sampling_session_id", id)
	delete(body, "seq_id")
	delete(body, "prompt_logprobs_last_n") // SkyRL ignores fields that it does not know.
	delete(body, "topk_prompt_logprobs")
	return future(s.pass(r, body))
}

// longestLiveSave is the time for which a sample waits until the newest weights of its model are saved. PollHold only
// bounds polls.
const longestLiveSave = 30 * time.Second

// sampleable returns an error if sampler weights do not exist. It loads them into their model, which continues to
// train from them, unless they were loaded last. Then it saves the newest weights of the model if the model has moved
// on from them.
func (s *skyRL) sampleable(r *http.Request, from samplerSource) *httpError {
	name := from.path[strings.LastIndex(from.path, "/")+1:]
	if !s.taken[tinker.Path{Run: from.model, Kind: tinker.KindSampler, Name: name}] {
		return failf(http.StatusNotFound, "Checkpoint not found: %s/%s", from.model, name)
	}
	if s.unloaded[from.model] {
		return nil
	}
	saved := tinker.Path{Run: from.model, Kind: tinker.KindSampler, Name: name}.String()
	if s.sampler[from.model] != saved {
		s.nextOperation[from.model]++
		if err := s.options.LoadSampler(string(innerIDs([]byte(from.model))), s.nextOperation[from.model], name); err != nil {
			return nil // the simulator's answer to the sample says that the model is not loaded
		}
		s.sampler[from.model], s.newest[from.model], s.stale[from.model] = saved, saved, false
	}
	if !s.stale[from.model] {
		return nil
	}
	live := tinker.Path{Run: from.model, Kind: tinker.KindSampler,
		Name: fmt.Sprintf("live-%d", s.nextOperation[from.model])}
	body := object{}
	body.set("model_id", from.model)
	body.set("path", live.Name)
	s.number(from.model, body)
	accepted, err := s.post(r, tinker.TypeSaveSampler, body)
	if err == nil {
		_, err = s.await(r, accepted, time.Now().Add(longestLiveSave))
	}
	if err != nil {
		return nil // the simulator's answer to the sample says that the model is not loaded
	}
	s.newest[from.model], s.stale[from.model] = live.String(), false
	return nil
}

// innerSampler returns the simulator's sampling session of the weights.
func (s *skyRL) innerSampler(r *http.Request, from samplerSource) (string, *httpError) {
	path := s.newest[from.model]
	key := from.session + " " + from.base + path
	if id, known := s.innerSamplers[key]; known {
		return id, nil
	}
	body := object{}
	body.set("session_id", from.session)
	body.set("sampling_session_seq_id", len(s.innerSamplers))
	if from.base != "" {
		body.set("base_model", from.base)
	} else {
		body.set("model_path", path)
	}
	created, err := s.post(r, tinker.TypeCreateSamplingSession, body)
	if err != nil {
		return "", err
	}
	id := created.text("sampling_session_id")
	s.innerSamplers[key] = id
	return id, nil
}

func (s *skyRL) retrieve(r *http.Request, body object) (any, *httpError) {
	s.mu.Lock()
	reason, refused := s.refused[body.text("request_id")]
	sent, isPass := s.passes[body.text("request_id")]
	s.mu.Unlock()
	if refused {
		return nil, failf(http.StatusBadRequest, "%s", reason)
	}
	result, err := s.await(r, body, time.Now().Add(s.options.PollHold))
	if isPass && err == nil {
		sent.addLosses(result)
	}
	return result, err
}

// await holds a poll until the result is available, or until the deadline.
func (s *skyRL) await(r *http.Request, poll object, deadline time.Time) (object, *httpError) {
	request := object{"request_id": poll["request_id"]}
	for {
		value, err := s.post(r, "retrieve_future", request)
		switch {
		case err != nil:
			return nil, err
		case value.text("type") == tinker.TypeTryAgain && (time.Now().After(deadline) || r.Context().Err() != nil):
			return nil, failf(http.StatusRequestTimeout, "Timeout waiting for result")
		case value.text("type") == tinker.TypeTryAgain:
			continue
		case value["error"] != nil:
			return nil, &httpError{http.StatusBadRequest, value.text("error")}
		}
		return translated(value), nil
	}
}

// translated returns a result as SkyRL writes it.
func translated(value object) object {
	if path := value.text("path"); strings.Contains(path, "/sampler_weights/") {
		value.set("path", strings.Replace(path, "/sampler_weights/", "/", 1))
	}
	if value["loss_fn_outputs"] != nil {
		value.set("loss_fn_output_type", "scalar")
		value.set("metrics", map[string]float64{})
	}
	var logprobs []json.RawMessage
	if value["sequences"] != nil && json.Unmarshal(value["prompt_logprobs"], &logprobs) == nil && len(logprobs) > 0 {
		value.set("prompt_logprobs", logprobs[1:])
	}
	delete(value, "topk_prompt_logprobs")
	switch value.text("type") {
	case tinker.TypeLoadWeights:
		delete(value, "path")
		delete(value, "model_id")
	case tinker.TypeCreateModel, tinker.TypeSample:
		delete(value, "type")
	}
	return value
}

// trainingRuns lists all models, without metadata.
func (s *skyRL) trainingRuns(r *http.Request, body object) (any, *httpError) {
	list, err := s.pass(r, body)
	if err != nil {
		return nil, err
	}
	var runs []object
	_ = json.Unmarshal(list["training_runs"], &runs)
	for i := range runs {
		runs[i] = bare(runs[i])
	}
	if runs == nil {
		runs = []object{}
	}
	list.set("training_runs", runs)
	return list, nil
}

// trainingRun returns one model without metadata, or its checkpoints.
func (s *skyRL) trainingRun(r *http.Request, body object) (any, *httpError) {
	value, err := s.pass(r, body)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(r.URL.Path, "/checkpoints") {
		return bare(value), nil
	}
	var checkpoints []object
	_ = json.Unmarshal(value["checkpoints"], &checkpoints)
	listed := []object{}
	for _, c := range checkpoints {
		path := c.text("tinker_path")
		name := path[strings.LastIndex(path, "/")+1:]
		if strings.HasPrefix(name, "live-") {
			continue
		}
		c.set("checkpoint_id", name)
		c.set("time", withoutZone(c.text("time")))
		listed = append(listed, object{
			"checkpoint_id": c["checkpoint_id"], "checkpoint_type": c["checkpoint_type"], "time": c["time"],
			"tinker_path": c["tinker_path"],
		})
	}
	return map[string]any{"checkpoints": listed}, nil
}

// bare removes the fields that SkyRL does not keep from a training run.
func bare(run object) object {
	for _, field := range []string{"last_checkpoint", "last_sampler_checkpoint", "user_metadata"} {
		run[field] = json.RawMessage("null")
	}
	run.set("model_owner", "default")
	run.set("last_request_time", withoutZone(run.text("last_request_time")))
	return run
}

// withoutZone returns a time as SkyRL writes it: in UTC, without a zone.
func withoutZone(text string) string {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return at.UTC().Format("2006-01-02T15:04:05.000000")
}
