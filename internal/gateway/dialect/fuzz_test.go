// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// FuzzDecode checks that every body decodes or leads to an error of the dialect, and that an assistant's message of a
// decoded request stays the same if it is sent as a reply and returned by the client.
func FuzzDecode(f *testing.F) {
	for _, r := range loadSeeds(f) {
		f.Add(uint8(paths[r.Endpoint]), []byte(r.Body))
	}
	f.Fuzz(func(t *testing.T, number uint8, body []byte) {
		endpoint := Endpoint(number % 5)
		request, err := Decode(endpoint, body, testOptions(Ignore))
		if err != nil {
			e, ok := err.(*Error) //nolint:errorlint // Decode says that it is one.
			if !ok || e.Status(endpoint.Dialect()) < 400 || !json.Valid(e.Body(endpoint.Dialect(), "r")) || e.Message == "" {
				t.Fatalf("got the error %#v", err)
			}
			return
		}
		if request.N < 1 || len(request.Messages)+len(request.Prompts) == 0 && request.PreviousID == "" {
			t.Fatalf("got an empty request: %#v", request)
		}
		for _, m := range request.Messages {
			if m.Role == chat.RoleAssistant {
				returnsAsItself(t, m)
			}
		}
	})
}

func loadSeeds(f *testing.F) []seed {
	f.Helper()
	var seeds struct{ Requests []seed }
	if err := json.Unmarshal(mustRead(f, "testdata/requests.json"), &seeds); err != nil {
		f.Fatal(err)
	}
	return seeds.Requests
}

type seed struct {
	Endpoint string
	Body     json.RawMessage
}

// returnsAsItself checks that a reply with this message, returned by a client of each dialect, decodes to the message.
func returnsAsItself(t *testing.T, m chat.Message) {
	t.Helper()
	for _, endpoint := range []Endpoint{ChatCompletions, Responses, Messages} {
		want := Normal(m)
		if want.IsEmpty() && len(want.Calls) == 0 {
			continue
		}
		if endpoint == ChatCompletions {
			want = inOrder(m)
		}
		request := &Request{Endpoint: endpoint, N: 1}
		body, err := Encode(request, &Reply{
			ID: "r", Created: time.Unix(1, 0), Model: "m", Sign: testSign, Choices: []Choice{{Message: m}},
		})
		if err != nil {
			t.Fatalf("encoding %#v: %v", m, err)
		}
		again, err := returned(endpoint, body)
		if err != nil {
			t.Fatal(err)
		}
		options := testOptions(Refuse)
		options.Limits.Depth += 10 // The message can be nested as deeply as its request.
		decoded, err := Decode(endpoint, again, options)
		if err != nil {
			t.Fatalf("decoding %s: %v", again, err)
		}
		if diff := cmp.Diff([]chat.Message{want}, decoded.Messages[1:], cmpopts.EquateEmpty(), compactArguments); diff != "" {
			t.Fatalf("message of the reply (-) and of the request (+) differ:\n%s", diff)
		}
	}
}

// FuzzMembers compares members and elements with the results of encoding/json.
func FuzzMembers(f *testing.F) {
	f.Add([]byte(` { "a" : 1 , "b\\"": [ "\\\\" , {} , -1.5e3 , null ] , "a":"\\"}" } `))
	f.Add([]byte(`[1,"]",[],{"a":"["}, true ]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		text = bytes.TrimSpace(text)
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) == nil && want != nil && utf8.Valid(text) {
			if diff := cmp.Diff(want, members(text)); diff != "" {
				t.Fatalf("members differ (-want +got):\n%s", diff)
			}
		}
		var items []json.RawMessage
		if json.Unmarshal(text, &items) != nil || len(items) == 0 {
			return
		}
		got, ok := elements(text, len(items))
		if diff := cmp.Diff(items, got); diff != "" || !ok {
			t.Fatalf("elements differ (-want +got):\n%s", diff)
		}
		if _, ok := elements(text, len(items)-1); ok {
			t.Fatalf("got %d elements with a lower limit", len(items))
		}
	})
}
