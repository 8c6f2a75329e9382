// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package conformance

import (
	"bytes"
	"net/http/httptest"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// throughBroker selects the checks that a run can do behind a broker: the checks that need neither the simulator's own
// routes, which make faults, nor routes that the broker refuses, nor metadata without the broker's entries.
const throughBroker = "capabilities,tokenizers,lora_seed,lora_async,loss_cross,loss_importance,loss_ppo,loss_cispo," +
	"loss_dro,gradients_acc,malformed_,datums,training_async,pipelines,chunks_by_size,info_says,resume_with," +
	"resume_weights,resume_async,load_,a_load_comes,names_,save_async,sampler_weights_,ttl_set,checkpoint_metadata," +
	"checkpoints_of_a_run,all_checkpoints,one_run,weights_info,num_samples,seeds,max_tokens,stop_,greedy," +
	"prompt_logprobs,sampled_,sampling_,sampler_clients_,sampler_handles,sequence_ids"

// TestConformanceThroughABroker runs the newest SDK through a broker as a run does: with a token, and without the key.
func TestConformanceThroughABroker(t *testing.T) {
	sim := start(t, build(t), servers["-hosted"].config)
	tokenKey := bytes.Repeat([]byte{4}, 32)
	run := broker.Run{Owner: broker.Owner{UID: "conformance", Namespace: "team"}}
	passing, err := broker.Open(broker.Config{Endpoint: "shared", BaseURL: sim, APIKey: key, TokenKey: tokenKey,
		Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer passing.Close()
	passing.SetRuns([]broker.Run{run})
	front := httptest.NewServer(passing)
	defer front.Close()
	defer front.CloseClientConnections()
	python := environment(t, "newest")
	python.run(t, target{url: front.URL, hub: sim, key: contract.RunToken(tokenKey, run.UID)}, throughBroker)
}
