// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// meaning is a digest of a conversation, up to one of its messages. It does not depend on the changes that agents
// make to messages that they send back: agents write the arguments of calls anew, strip white space at the ends of
// texts, drop reasoning, and give calls other IDs.
type meaning [sha256.Size]byte

// meanings returns the meaning of a conversation of a role up to each of its messages.
func meanings(role string, messages []chat.Message) []meaning {
	list := make([]meaning, len(messages))
	m := meaner{sum: sha256.New(), calls: map[string]int{}}
	last := sha256.Sum256([]byte(role))
	for i, message := range messages {
		m.sum.Reset()
		m.sum.Write(last[:])
		m.message(message)
		m.sum.Sum(last[:0])
		list[i] = last
	}
	return list
}

// rawMeaning returns the meaning of a raw conversation with these tokens.
func rawMeaning(role string, tokens []int32) meaning {
	m := meaner{sum: sha256.New()}
	m.text("raw")
	m.text(role)
	for _, id := range tokens {
		m.number(int(id))
	}
	return meaning(m.sum.Sum(nil))
}

// meaner hashes messages.
type meaner struct {
	sum hash.Hash
	// calls has the places of calls in the conversation, by their IDs.
	calls  map[string]int
	placed int
}

func (m *meaner) text(s string) {
	m.number(len(s))
	m.sum.Write([]byte(s))
}

func (m *meaner) number(n int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	m.sum.Write(b[:])
}

func (m *meaner) message(message chat.Message) {
	m.text(message.Role)
	m.text(saidBy(message))
	m.number(len(message.Calls))
	for _, call := range message.Calls {
		m.text(call.Name)
		m.text(argumentsOf(call.Arguments))
		m.calls[call.ID] = m.placed
		m.placed++
	}
	if message.Role == chat.RoleTool {
		place, ok := m.calls[message.CallID]
		if !ok {
			place = -1
		}
		m.number(place)
	}
}

// saidBy returns the text of a message without its reasoning.
func saidBy(message chat.Message) string {
	if !message.IsStructured() {
		return plain(message.Content)
	}
	var said strings.Builder
	for _, part := range message.AllParts() {
		if !part.Thinking {
			said.WriteString(part.Text)
		}
	}
	return plain(said.String())
}

func plain(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) }

// argumentsOf returns a normal form of the arguments of a call. The order of names, white space, escapes and spellings
// of numbers are no part of their meaning.
func argumentsOf(arguments string) string {
	var value any
	if err := json.Unmarshal([]byte(arguments), &value); err != nil {
		return plain(arguments)
	}
	form, err := json.Marshal(value)
	if err != nil {
		return plain(arguments)
	}
	return string(form)
}
