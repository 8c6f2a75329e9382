// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package supervised

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/chatjson"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// Row is a row of data: a conversation, or text without one.
type Row struct {
	Conversation renderer.Conversation
	// Marks are the weights that the row gives to the messages of the conversation. It is nil if it gives none.
	Marks []Mark
	// Text is the row's text, if it has no conversation.
	Text string
	// Episode is the episode whose record the row is, without its conversations. It is nil for other rows.
	Episode *transcript.Episode
}

// Mark has the weights of a message.
type Mark struct {
	// Weight is nil if the row gives the message none.
	Weight *float64
	// Parts are the weights of the message's parts, nil for a part that has none of its own. The list is nil if no part
	// has one.
	Parts []*float64
}

// fields are the columns that a row is read from. Other columns are ignored.
type fields struct {
	Messages   json.RawMessage `json:"messages"`
	Prompt     json.RawMessage `json:"prompt"`
	Completion json.RawMessage `json:"completion"`
	Text       *string         `json:"text"`
	Tools      json.RawMessage `json:"tools"`
	Episode    json.RawMessage `json:"episode"`
}

// ReadRow reads the JSON object of a row, which has one of these forms:
//
//	{"messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4", "weight": 1}], "tools": [...]}
//	{"prompt": "2+2?", "completion": "4"}
//	{"text": "Two and two is four."}
//	{"episode": {"reward": 1, "conversations": [{"messages": [...]}]}}, a record of package transcript
//
// Messages are as package chatjson reads them, and a message or a part of one may have a weight; trainable is another
// name for a weight of 0 or 1. A prompt that is text is a message of the user, and a completion that is text is the
// assistant's reply; each may be a list of messages instead. An error is an *Unusable.
func ReadRow(data []byte) (Row, error) {
	var f fields
	if err := json.Unmarshal(data, &f); err != nil {
		return Row{}, &Unusable{NotRendered, fmt.Errorf("reading the row: %w", err)}
	}
	forms := []bool{isSet(f.Messages), isSet(f.Prompt) || isSet(f.Completion), isSet(f.Episode), f.Text != nil}
	first := slices.Index(forms, true)
	if first >= 0 && slices.Contains(forms[first+1:], true) {
		return Row{}, unusable(NotRendered, "the row has columns of several forms: keep messages, or prompt and completion, "+
			"or text, or episode")
	}
	switch {
	case first == 0:
		return readMessages(f.Messages, f.Tools)
	case first == 1:
		return readPair(f)
	case first == 2:
		return readEpisode(f.Episode)
	case f.Text == nil:
		return Row{}, unusable(NotRendered, "its columns are %s; it needs messages, prompt and completion, text, or "+
			"episode: rename a column, or map it with supervised.dataset.fields", columnsOf(data))
	case *f.Text == "":
		return Row{}, unusable(Empty, "text is empty: write some, or remove the row")
	default:
		return Row{Text: *f.Text}, nil
	}
}

// columnsOf lists the columns of a row.
func columnsOf(data []byte) string {
	var columns map[string]json.RawMessage
	if json.Unmarshal(data, &columns) != nil || len(columns) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(columns)), ", ")
}

// kindOf names the kind of a JSON value that is no list.
func kindOf(raw json.RawMessage) string {
	switch raw[0] {
	case '"':
		return "text"
	case '{':
		return "an object"
	case 't', 'f':
		return "true or false"
	default:
		return "a number"
	}
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func readPair(f fields) (Row, error) {
	const repair = "is missing, and prompt and completion belong together: add it, or map its column with " +
		"supervised.dataset.fields"
	switch {
	case !isSet(f.Prompt):
		return Row{}, unusable(NotRendered, "prompt "+repair)
	case !isSet(f.Completion):
		return Row{}, unusable(NotRendered, "completion "+repair)
	}
	prompt, err := asMessages(f.Prompt, chat.RoleUser)
	if err != nil {
		return Row{}, unusable(NotRendered, "prompt: %w", err)
	}
	completion, err := asMessages(f.Completion, chat.RoleAssistant)
	if err != nil {
		return Row{}, unusable(NotRendered, "completion: %w", err)
	}
	if len(completion) == 0 {
		return Row{}, unusable(Empty, "completion is empty: write the reply, or remove the row")
	}
	messages, err := json.Marshal(append(prompt, completion...))
	if err != nil {
		return Row{}, &Unusable{NotRendered, err}
	}
	return readMessages(messages, f.Tools)
}

// asMessages returns a list of messages, or one message of a role from a text.
func asMessages(raw json.RawMessage, role string) ([]json.RawMessage, error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		return list, nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil, errors.New("it is neither text nor a list of messages")
	}
	if text == "" && role == chat.RoleAssistant {
		return nil, nil
	}
	message, err := json.Marshal(map[string]string{"role": role, "content": text})
	return []json.RawMessage{message}, err
}

