// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// template is a text in which $(name) stands for a field of the row. $$(name) is the text $(name), as in the variables
// of Kubernetes' containers. Any other $ is itself.
type template struct {
	// texts has one element more than names: a name stands between two texts.
	texts, names []string
}

func parseTemplate(text string) template {
	var t template
	var before strings.Builder
	for {
		at := strings.Index(text, "$(")
		end := -1
		if at >= 0 {
			end = strings.IndexByte(text[at:], ')')
		}
		if end < 0 {
			before.WriteString(text)
			t.texts = append(t.texts, before.String())
			return t
		}
		name := text[at+2 : at+end]
		if at > 0 && text[at-1] == '$' {
			before.WriteString(text[:at] + "(" + name + ")")
		} else {
			before.WriteString(text[:at])
			t.texts, t.names = append(t.texts, before.String()), append(t.names, name)
			before.Reset()
		}
		text = text[at+end+1:]
	}
}

// render replaces the names. It returns the first name that the fields lack.
func (t template) render(fields map[string]any) (text, missing string) {
	var out strings.Builder
	for i, name := range t.names {
		value, ok := fields[name]
		if !ok || value == nil {
			return "", name
		}
		out.WriteString(t.texts[i])
		out.WriteString(textOf(value))
	}
	out.WriteString(t.texts[len(t.texts)-1])
	return out.String(), ""
}

// textOf writes a value of a column for people: a text as it is, the elements of a list of plain values with a comma
// and a space between them, and JSON for everything else.
func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	case []any:
		if text, ok := listText(v); ok {
			return text
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		// A column was decoded from JSON, so that it can be encoded.
		panic("dataset: encoding a column: " + err.Error())
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func listText(list []any) (string, bool) {
	texts := make([]string, len(list))
	for i, element := range list {
		switch element.(type) {
		case string, json.Number, bool:
			texts[i] = textOf(element)
		default:
			return "", false
		}
	}
	return strings.Join(texts, ", "), true
}
