// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// Format makes rows from columns.
type Format struct {
	fields map[string]string
	// prompt and system are nil if they are not given.
	prompt, system *template
	examples       []chat.Message
}

// NewFormat returns the format of a definition. If the definition has no template of a prompt, the field prompt is
// the prompt: a text, or a list of messages.
func NewFormat(definition settings.Dataset) *Format {
	f := &Format{fields: definition.Fields}
	if definition.Prompt != "" {
		t := parseTemplate(definition.Prompt)
		f.prompt = &t
	}
	if definition.SystemPrompt != "" {
		t := parseTemplate(definition.SystemPrompt)
		f.system = &t
	}
	for _, e := range definition.Examples {
		f.examples = append(f.examples, chat.Message{Role: chat.RoleUser, Content: e.Prompt},
			chat.Message{Role: chat.RoleAssistant, Content: e.Reply})
	}
	return f
}

// ColumnError reports that a row lacks a column that the definition needs, or that the value of the column cannot be
// used.
type ColumnError struct {
	// Field is the field of the definition.
	Field string
	// Problem is the defect of the row, in words that follow "the row", and Repair tells what to do.
	Problem, Repair string
}

// Error implements error.
func (e *ColumnError) Error() string { return e.Field + ": the row " + e.Problem + ": " + e.Repair }

// Row makes a row from columns, and keeps the columns. An error is a *ColumnError.
func (f *Format) Row(columns map[string]any) (Row, error) {
	fields, err := f.mapped(columns)
	if err != nil {
		return Row{}, err
	}
	row := Row{Fields: fields}
	if id := fields[FieldID]; id != nil {
		row.ID = textOf(id)
	}
	if answer := fields[FieldAnswer]; answer != nil {
		row.Answer = textOf(answer)
	}
	prompt, err := f.promptOf(fields)
	if err != nil {
		return Row{}, err
	}
	row.Prompt = prompt[len(prompt)-1].Content
	if f.system != nil {
		text, missing := f.system.render(fields)
		if missing != "" {
			return Row{}, lacks("dataset.systemPrompt", missing, fields)
		}
		if prompt[0].Role == chat.RoleSystem {
			return Row{}, &ColumnError{Field: "dataset.systemPrompt", Problem: "has a system message of its own in its prompt",
				Repair: "remove systemPrompt, or the message"}
		}
		row.Messages = append(row.Messages, chat.Message{Role: chat.RoleSystem, Content: text})
	} else if prompt[0].Role == chat.RoleSystem {
		row.Messages, prompt = append(row.Messages, prompt[0]), prompt[1:]
	}
	row.Messages = append(append(row.Messages, f.examples...), prompt...)
	return row, nil
}

// mapped returns the columns, together with the fields that are mapped to them.
func (f *Format) mapped(columns map[string]any) (map[string]any, error) {
	if len(f.fields) == 0 {
		return columns, nil
	}
	fields := maps.Clone(columns)
	for name, column := range f.fields {
		value := columns[column]
		if value == nil {
			return nil, lacks("dataset.fields."+name, column, columns)
		}
		fields[name] = value
	}
	return fields, nil
}

// lacks reports that a row has no value in a column.
func lacks(field, column string, columns map[string]any) error {
	problem := fmt.Sprintf("has no column %q", column)
	if _, ok := columns[column]; ok {
		problem = fmt.Sprintf("has null in column %q", column)
	}
	return &ColumnError{Field: field, Problem: fmt.Sprintf("%s; its columns are %s", problem, names(columns)),
		Repair: "correct the name, or the data"}
}

// names lists the columns that have values, for people.
func names(columns map[string]any) string {
	const most = 16
	var known []string
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		if columns[name] != nil {
			known = append(known, name)
		}
	}
	switch {
	case len(known) == 0:
		return "all empty"
	case len(known) > most:
		return strings.Join(known[:most], ", ") + " and others"
	default:
		return strings.Join(known, ", ")
	}
}

// promptOf returns the messages of the prompt. The last one is the question.
func (f *Format) promptOf(fields map[string]any) ([]chat.Message, error) {
	if f.prompt != nil {
		text, missing := f.prompt.render(fields)
		if missing != "" {
			return nil, lacks("dataset.prompt", missing, fields)
		}
		return []chat.Message{{Role: chat.RoleUser, Content: text}}, nil
	}
	switch value := fields[FieldPrompt].(type) {
	case nil:
		return nil, &ColumnError{Field: "dataset.prompt", Problem: "has no column \"prompt\"; its columns are " +
			names(fields),
			Repair: "give a template, such as prompt: $(question), or map the column, as in fields: {prompt: question}"}
	case []any:
		return conversation(value)
	case string, json.Number, bool:
		return []chat.Message{{Role: chat.RoleUser, Content: textOf(value)}}, nil
	default:
		return nil, notPrompt("is an object")
	}
}

func notPrompt(problem string) error {
	return &ColumnError{Field: "dataset.fields.prompt", Problem: "has a prompt that " + problem,
		Repair: "a prompt is a text, or a list of messages with role and content, the last of which is the user's"}
}

// conversation reads a prompt that is a list of messages.
func conversation(list []any) ([]chat.Message, error) {
	messages := make([]chat.Message, 0, len(list))
	for i, element := range list {
		message, _ := element.(map[string]any)
		role, _ := message["role"].(string)
		content, ok := message["content"].(string)
		if !ok || role != chat.RoleUser && role != chat.RoleAssistant && (role != chat.RoleSystem || i > 0) {
			return nil, notPrompt(fmt.Sprintf("has no valid message at position %d", i+1))
		}
		messages = append(messages, chat.Message{Role: role, Content: content})
	}
	if len(messages) == 0 || messages[len(messages)-1].Role != chat.RoleUser {
		return nil, notPrompt("does not end with a message of the user")
	}
	return messages, nil
}
