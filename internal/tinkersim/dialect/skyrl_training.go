// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// lossSettings are the losses, and the settings that SkyRL accepts of each.
var lossSettings = map[tinker.LossName]map[string]float64{
	tinker.LossCrossEntropy:       {},
	tinker.LossImportanceSampling: {},
	tinker.LossPPO:                {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2},
	tinker.LossCISPO:              {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2},
}

func (s *skyRL) forwardBackward(r *http.Request, body object) (any, *httpError) {
	key := strings.TrimPrefix(r.URL.Path, api) + "_input"
	var input tinker.ForwardBackwardInput
	if err := json.Unmarshal(body[key], &input); err != nil {
		return nil, unprocessable(err.Error(), "value_error", key)
	}
	defaults, known := lossSettings[input.LossFn]
	if !known {
		return nil, unprocessable("Input should be 'cross_entropy', 'importance_sampling', 'ppo', 'cispo', 'ppo_critic' "+
			"or 'dppo'", "literal_error", key, "loss_fn")
	}
	settings := maps.Clone(defaults)
	for name, value := range input.LossFnConfig {
		if _, allowed := defaults[name]; !allowed {
			return nil, unprocessable("Value error, Invalid loss_fn_config keys: "+name, "value_error", key)
		}
		settings[name] = value
	}
	input.LossFnConfig = settings
	sent := pass{input}
	if key == "forward_backward_input" {
		input.Data = averaged(input.Data)
	}
	body.set(key, input)
	s.mu.Lock()
	defer s.mu.Unlock()
	accepted, err := s.submit(r, body.text("model_id"), body)
	if future, ok := accepted.(map[string]string); ok && err == nil {
		s.rememberPass(future["request_id"], sent)
	}
	return accepted, err
}

// maxPasses is the number of passes that are remembered for polls of their results. A learner polls the passes of one
// step.
const maxPasses = 256

// rememberPass keeps the data of a pass, and drops the data of the oldest one. The lock is held.
func (s *skyRL) rememberPass(id string, sent pass) {
	s.passes[id], s.passOrder = sent, append(s.passOrder, id)
	if len(s.passOrder) > maxPasses {
		delete(s.passes, s.passOrder[0])
		s.passOrder = s.passOrder[1:]
	}
}

func (s *skyRL) optimStep(r *http.Request, body object) (any, *httpError) {
	adam := tinker.DefaultAdam()
	if err := json.Unmarshal(body["adam_params"], &adam); err != nil {
		return nil, unprocessable(err.Error(), "value_error", "adam_params")
	}
	adam.GradClipNorm = 0
	body.set("adam_params", adam)
	s.mu.Lock()
	defer s.mu.Unlock()
	model := body.text("model_id")
	s.stale[model] = true
	return s.submit(r, model, body)
}
