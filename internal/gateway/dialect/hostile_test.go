// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// around puts messages, items or another field into a request.
var around = map[Endpoint]string{
	ChatCompletions: `{"model":"m","messages":[{"role":"user","content":"q"}],"x":0,%}`,
	Completions:     `{"model":"m","prompt":"q",%}`,
	Responses:       `{"model":"m","input":"q",%}`,
	Messages:        `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"}],%}`,
	CountTokens:     `{"model":"m","messages":[{"role":"user","content":"q"}],%}`,
}

func TestInvalidRequestsNameTheField(t *testing.T) {
	image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}`
	cases := map[string]struct {
		endpoint Endpoint
		// fields come after the fields of around, and so replace them.
		fields string
		param  string
		kind   Kind
	}{
		"unknown role": {ChatCompletions, `"messages":[{"role":"boss","content":"q"}]`, "messages[0].role", 0},
		"function role": {ChatCompletions, `"messages":[{"role":"function","name":"f","content":"q"}]`,
			"messages[0].role", 0},
		"no role":           {ChatCompletions, `"messages":[{"content":"q"}]`, "messages[0].role", 0},
		"message is text":   {ChatCompletions, `"messages":["q"]`, "messages[0]", 0},
		"no messages":       {ChatCompletions, `"messages":[]`, "messages", 0},
		"messages are null": {ChatCompletions, `"messages":null`, "messages", 0},
		"no content":        {ChatCompletions, `"messages":[{"role":"user"}]`, "messages[0].content", 0},
		"image": {ChatCompletions, `"messages":[{"role":"user","content":[{"type":"text","text":"q"},` + image +
			`]}]`, "messages[0].content[1].type", 0},
		"audio of a reply": {ChatCompletions, `"messages":[{"role":"assistant","content":"a","audio":{"id":"a"}}]`,
			"messages[0].audio", 0},
		"call without ID": {ChatCompletions, assistant(`{"type":"function","function":{"name":"f","arguments":"{}"}}`),
			"messages[0].tool_calls[0].id", 0},
		"call without name": {ChatCompletions, assistant(`{"id":"1","type":"function","function":{"arguments":"{}"}}`),
			"messages[0].tool_calls[0].function.name", 0},
		"custom call": {ChatCompletions, assistant(`{"id":"1","type":"custom","custom":{"name":"f","input":""}}`),
			"messages[0].tool_calls[0].type", 0},
		"arguments no JSON": {ChatCompletions, assistant(
			`{"id":"1","type":"function","function":{"name":"f","arguments":"{a"}}`),
			"messages[0].tool_calls[0].function.arguments", 0},
		"arguments a list": {ChatCompletions, assistant(
			`{"id":"1","type":"function","function":{"name":"f","arguments":"[1]"}}`),
			"messages[0].tool_calls[0].function.arguments", 0},
		"arguments deep": {ChatCompletions, assistant(
			`{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":` + strings.Repeat("[", 70) +
				strings.Repeat("]", 70) + `}"}}`), "messages[0].tool_calls[0].function.arguments", 0},
		"equal calls": {ChatCompletions, assistant(
			`{"id":"1","function":{"name":"f","arguments":"{}"}},{"id":"1","function":{"name":"f","arguments":"{}"}}`),
			"messages[0].tool_calls[1].id", 0},
		"result of no call": {ChatCompletions, `"messages":[{"role":"tool","tool_call_id":"1","content":"r"}]`,
			"messages[0].tool_call_id", 0},
		"tool without name": {ChatCompletions, `"tools":[{"type":"function","function":{}}]`, "tools[0].function.name", 0},
		"name with a space": {ChatCompletions, `"tools":[{"type":"function","function":{"name":"a b"}}]`,
			"tools[0].function.name", 0},
		"equal tools": {ChatCompletions,
			`"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"a"}}]`,
			"tools[1].function.name", 0},
		"parameters text": {ChatCompletions, `"tools":[{"type":"function","function":{"name":"a","parameters":"{}"}}]`,
			"tools[0].function.parameters", 0},
		"custom tool":        {ChatCompletions, `"tools":[{"type":"custom","custom":{"name":"a"}}]`, "tools[0].type", 0},
		"n of zero":          {ChatCompletions, `"n":0`, "n", 0},
		"many choices":       {ChatCompletions, `"n":1000`, "n", 0},
		"n as text":          {ChatCompletions, `"n":"2"`, "n", 0},
		"tokens of a half":   {ChatCompletions, `"max_tokens":1.5`, "max_tokens", 0},
		"huge number":        {ChatCompletions, `"max_tokens":1` + strings.Repeat("0", 400), "max_tokens", 0},
		"stream as text":     {ChatCompletions, `"stream":"yes"`, "stream", 0},
		"empty stop":         {ChatCompletions, `"stop":[""]`, "stop", 0},
		"many stops":         {ChatCompletions, `"stop":["` + strings.Repeat(`a","`, 20) + `b"]`, "stop", 0},
		"model as a number":  {ChatCompletions, `"model":3`, "model", 0},
		"empty model":        {ChatCompletions, `"model":""`, "model", 0},
		"prompt of numbers":  {Completions, `"prompt":[1,-1]`, "prompt[1]", 0},
		"prompt of halves":   {Completions, `"prompt":[1.5]`, "prompt[0]", 0},
		"empty prompts":      {Completions, `"prompt":[]`, "prompt", 0},
		"prompts and n":      {Completions, `"prompt":["a","b"],"n":100`, "n", 0},
		"item of a search":   {Responses, `"input":[{"type":"web_search_call","id":"1"}]`, "input[0].type", 0},
		"item of a computer": {Responses, `"input":[{"type":"computer_call","id":"1"}]`, "input[0].type", 0},
		"item by reference":  {Responses, `"input":[{"type":"item_reference","id":"1"}]`, "input[0].type", 0},
		"image item": {Responses, `"input":[{"role":"user","content":[{"type":"input_image","image_url":"a"}]}]`,
			"input[0].content[0].type", 0},
		"file item": {Responses, `"input":[{"role":"user","content":[{"type":"input_file","file_id":"a"}]}]`,
			"input[0].content[0].type", 0},
		"role of an item": {Responses, `"input":[{"role":"tool","content":"a"}]`, "input[0].role", 0},
		"search tool":     {Responses, `"tools":[{"type":"web_search"}]`, "tools[0].type", 0},
		"no output":       {Responses, `"input":[{"type":"function_call_output","call_id":"1"}]`, "input[0].output", 0},
		"output of no call": {Responses, `"input":[{"type":"function_call_output","call_id":"1","output":"r"}]`,
			"input[0].call_id", 0},
		"item's arguments": {Responses, `"input":[{"type":"function_call","call_id":"1","name":"f","arguments":"x"}]`,
			"input[0].arguments", 0},
		"no max_tokens": {Messages, `"max_tokens":null`, "max_tokens", 0},
		"image block": {Messages, `"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]`,
			"messages.0.content.0.type", 0},
		"image in a result": {Messages,
			`"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"image","source":{}}]}]}]`, "messages.0.content.0.content.0.type", 0},
		"tool role": {Messages, `"messages":[{"role":"tool","content":"q"}]`, "messages.0.role", 0},
		"wrong signature": {Messages,
			`"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"forged"}]}]`,
			"messages.0.content.0.signature", 0},
		"no signature": {Messages, `"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t"}]}]`,
			"messages.0.content.0.signature", 0},
		"redacted thinking": {Messages,
			`"messages":[{"role":"assistant","content":[{"type":"redacted_thinking","data":"t"}]}]`, "messages.0.content.0.type",
			0},
		"input as text": {Messages,
			`"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":"{}"}]}]`,
			"messages.0.content.0.input", 0},
		"result of no use": {Messages, `"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}]`,
			"messages.0.content.0.tool_use_id", 0},
		"no schema":        {Messages, `"tools":[{"name":"f"}]`, "tools.0.input_schema", 0},
		"bash tool":        {Messages, `"tools":[{"type":"bash_20250124","name":"bash"}]`, "tools.0.type", 0},
		"system of images": {CountTokens, `"system":[{"type":"image"}]`, "system.0.type", 0},
		"10,000 messages": {ChatCompletions, `"messages":[` + strings.Repeat(`{"role":"user","content":"q"},`, 9999) +
			`{"role":"user","content":"q"}]`, "messages", 0},
		"10,000 items": {Responses, `"input":[` + strings.Repeat(`{"role":"user","content":"q"},`, 9999) +
			`{"role":"user","content":"q"}]`, "input", 0},
		"10,000 blocks": {Messages, `"messages":[{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"q"},`,
			9999) + `{"type":"text","text":"q"}]}]`, "messages.0.content", 0},
		"10,000 tools":   {ChatCompletions, `"tools":[` + strings.Repeat(`0,`, 9999) + `0]`, "tools", 0},
		"10,000 calls":   {ChatCompletions, assistant(strings.Repeat(`0,`, 9999) + `0`), "messages[0].tool_calls", 0},
		"million values": {ChatCompletions, `"x":[` + strings.Repeat("0,", 1_000_000) + `0]`, "", 0},
		"deeper than 64": {ChatCompletions, `"x":` + strings.Repeat("[", 64) + strings.Repeat("]", 64), "", 0},
		"300 calls":      {Responses, `"input":[` + manyCalls(300) + `]`, "input[256].call_id", 0},
		"deep":           {ChatCompletions, `"x":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000), "", 0},
		"50 MB":          {ChatCompletions, `"user":"` + strings.Repeat("a", 50<<20) + `"`, "", TooLarge},
		"no UTF-8":       {ChatCompletions, "\"user\":\"\xff\"", "", 0},
		"no JSON":        {ChatCompletions, `"user"`, "", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			body := strings.Replace(around[c.endpoint], "%", c.fields, 1)
			_, err := Decode(c.endpoint, []byte(body), testOptions(Ignore))
			e, ok := err.(*Error) //nolint:errorlint // Decode says that it is one.
			if !ok {
				t.Fatalf("got %v, want an *Error", err)
			}
			if e.Param != c.param || e.Kind != c.kind {
				t.Errorf("got kind %d at %q (%s), want kind %d at %q", e.Kind, e.Param, e.Message, c.kind, c.param)
			}
			if e.Message == "" || len(e.Message) > 500 {
				t.Errorf("the message has %d bytes", len(e.Message))
			}
		})
	}
}

// assistant returns the field messages with one message, which has calls.
func assistant(calls string) string {
	return `"messages":[{"role":"assistant","content":null,"tool_calls":[` + calls + `]}]`
}

// manyCalls returns items with calls.
func manyCalls(n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`{"type":"function_call","call_id":"%d","name":"f","arguments":"{}"}`, i)
	}
	return strings.Join(items, ",")
}

func TestBracketsInTextAreNoDepth(t *testing.T) {
	body := `{"model":"m","prompt":"\"` + strings.Repeat("[{", 100) + `","user":"\\"}`
	if _, err := Decode(Completions, []byte(body), testOptions(Refuse)); err != nil {
		t.Error(err)
	}
}

func TestBodiesThatAreNotObjects(t *testing.T) {
	for name, body := range map[string]string{
		"empty": "", "null": "null", "list": "[]", "text": `"a"`, "two": "{}{}", "cut": `{"model":"m"`,
	} {
		t.Run(name, func(t *testing.T) {
			for endpoint := range around {
				if _, err := Decode(endpoint, []byte(body), testOptions(Ignore)); err == nil {
					t.Errorf("endpoint %d decoded it", endpoint)
				}
			}
		})
	}
}

func TestUnsupportedFieldsAreListedOnce(t *testing.T) {
	body := `{"model":"m","secret_1":1,"secret_2":2,"response_format":{"type":"json_object"},"tool_choice":null,
		"messages":[{"role":"user","name":"n","content":"q","secret_3":1},{"role":"user","name":"n","content":"q"}]}`
	request, err := Decode(ChatCompletions, []byte(body), testOptions(Ignore))
	if err != nil {
		t.Fatal(err)
	}
	want := []Field{
		{"response_format", "response_format"}, {UnknownField, "secret_1"}, {"name", "messages[0].name"},
	}
	if diff := cmp.Diff(want, request.Ignored); diff != "" {
		t.Errorf("ignored fields differ (-want +got):\n%s", diff)
	}
	_, err = Decode(ChatCompletions, []byte(body), testOptions(Refuse))
	e, ok := err.(*Error) //nolint:errorlint // Decode says that it is one.
	if !ok || e.Param != "response_format" || e.words(OpenAI).code != "unsupported_parameter" {
		t.Errorf("Refuse: got %#v, want an error for response_format", err)
	}
}

func TestNeutralValuesAskForNothing(t *testing.T) {
	for endpoint, fields := range map[Endpoint]string{
		ChatCompletions: `"temperature":null,"response_format":{"type": "text"},"tool_choice":"auto","frequency_penalty":0,
			"parallel_tool_calls":true,"modalities":[ "text" ],"functions":null`,
		Completions: `"best_of":1,"suffix":"","logit_bias":{}`,
		Responses:   `"include":[],"truncation":"disabled","background":false,"text":{"format":{"type":"text"}}`,
		Messages:    `"tool_choice":{"type":"auto"},"output_config":{}`,
	} {
		body := strings.Replace(strings.Replace(around[endpoint], `"x":0,`, "", 1), "%", fields, 1)
		request, err := Decode(endpoint, []byte(body), testOptions(Refuse))
		if err != nil {
			t.Errorf("endpoint %d: %v", endpoint, err)
			continue
		}
		if len(request.Overruled)+len(request.Ignored) > 0 {
			t.Errorf("endpoint %d: overruled %q, ignored %v", endpoint, request.Overruled, request.Ignored)
		}
	}
}
