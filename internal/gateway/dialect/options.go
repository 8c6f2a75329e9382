// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Treatment is the codec's treatment of an option of a request.
type Treatment string

// The treatments.
const (
	// Honoured options decide the reply or how it is written.
	Honoured Treatment = "honoured"
	// Accepted options have no effect on a reply: labels, caches, hints.
	Accepted Treatment = "accepted"
	// Overruled options ask for a sampling other than the run's. Request.Overruled lists them.
	Overruled Treatment = "overruled"
	// Unsupported options are ignored or refused, as Options.Unsupported says. Request.Ignored lists them.
	Unsupported Treatment = "unsupported"
	// ByField options are objects whose fields have treatments of their own.
	ByField Treatment = "by field"
	// Refused options are always an error, because a reply without them would answer another question.
	Refused Treatment = "refused"
)

// option is a field of a request's body, or of an object in it.
type option struct {
	treatment Treatment
	// neutral are the values that ask for nothing, as compact JSON. Null always asks for nothing.
	neutral []string
	// fields are the fields of an option with the treatment ByField.
	fields map[string]option
}

var (
	honoured    = option{treatment: Honoured}
	accepted    = option{treatment: Accepted}
	overruled   = option{treatment: Overruled}
	unsupported = option{treatment: Unsupported}
	refused     = option{treatment: Refused}
)

// byField returns the option of an object with fields.
func byField(fields map[string]option) option { return option{treatment: ByField, fields: fields} }

// except returns the option with neutral values, which ask for nothing.
func (o option) except(neutral ...string) option {
	o.neutral = neutral
	return o
}

// TreatmentOf returns how the codec treats the options of an endpoint, by their names.
func TreatmentOf(endpoint Endpoint) map[string]Treatment {
	all := map[string]Treatment{}
	for name, option := range endpointOptions[endpoint] {
		all[name] = option.treatment
	}
	return all
}

// endpointOptions are the options of each endpoint.
var endpointOptions = map[Endpoint]map[string]option{
	ChatCompletions: {
		"messages": honoured, "model": honoured, "tools": honoured, "stop": honoured, "max_tokens": honoured,
		"max_completion_tokens": honoured, "n": honoured, "stream": honoured, "stream_options": honoured,
		"logprobs": honoured, "top_logprobs": honoured,
		"metadata": accepted, "prompt_cache_key": accepted, "prompt_cache_options": accepted,
		"prompt_cache_retention": accepted, "safety_identifier": accepted, "service_tier": accepted, "store": accepted,
		"user": accepted, "prediction": accepted,
		"temperature": overruled, "top_p": overruled, "seed": overruled, "reasoning_effort": overruled,
		"frequency_penalty": overruled.except("0", "0.0"), "presence_penalty": overruled.except("0", "0.0"),
		"logit_bias":      overruled.except("{}"),
		"response_format": unsupported.except(`{"type":"text"}`), "tool_choice": unsupported.except(`"auto"`),
		"parallel_tool_calls": unsupported.except("true"), "verbosity": unsupported.except(`"medium"`),
		"web_search_options": unsupported, "moderation": unsupported,
		"audio": refused, "modalities": refused.except(`["text"]`), "functions": refused.except("[]"),
		"function_call": refused,
	},
	Completions: {
		"model": honoured, "prompt": honoured, "stop": honoured, "max_tokens": honoured, "n": honoured,
		"stream": honoured, "stream_options": honoured, "echo": honoured, "logprobs": honoured,
		"user":        accepted,
		"temperature": overruled, "top_p": overruled, "seed": overruled,
		"frequency_penalty": overruled.except("0", "0.0"), "presence_penalty": overruled.except("0", "0.0"),
		"logit_bias": overruled.except("{}"),
		"best_of":    unsupported.except("1"), "suffix": refused.except(`""`),
	},
	Responses: {
		"model": honoured, "input": honoured, "instructions": honoured, "max_output_tokens": honoured,
		"previous_response_id": honoured, "stream": honoured, "tools": honoured,
		"metadata": accepted, "prompt_cache_key": accepted, "prompt_cache_options": accepted,
		"prompt_cache_retention": accepted, "safety_identifier": accepted, "service_tier": accepted, "store": accepted,
		"stream_options": accepted, "user": accepted, "access_programs": accepted, "background_options": accepted,
		"image":       accepted,
		"temperature": overruled, "top_p": overruled, "reasoning": overruled,
		"include": unsupported.except("[]"), "max_tool_calls": unsupported, "moderation": unsupported,
		"parallel_tool_calls": unsupported.except("true"),
		"text": byField(map[string]option{
			"format": unsupported.except(`{"type":"text"}`), "verbosity": unsupported.except(`"medium"`),
		}),
		"tool_choice": unsupported.except(`"auto"`), "top_logprobs": unsupported.except("0"),
		"truncation": unsupported.except(`"disabled"`), "context_management": unsupported.except("[]"),
		"background": refused.except("false"), "conversation": refused, "prompt": refused,
	},
	Messages:    anthropicOptions("max_tokens", "stop_sequences", "stream"),
	CountTokens: anthropicOptions(),
}

// anthropicOptions returns the options of an endpoint of Anthropic. more are the honoured options that only messages
// has; it is empty for count_tokens.
func anthropicOptions(more ...string) map[string]option {
	options := map[string]option{
		"model": honoured, "messages": honoured, "system": honoured, "tools": honoured,
		"cache_control": accepted, "speed": accepted, "user_profile_id": accepted, "workspace_id": accepted,
		"thinking": overruled, "tool_choice": unsupported.except(`{"type":"auto"}`),
		"output_config": byField(map[string]option{"effort": overruled, "format": unsupported}),
	}
	if len(more) == 0 {
		return options
	}
	maps.Copy(options, map[string]option{
		"metadata": accepted, "service_tier": accepted, "inference_geo": accepted, "diagnostics": accepted,
		"temperature": overruled, "top_p": overruled, "top_k": overruled,
		"container": refused,
	})
	for _, name := range more {
		options[name] = honoured
	}
	return options
}

// readOptions notes the fields of an object that the codec does not follow.
func (d *decoder) readOptions(o object, options map[string]option) {
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		known, ok := options[name]
		d.readOption(o, name, known, ok)
	}
}

// readOption notes a field that the codec does not follow.
func (d *decoder) readOption(o object, name string, known option, ok bool) {
	field := o.get(name)
	if d.err != nil || field.isNull() || ok && known.isNeutral(field.raw) {
		return
	}
	callers := (!ok || known.treatment == Overruled) && d.options.CallerSamples
	if callers && d.readSampling(o, name) {
		return
	}
	switch {
	case !ok:
		d.unsupported(UnknownField, field.path)
	case callers:
		d.unsupported(name, field.path)
	case known.treatment == Overruled:
		d.overruled = append(d.overruled, name)
	case known.treatment == Unsupported:
		d.unsupported(name, field.path)
	case known.treatment == ByField:
		d.readOptions(d.object(field), known.fields)
	case known.treatment == Refused:
		d.fail(field.path, "The field %s is not supported by this endpoint. Remove it.", name)
		d.err.Code = codeUnsupported
	}
}

// isNeutral reports whether the value asks for nothing.
func (o option) isNeutral(raw json.RawMessage) bool {
	if len(o.neutral) == 0 {
		return false
	}
	var compact bytes.Buffer
	return json.Compact(&compact, raw) == nil && slices.Contains(o.neutral, compact.String())
}