func readMessages(messages, tools json.RawMessage) (Row, error) {
	var row Row
	var err error
	if messages[0] != '[' {
		return Row{}, unusable(NotRendered, "messages is %s, and must be a list of messages", kindOf(messages))
	}
	if mayBeMarked(messages) {
		if messages, row.Marks, err = takeMarks(messages); err != nil {
			return Row{}, &Unusable{NotRendered, err}
		}
	}
	object := append([]byte(`{"messages":`), messages...)
	if isSet(tools) {
		object = append(append(object, `,"tools":`...), tools...)
	}
	if row.Conversation, err = chatjson.Read(append(object, '}')); err != nil {
		return Row{}, &Unusable{NotRendered, err}
	}
	if len(row.Conversation.Messages) == 0 {
		return Row{}, unusable(Empty, "messages is empty: add some, or remove the row")
	}
	return row, nil
}

// The names of the fields that are marks.
const (
	fieldWeight    = "weight"
	fieldTrainable = "trainable"
)

// mayBeMarked reports whether the names of marks occur in messages. It is quick, and also returns true if a text
// contains them.
func mayBeMarked(messages []byte) bool {
	return bytes.Contains(messages, []byte(`"`+fieldWeight+`"`)) ||
		bytes.Contains(messages, []byte(`"`+fieldTrainable+`"`))
}

// takeMarks returns messages without marks, and the marks, or nil if there are none.
func takeMarks(raw json.RawMessage) (json.RawMessage, []Mark, error) {
	var messages []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &messages); err != nil {
		return nil, nil, fmt.Errorf("reading messages: %w", err)
	}
	marks, found := make([]Mark, len(messages)), false
	for i, m := range messages {
		var err error
		if marks[i].Weight, err = takeWeight(m); err == nil {
			marks[i].Parts, err = takeParts(m)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
		found = found || marks[i].Weight != nil || marks[i].Parts != nil
	}
	if !found {
		marks = nil
	}
	rest, err := json.Marshal(messages)
	return rest, marks, err
}

// takeParts takes the weights of a message's parts.
func takeParts(message map[string]json.RawMessage) ([]*float64, error) {
	var parts []map[string]json.RawMessage
	if json.Unmarshal(message["content"], &parts) != nil {
		return nil, nil
	}
	weights, found := make([]*float64, len(parts)), false
	for i, p := range parts {
		var err error
		if weights[i], err = takeWeight(p); err != nil {
			return nil, fmt.Errorf("content[%d]: %w", i, err)
		}
		found = found || weights[i] != nil
	}
	if !found {
		weights = nil
	}
	content, err := json.Marshal(parts)
	message["content"] = content
	return weights, err
}

// takeWeight takes a weight out of an object.
func takeWeight(object map[string]json.RawMessage) (*float64, error) {
	weight, trainable := object[fieldWeight], object[fieldTrainable]
	delete(object, fieldWeight)
	delete(object, fieldTrainable)
	switch {
	case isSet(weight) && isSet(trainable):
		return nil, errors.New("it has a weight and is trainable: keep one of the two")
	case isSet(trainable):
		var trains bool
		if json.Unmarshal(trainable, &trains) != nil {
			return nil, fmt.Errorf("trainable is %s, and must be true or false", trainable)
		}
		if trains {
			return new(float64(1)), nil
		}
		return new(float64(0)), nil
	case isSet(weight):
		var number float64
		if json.Unmarshal(weight, &number) != nil || !finite.Is(number) || number < 0 {
			return nil, fmt.Errorf("weight is %s, and must be a number of at least 0", weight)
		}
		return &number, nil
	default:
		return nil, nil
	}
}
