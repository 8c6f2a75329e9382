// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim_test

import (
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// rawCall is a request and its expected response. {S} and {M} stand for the session and the model.
type rawCall struct {
	method, path, body string
	header             []string
	status             int
	want               string // JSON; empty if the body is not checked
}

const (
	runOne = `{"training_run_id":"{M}","base_model":"tinkersim/byte-136k","model_owner":"local","is_lora":true,"corrupted":false,"lora_rank":4,
		"last_request_time":"2026-11-21T12:00:00Z","last_checkpoint":` + checkpointOne + `,"last_sampler_checkpoint":` + checkpointTwo + `,
		"user_metadata":{"run":"abc","attempt":"1"}}`
	checkpointOne = `{"checkpoint_id":"weights/one","checkpoint_type":"training","time":"2026-11-21T12:00:00Z",
		"tinker_path":"tinker://{M}/weights/one","size_bytes":{ONE},"public":false,"expires_at":null}`
	checkpointTwo = `{"checkpoint_id":"sampler_weights/two","checkpoint_type":"sampler","time":"2026-11-21T12:00:00Z",
		"tinker_path":"tinker://{M}/sampler_weights/two","size_bytes":{TWO},"public":false,"expires_at":"2026-11-21T13:00:00Z"}`
	ofModel = "/api/v1/training_runs/{M}/checkpoints/"
)

// changes reports whether the call changes the server.
func (c rawCall) changes() bool { return c.method != "GET" && c.status < 300 }

// TestCalls makes each call to a server that has a session, a model and two checkpoints. Calls that
// change something have a server of their own.
func TestCalls(t *testing.T) {
	cases := map[string]rawCall{
		"health needs no key":            {"GET", "/healthz", "", []string{"X-API-Key", ""}, 200, `{"status":"ok"}`},
		"health exists below the prefix": {"GET", "/api/v1/healthz", "", nil, 200, `{"status":"ok"}`},
		"a key of another form is refused": {"POST", "/api/v1/create_session", "{}", []string{"X-API-Key", "sk-1"}, 401,
			`{"detail":"invalid API key"}`},
		"no key is refused":            {"GET", "/api/v1/checkpoints", "", []string{"X-API-Key", ""}, 401, ""},
		"admin needs a key":            {"GET", "/admin/busy", "", []string{"X-API-Key", ""}, 401, ""},
		"an unknown path is not found": {"GET", "/api/v1/audit", "", nil, 404, ""},
		"the configuration": {"POST", "/api/v1/client/config", `{"sdk_version":"0.25.0"}`, nil, 200,
			`{"pjwt_auth_enabled":false,"credential_default_source":"api_key","sample_dispatch_bytes_semaphore_size":10485760,
			"inflight_response_bytes_semaphore_size":52428800,"parallel_fwdbwd_chunks":false,"proto_compress_fwdbwd":false,"fwdbwd_max_chunk_len":1024,
			"fwdbwd_max_chunk_bytes_count":5000000,"fwdbwd_dispatch_bytes_semaphore_size":50000000,"billing_exception_max_pause_duration_sec":3600,
			"sample_no_retries":false,"sample_enable_stuck_detection":true,"sample_max_concurrent_requests":2000,"use_pyqwest_transport":false,
			"create_model_via_load_weights":false}`},
		"the dynamic configuration": {"POST", "/api/v1/client/dynamic_config", `{}`, nil, 200,
			`{"refresh_interval_sec":300,"sample_cancel_enabled":true}`},
		"keys are not exchanged by default": {"POST", "/api/v1/auth/token", `{}`, nil, 404, ""},
		"telemetry is accepted": {"POST", "/api/v1/telemetry", `{"events":[]}`, nil, 200,
			`{"status":"accepted"}`},
		"capabilities name the model": {"GET", "/api/v1/get_server_capabilities", "", nil, 200,
			`{"supported_models":[{"model_name":"tinkersim/byte-136k","max_context_length":4096,"trainable":true,"sampleable":true},{"model_name":"tinkersim/byte-136k-countdown","max_context_length":4096,"trainable":true,"sampleable":true},{"model_name":"tinkersim/byte-136k-sums","max_context_length":4096,"trainable":true,"sampleable":true},{"model_name":"tinkersim/rubric-judge","max_context_length":32768,"trainable":false,"sampleable":true}]}`},
		"a heartbeat": {"POST", "/api/v1/session_heartbeat", `{"session_id":"{S}"}`, nil, 200,
			`{"type":"session_heartbeat"}`},
		"a heartbeat of another session": {"POST", "/api/v1/session_heartbeat", `{"session_id":"x"}`, nil, 404,
			`{"detail":"session x not found"}`},
		"what is not JSON is 422": {"POST", "/api/v1/session_heartbeat", `{"session_id":`, nil, 422, ""},
		"what has another type is 422": {"POST", "/api/v1/optim_step", `{"model_id":"{M}","seq_id":"5"}`, nil, 422,
			""},
		"what is not protobuf is 400": {"POST", "/api/v1/forward_backward", "\xff\xff", nil, 400, ""},
		"sessions are listed":         {"GET", "/api/v1/sessions", "", nil, 200, `{"sessions":["{S}"]}`},
		"a session": {"GET", "/api/v1/sessions/{S}", "", nil, 200,
			`{"training_run_ids":["{M}"],"sampler_ids":[]}`},
		"another session": {"GET", "/api/v1/sessions/x", "", nil, 404, ""},
		"the project of a session": {"PUT", "/api/v1/sessions/{S}/project", `{"project_id":"p"}`, nil, 204,
			""},
		"the end of a session": {"POST", "/api/v1/sessions/{S}/finish", `{"reason":{"type":"success"}}`,
			nil, 204, ""},
		"a model is described": {"POST", "/api/v1/get_info", `{"model_id":"{M}"}`, nil, 200,
			`{"type":"get_info","model_id":"{M}","is_lora":true,"lora_rank":4,"model_name":"tinkersim/byte-136k","model_data":{"arch":"tinkersim","model_name":"tinkersim/byte-136k","tokenizer_id":"tinkersim/byte-136k"}}`},
		"another model": {"POST", "/api/v1/get_info", `{"model_id":"x"}`, nil, 404,
			`{"detail":"model x not found"}`},
		"an operation of another model": {"POST", "/api/v1/optim_step", `{"model_id":"x","seq_id":1}`, nil, 404,
			`{"detail":"model x not found"}`},
		"a model of another session": {"POST", "/api/v1/create_model",
			`{"session_id":"x","model_seq_id":0,"base_model":"tinkersim/byte-136k"}`, nil, 404, ""},
		"another model under the same number": {"POST", "/api/v1/create_model",
			`{"session_id":"{S}","model_seq_id":0,"base_model":"y"}`, nil, 400, ""},
		"a number below 1": {"POST", "/api/v1/optim_step", `{"model_id":"{M}","seq_id":0}`, nil, 400,
			""},
		"another operation under a number": {"POST", "/api/v1/optim_step", `{"model_id":"{M}","seq_id":3}`, nil, 400,
			`{"detail":"seq_id 3 was used for another operation"}`},
		"a model of another optimizer": {"POST", "/api/v1/create_model",
			`{"session_id":"{S}","model_seq_id":7,"base_model":"tinkersim/byte-136k","optimizer_config":{"type":"dimuon"}}`, nil,
			400, ""},
		"a step of another optimizer": {"POST", "/api/v1/optim_step",
			`{"model_id":"{M}","seq_id":5,"optimizer_params":{"type":"dimuon"}}`, nil, 400,
			`{"detail":"the optimizer \"dimuon\" is not supported: only adamw is"}`},
		"fewer than no alternatives to sampled tokens": {"POST", "/api/v1/asample",
			`{"base_model":"tinkersim/byte-136k","prompt":{"chunks":[{"type":"encoded_text","tokens":[65,66]}]},` +
				`"topk_sample_logprobs":-1}`, nil, 400, `{"detail":"topk_sample_logprobs must be from 0 to 260"}`},
		"a bill from within an hour": {"GET",
			"/api/v1/billing/usage/events?starting_on=2026-11-21T12:30:00Z&ending_before=2026-11-22T00:00:00Z", "", nil, 400,
			`{"detail":"starting_on must be the begin of an hour of UTC in RFC 3339"}`},
		"a bill of too many days": {"GET",
			"/api/v1/billing/usage/events?starting_on=2026-11-01T00:00:00Z&ending_before=2026-11-22T00:00:00Z", "", nil, 400,
			`{"detail":"ending_before must be after starting_on, and at most 14 days"}`},
		"targets of another prompt": {"POST", "/api/v1/asample",
			`{"base_model":"tinkersim/byte-136k","prompt":{"chunks":[{"type":"encoded_text","tokens":[65,66,67]}]},` +
				`"target_prompt_logprobs":{"data":[1],"dtype":"int64","shape":[1,1]}}`, nil, 400,
			`{"detail":"target_prompt_logprobs must be int64 with the shape [2, K]"}`},
		"a target below 0": {"POST", "/api/v1/asample",
			`{"base_model":"tinkersim/byte-136k","prompt":{"chunks":[{"type":"encoded_text","tokens":[65,66]}]},` +
				`"target_prompt_logprobs":{"data":[-2],"dtype":"int64","shape":[1,1]}}`, nil, 400,
			`{"detail":"target_prompt_logprobs: -2 is not a token"}`},
		"more than a prompt has": {"POST", "/api/v1/asample",
			`{"base_model":"tinkersim/byte-136k","prompt":{"chunks":[{"type":"encoded_text","tokens":[65,66,67]}]},` +
				`"prompt_logprobs":true,"prompt_logprobs_last_n":3}`, nil, 400,
			`{"detail":"prompt_logprobs_last_n needs prompt_logprobs, and must be from 1 to 2"}`},
		"an option of a later version": {"POST", "/api/v1/asample", `{"zeta":"yes","alpha":"yes"}`, nil, 400,
			`{"detail":"alpha is not supported"}`},
		"a setting of a later version": {"POST", "/api/v1/asample",
			`{"sampling_params":{"max_tokens":1,"min_p":0.1}}`, nil, 400, `{"detail":"sampling_params.min_p is not supported"}`},
		"alternatives to a prompt": {"POST", "/api/v1/asample", `{"prompt_alt_tokens_k":2}`, nil, 400,
			`{"detail":"prompt_alt_tokens_k is not supported"}`},
		"a load that is not the first": {"POST", "/api/v1/load_weights",
			`{"model_id":"{M}","seq_id":5,"path":"tinker://{M}/weights/one","optimizer":true}`, nil, 400,
			`{"detail":"LoadWeights is not permitted with seq_id 5"}`},
		"a load of sampler weights": {"POST", "/api/v1/load_weights",
			`{"model_id":"{M}","seq_id":1,"path":"tinker://{M}/sampler_weights/two"}`, nil, 400, ""},
		"a load of an invalid path": {"POST", "/api/v1/load_weights",
			`{"model_id":"{M}","seq_id":1,"path":"one"}`, nil, 400, ""},
		"a load without a model's number": {"POST", "/api/v1/load_weights",
			`{"session_id":"{S}","path":"tinker://{M}/weights/one"}`, nil, 400, ""},
		"a load of another run's state": {"POST", "/api/v1/load_weights",
			`{"session_id":"{S}","model_seq_id":1,"path":"tinker://x/weights/one"}`, nil, 404, ""},
		"a sampler save of both kinds": {"POST", "/api/v1/save_weights_for_sampler",
			`{"model_id":"{M}","seq_id":5,"path":"a","sampling_session_seq_id":1}`, nil, 400, ""},
		"a sampler save of weights that change": {"POST", "/api/v1/save_weights_for_sampler",
			`{"model_id":"{M}","seq_id":5,"sampling_session_seq_id":1,"kind":"inflight"}`, nil, 400,
			`{"detail":"kind \"inflight\" is not supported: leave it out, or set it to snapshot"}`},
		"an encrypted export": {"POST", "/api/v1/save_weights_external",
			`{"model_id":"{M}","seq_id":5,"path":"a","age_encryption_recipients":["age1x"]}`, nil, 400,
			`{"detail":"age_encryption_recipients is not supported: leave it out, so that the files are not encrypted"}`},
		"an export without a name": {"POST", "/api/v1/save_weights_external", `{"model_id":"{M}","seq_id":5}`,
			nil, 400, `{"detail":"path must be given"}`},
		"a sampler save without a path": {"POST", "/api/v1/save_weights_for_sampler",
			`{"model_id":"{M}","seq_id":5}`, nil, 400, ""},
		"another future": {"POST", "/api/v1/retrieve_future", `{"request_id":"req-9"}`, nil, 404,
			""},
		"a sampling session by path": {"POST", "/api/v1/create_sampling_session",
			`{"session_id":"{S}","sampling_session_seq_id":3,"model_path":"tinker://{M}/sampler_weights/two"}`, nil, 200,
			`{"type":"create_sampling_session","sampling_session_id":"{S}:sample:3"}`},
		"a sampling session of a state": {"POST", "/api/v1/create_sampling_session",
			`{"session_id":"{S}","sampling_session_seq_id":3,"model_path":"tinker://{M}/weights/one"}`, nil, 200, ""},
		"a sampling session of the base": {"POST", "/api/v1/create_sampling_session",
			`{"session_id":"{S}","sampling_session_seq_id":3,"base_model":"tinkersim/byte-136k"}`, nil, 200, ""},
		"a sampling session of another base": {"POST", "/api/v1/create_sampling_session",
			`{"session_id":"{S}","sampling_session_seq_id":3,"base_model":"x"}`, nil, 400, ""},
		"a sampling session without weights": {"POST", "/api/v1/create_sampling_session",
			`{"session_id":"{S}","sampling_session_seq_id":3,"model_path":"tinker://{M}/sampler_weights/three"}`, nil, 404, ""},
		"a sampling session of a bad path": {"POST", "/api/v1/create_sampling_session",
			`{"session_id":"{S}","sampling_session_seq_id":3,"model_path":"tinker://{M}/two"}`, nil, 400, ""},
		"a sampling session of a missing session": {"POST", "/api/v1/create_sampling_session",
			`{"session_id":"x","sampling_session_seq_id":3,"base_model":"tinkersim/byte-136k"}`, nil, 404, ""},
		"another sampler": {"GET", "/api/v1/samplers/x", "", nil, 404, ""},
		"samples of another sampling session": {"POST", "/api/v1/asample",
			`{"sampling_session_id":"x","seq_id":1,"prompt":{"chunks":[{"type":"encoded_text","tokens":[1]}]}}`, nil, 404, ""},
		"samples of an empty prompt": {"POST", "/api/v1/asample",
			`{"base_model":"tinkersim/byte-136k","prompt":{"chunks":[]}}`, nil, 400, ""},
		"samples of a token too high": {"POST", "/api/v1/asample",
			`{"base_model":"tinkersim/byte-136k","prompt":{"chunks":[{"type":"encoded_text","tokens":[260]}]}}`, nil, 400, ""},
		"samples of an image": {"POST", "/api/v1/asample",
			`{"base_model":"tinkersim/byte-136k","prompt":{"chunks":[{"type":"image","data":"AA==","format":"png"}]}}`, nil, 400,
			""},
		"zero samples": {"POST", "/api/v1/asample",
			`{"base_model":"tinkersim/byte-136k","num_samples":0,"prompt":{"chunks":[{"type":"encoded_text","tokens":[1]}]}}`,
			nil, 400, ""},
		"what weights are": {"POST", "/api/v1/weights_info", `{"tinker_path":"tinker://{M}/weights/one"}`, nil,
			200, `{"base_model":"tinkersim/byte-136k","is_lora":true,"lora_rank":4,"train_unembed":true,"train_mlp":true,"train_attn":true}`},
		"what other weights are": {"POST", "/api/v1/weights_info", `{"tinker_path":"tinker://{M}/weights/two"}`, nil,
			404, ""},
		"what a bad path is": {"POST", "/api/v1/weights_info", `{"tinker_path":"two"}`, nil, 400, ""},
		"runs are listed": {"GET", "/api/v1/training_runs?limit=20&offset=0&access_scope=owned", "", nil, 200,
			`{"training_runs":[` + runOne + `],"cursor":{"offset":0,"limit":20,"total_count":1}}`},
		"runs of a project": {"GET", "/api/v1/training_runs?project_id=p", "", nil, 200,
			`{"training_runs":[],"cursor":{"offset":0,"limit":20,"total_count":0}}`},
		"runs beyond the last": {"GET", "/api/v1/training_runs?offset=7", "", nil, 200,
			`{"training_runs":[],"cursor":{"offset":7,"limit":20,"total_count":1}}`},
		"runs of a bad page": {"GET", "/api/v1/training_runs?offset=-1", "", nil, 400, ""},
		"a run":              {"GET", "/api/v1/training_runs/{M}?access_scope=owned", "", nil, 200, runOne},
		"another run":        {"GET", "/api/v1/training_runs/x", "", nil, 404, ""},
		"checkpoints of a run": {"GET", "/api/v1/training_runs/{M}/checkpoints", "", nil, 200,
			`{"checkpoints":[` + checkpointTwo + `,` + checkpointOne + `],"cursor":null}`},
		"checkpoints of another run": {"GET", "/api/v1/training_runs/x/checkpoints", "", nil, 404, ""},
		"a page of checkpoints": {"GET", "/api/v1/checkpoints?limit=1&offset=1", "", nil, 200,
			`{"checkpoints":[` + checkpointOne + `],"cursor":{"offset":1,"limit":1,"total_count":2}}`},
		"a checkpoint is deleted":        {"DELETE", ofModel + "weights/one", "", nil, 204, ""},
		"a checkpoint by its bare name":  {"DELETE", ofModel + "one", "", nil, 204, ""},
		"another checkpoint is deleted":  {"DELETE", ofModel + "weights/two", "", nil, 404, ""},
		"a checkpoint is published":      {"POST", ofModel + "weights/one/publish", "", nil, 204, ""},
		"a checkpoint is unpublished":    {"DELETE", ofModel + "weights/one/publish", "", nil, 204, ""},
		"a checkpoint gets a time":       {"PUT", ofModel + "weights/one/ttl", `{"ttl_seconds":5}`, nil, 204, ""},
		"a checkpoint loses its time":    {"PUT", ofModel + "sampler_weights/two/ttl", `{"ttl_seconds":null}`, nil, 204, ""},
		"a checkpoint gets no time":      {"PUT", ofModel + "weights/one/ttl", `{"ttl_seconds":0}`, nil, 400, ""},
		"another checkpoint gets a time": {"PUT", ofModel + "weights/two/ttl", `{"ttl_seconds":5}`, nil, 404, ""},
		"a checkpoint is packed":         {"GET", ofModel + "weights/one/archive", "", nil, 302, ""},
		"another checkpoint is packed":   {"GET", ofModel + "weights/two/archive", "", nil, 404, ""},
		"a checkpoint is not read":       {"GET", ofModel + "weights/one", "", nil, 404, ""},
		"an unknown endpoint": {"POST", "/api/v1/sessions/search", "{}", nil, 404,
			`{"detail":"POST /api/v1/sessions/search does not exist"}`},
		"an archive without a good link": {"GET", "/archives/e30.AA", "", nil, 403, ""},
		"the tokenizer's settings": {"GET", "/tinkersim/byte-136k/resolve/main/tokenizer_config.json", "", nil, 200,
			""},
		"another file of the model":      {"GET", "/tinkersim/byte-136k/resolve/main/vocab.json", "", nil, 404, ""},
		"the tokenizer of another model": {"GET", "/org/model/resolve/main/tokenizer.json", "", nil, 404, ""},
		"invalid faults":                 {"POST", "/admin/faults", `{"faults":[{"do":"?"}]}`, nil, 400, ""},
		"a release of another fault":     {"POST", "/admin/faults/x/release", "", nil, 404, ""},
		"the end of another session":     {"DELETE", "/admin/sessions/x", "", nil, 404, ""},
		"an unknown edit of checkpoints": {"POST", "/admin/checkpoints", `{"path":".","do":"x"}`, nil, 400, ""},
		"an edit with a bad pattern":     {"POST", "/admin/checkpoints", `{"path":"(","do":"expire"}`, nil, 400, ""},
	}
	shared, session, model := startTrained(t, tinkersim.Options{})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := shared
			if tc.changes() {
				b, session, model = startTrained(t, tinkersim.Options{})
			}
			one, two := sizes(b, model)
			at := func(text string) string { return fill(text, "S", session, "M", model, "ONE", one, "TWO", two) }
			got, err := b.call(tc.method, at(tc.path), at(tc.body), tc.header...)
			if err != nil {
				t.Fatal(err)
			}
			if got.status != tc.status {
				t.Fatalf("status %d %s, want %d", got.status, got.body, tc.status)
			}
			if tc.want != "" {
				sameJSON(t, at(tc.want), got.body)
			}
			if got.status == 400 && (got.header.Get("Content-Length") == "" || !strings.HasPrefix(got.body, `{"detail":`)) {
				t.Errorf("a 400 without length or detail: %v %s", got.header, got.body)
			}
		})
	}
}
