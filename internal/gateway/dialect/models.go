// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import "time"

// Model is an entry of the endpoint models: a role or a frozen model.
type Model struct {
	Name    string
	Created time.Time
}

type openAIModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

type anthropicModel struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
	Lifecycle   string `json:"lifecycle"`
}

// entry returns the model in the dialect.
func (m Model) entry(dialect Dialect) any {
	if dialect == Anthropic {
		return anthropicModel{"model", m.Name, m.Name, m.Created.UTC().Format(time.RFC3339), "active"}
	}
	return openAIModel{m.Name, "model", m.Created.Unix(), "tinker-operator"}
}

// EncodeModel returns the answer to a request for one model.
func EncodeModel(dialect Dialect, model Model) []byte { return marshal(model.entry(dialect)) }

// EncodeModels returns the answer to a request for all models, in one page.
func EncodeModels(dialect Dialect, models []Model) []byte {
	entries := make([]any, len(models))
	for i, model := range models {
		entries[i] = model.entry(dialect)
	}
	if dialect == OpenAI {
		return marshal(map[string]any{"object": "list", "data": entries})
	}
	page := map[string]any{"data": entries, "has_more": false, "first_id": nil, "last_id": nil}
	if len(models) > 0 {
		page["first_id"], page["last_id"] = models[0].Name, models[len(models)-1].Name
	}
	return marshal(page)
}
