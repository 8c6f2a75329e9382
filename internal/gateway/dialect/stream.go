// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"
)

// EncodeStream returns the events of the answer to a request that streams, for the whole reply. The events of an open
// reply are the beginning of the events of any reply that continues it, as long as Choice.Sent of the later reply only
// adds pieces of the text that the earlier reply had.
func EncodeStream(request *Request, reply *Reply) ([]byte, error) {
	if err := reply.check(request.Endpoint); err != nil {
		return nil, err
	}
	w := &writer{}
	switch request.Endpoint {
	case ChatCompletions:
		chatStream(w, request, reply)
	case Completions:
		completionsStream(w, request, reply)
	case Responses:
		responseStream(w, request, reply)
	case Messages:
		messageStream(w, reply)
	default:
		return nil, fmt.Errorf("encoding reply %s: count_tokens does not stream", reply.ID)
	}
	return w.text.Bytes(), nil
}

// KeepAlive returns an event that keeps a stream alive before its reply is known. Clients ignore it.
func KeepAlive(dialect Dialect) []byte {
	if dialect == Anthropic {
		return []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n")
	}
	return []byte(": keep-alive\n\n")
}

// StreamError returns the event that ends a stream with an error, after its status was sent.
func StreamError(endpoint Endpoint, e *Error, requestID string) []byte {
	w := &writer{}
	switch {
	case endpoint.Dialect() == Anthropic:
		w.event("error", e.anthropic(requestID))
	case endpoint == Responses:
		// The official client raises an error for the field "error", and other clients read the fields beside it.
		cause := e.openAI()
		w.event("error", responseError{"error", cause, cause.Code, cause.Message, cause.Param, 0})
	default:
		w.data(map[string]any{"error": e.openAI()})
		w.done()
	}
	return w.text.Bytes()
}

type responseError struct {
	Type           string      `json:"type"`
	Error          openAIError `json:"error"`
	Code           *string     `json:"code"`
	Message        string      `json:"message"`
	Param          *string     `json:"param"`
	SequenceNumber int         `json:"sequence_number"`
}

// writer writes server-sent events.
type writer struct {
	text bytes.Buffer
	// number counts the events that have a sequence number.
	number int
	// sent are the pieces of the choice that were sent before, without those that are written already.
	sent []string
}

// data writes an event without a name.
func (w *writer) data(value any) { fmt.Fprintf(&w.text, "data: %s\n\n", marshal(value)) }

// event writes an event with a name.
func (w *writer) event(name string, value any) {
	fmt.Fprintf(&w.text, "event: %s\ndata: %s\n\n", name, marshal(value))
}

// numbered writes an event of the endpoint responses. It adds the type and the sequence number to the fields.
func (w *writer) numbered(name string, fields map[string]any) {
	fields["type"], fields["sequence_number"] = name, w.number
	w.number++
	w.event(name, fields)
}

// done ends a stream of OpenAI's older endpoints.
func (w *writer) done() { w.text.WriteString("data: [DONE]\n\n") }

// pieces cuts a text of a choice into pieces for events: the pieces that were sent before, and then the rest.
func (w *writer) pieces(text string) []string {
	var all []string
	for text != "" && len(w.sent) > 0 {
		piece := w.sent[0]
		w.sent = w.sent[1:]
		if len(piece) > len(text) {
			w.sent = slices.Concat([]string{piece[len(text):]}, w.sent) // The array is the caller's.
			piece = text
		}
		all, text = append(all, piece), text[len(piece):]
	}
	return append(all, pieces(text)...)
}

// pieces cuts a text into pieces for events, so that no event is long. It does not cut within a character.
func pieces(text string) []string {
	const longest = 4096
	var all []string
	for len(text) > longest {
		end := longest
		for end > longest-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		all, text = append(all, text[:end]), text[end:]
	}
	if text != "" {
		all = append(all, text)
	}
	return all
}
