// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestErrorsInBothDialects(t *testing.T) {
	type answer struct {
		Status int
		Body   string
	}
	cases := map[string]struct {
		e                 Error
		openAI, anthropic answer
	}{
		"invalid field": {
			Error{Kind: InvalidRequest, Param: "a", Message: "No."},
			answer{400, `{"error":{"message":"No.","type":"invalid_request_error","param":"a","code":null}}`},
			answer{400, `{"type":"error","error":{"type":"invalid_request_error","message":"a: No."},"request_id":"r"}`},
		},
		"too large": {
			Error{Kind: TooLarge, Message: "No."},
			answer{413, `{"error":{"message":"No.","type":"invalid_request_error","param":null,"code":"request_too_large"}}`},
			answer{413, `{"type":"error","error":{"type":"request_too_large","message":"No."},"request_id":"r"}`},
		},
		"authentication": {
			Error{Kind: Authentication, Message: "No."},
			answer{401, `{"error":{"message":"No.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`},
			answer{401, `{"type":"error","error":{"type":"authentication_error","message":"No."},"request_id":"r"}`},
		},
		"context": {
			Error{Kind: ContextLength, Tokens: 5, Limit: 4, Param: "messages"},
			answer{400, `{"error":{"message":"This model's maximum context length is 4 tokens. However, your messages resulted ` +
				`in 5 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages",` +
				`"code":"context_length_exceeded"}}`},
			answer{400, `{"type":"error","error":{"type":"invalid_request_error","message":` +
				`"messages: prompt is too long: 5 tokens > 4 maximum"},"request_id":"r"}`},
		},
		"quota": {
			Error{Kind: Quota, Message: "No."},
			answer{429, `{"error":{"message":"No.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`},
			answer{402, `{"type":"error","error":{"type":"billing_error","message":"No."},"request_id":"r"}`},
		},
		"rate": {
			Error{Kind: RateLimit, Message: "No."},
			answer{429, `{"error":{"message":"No.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`},
			answer{429, `{"type":"error","error":{"type":"rate_limit_error","message":"No."},"request_id":"r"}`},
		},
		"overloaded": {
			Error{Kind: Overloaded, Message: "No."},
			answer{503, `{"error":{"message":"No.","type":"server_error","param":null,"code":"server_overloaded"}}`},
			answer{529, `{"type":"error","error":{"type":"overloaded_error","message":"No."},"request_id":"r"}`},
		},
		"unknown kind": {
			Error{Kind: 99, Message: "No."},
			answer{500, `{"error":{"message":"No.","type":"server_error","param":null,"code":null}}`},
			answer{500, `{"type":"error","error":{"type":"api_error","message":"No."},"request_id":"r"}`},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := []answer{
				{c.e.Status(OpenAI), string(c.e.Body(OpenAI, "r"))}, {c.e.Status(Anthropic), string(c.e.Body(Anthropic, "r"))},
			}
			if diff := cmp.Diff([]answer{c.openAI, c.anthropic}, got); diff != "" {
				t.Errorf("answers differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryKindHasWordsInBothDialects(t *testing.T) {
	for dialect, vocabulary := range vocabulary {
		for kind := InvalidRequest; kind <= Internal; kind++ {
			if found := vocabulary[kind]; found.status < 400 || found.errType == "" {
				t.Errorf("dialect %d has no words for kind %d: %+v", dialect, kind, found)
			}
		}
	}
}

func TestHeadersOfErrors(t *testing.T) {
	for name, c := range map[string]struct {
		e    Error
		want http.Header
	}{
		"wait": {Error{Kind: Overloaded, RetryAfter: 3}, http.Header{"Content-Type": {"application/json"},
			"Retry-After": {"3"}}},
		"never": {Error{Kind: Quota}, http.Header{"Content-Type": {"application/json"}, "X-Should-Retry": {"false"}}},
		"plain": {Error{}, http.Header{"Content-Type": {"application/json"}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, dialect := range []Dialect{OpenAI, Anthropic} {
				if diff := cmp.Diff(c.want, c.e.Header(dialect)); diff != "" {
					t.Errorf("dialect %d: headers differ (-want +got):\n%s", dialect, diff)
				}
			}
		})
	}
}

func TestModels(t *testing.T) {
	models := []Model{{"policy", time.Unix(1, 0)}, {"judge", time.Unix(2, 0)}}
	for name, c := range map[string]struct{ got, want string }{
		"openai": {string(EncodeModels(OpenAI, models)), `{"data":[` +
			`{"id":"policy","object":"model","created":1,"owned_by":"tinker-operator"},` +
			`{"id":"judge","object":"model","created":2,"owned_by":"tinker-operator"}],"object":"list"}`},
		"anthropic": {string(EncodeModels(Anthropic, models[:1])), `{"data":[{"type":"model","id":"policy",` +
			`"display_name":"policy","created_at":"1970-01-01T00:00:01Z","lifecycle":"active"}],` +
			`"first_id":"policy","has_more":false,"last_id":"policy"}`},
		"none": {string(EncodeModels(Anthropic, nil)), `{"data":[],"first_id":null,"has_more":false,"last_id":null}`},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: models differ (-want +got):\n%s", name, diff)
		}
	}
}
