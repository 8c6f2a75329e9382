// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// response is a reply of responses.
type response struct {
	ID                 string             `json:"id"`
	Object             string             `json:"object"`
	CreatedAt          int64              `json:"created_at"`
	Status             string             `json:"status"`
	Error              *openAIError       `json:"error"`
	IncompleteDetails  *incompleteDetails `json:"incomplete_details"`
	Instructions       *string            `json:"instructions"`
	MaxOutputTokens    *int               `json:"max_output_tokens"`
	Metadata           map[string]string  `json:"metadata"`
	Model              string             `json:"model"`
	Output             []any              `json:"output"`
	ParallelToolCalls  bool               `json:"parallel_tool_calls"`
	PreviousResponseID *string            `json:"previous_response_id"`
	Temperature        *float64           `json:"temperature"`
	ToolChoice         string             `json:"tool_choice"`
	Tools              []responseTool     `json:"tools"`
	TopP               *float64           `json:"top_p"`
	Usage              *responseUsage     `json:"usage"`
}

type incompleteDetails struct {
	Reason string `json:"reason"`
}

type responseTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

type responseUsage struct {
	InputTokens         int           `json:"input_tokens"`
	InputTokensDetails  inputDetails  `json:"input_tokens_details"`
	OutputTokens        int           `json:"output_tokens"`
	OutputTokensDetails outputDetails `json:"output_tokens_details"`
	TotalTokens         int           `json:"total_tokens"`
}

type inputDetails struct {
	CachedTokens     int `json:"cached_tokens"`
	CacheWriteTokens int `json:"cache_write_tokens"`
}

type outputDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// textItem is an output item with a message or with reasoning.
type textItem struct {
	ID      string        `json:"id"`
	Type    string        `json:"type"`
	Status  string        `json:"status"`
	Role    string        `json:"role,omitempty"`
	Summary []any         `json:"summary,omitzero"`
	Content []contentPart `json:"content"`
}

type contentPart struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations,omitzero"`
	Logprobs    []any  `json:"logprobs,omitzero"`
}

// callItem is an output item with a call.
type callItem struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Status    string `json:"status"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
)

// textItemOf returns the item of a part. An item whose status is in progress has no content.
func textItemOf(part chat.Part, id, status string) textItem {
	item := textItem{ID: "msg_" + id, Type: "message", Status: status, Role: chat.RoleAssistant, Content: []contentPart{}}
	if part.Thinking {
		item.ID, item.Type, item.Role, item.Summary = "rs_"+id, "reasoning", "", []any{}
	}
	if status != statusInProgress {
		item.Content = append(item.Content, contentPartOf(part))
	}
	return item
}

func contentPartOf(part chat.Part) contentPart {
	if part.Thinking {
		return contentPart{Type: "reasoning_text", Text: part.Text}
	}
	return contentPart{Type: "output_text", Text: part.Text, Annotations: []any{}, Logprobs: []any{}}
}

func callItemOf(call chat.ToolCall, id, status string) callItem {
	item := callItem{ID: "fc_" + id, Type: "function_call", Status: status, CallID: call.ID, Name: call.Name}
	if status != statusInProgress {
		item.Arguments = call.Arguments
	}
	return item
}

// itemID returns the ID of an item without its prefix.
func itemID(reply *Reply, index int) string { return reply.ID + "_" + strconv.Itoa(index) }

// outputParts returns the parts of a message that become items. A message without calls has at least one.
func outputParts(m chat.Message) []chat.Part {
	parts := Normal(m).AllParts()
	if len(parts) == 1 && parts[0].Text == "" && len(m.Calls) > 0 {
		return nil
	}
	return parts
}

// responseOf returns the reply without its output, in progress.
func responseOf(request *Request, reply *Reply) response {
	r := response{
		ID: reply.ID, Object: "response", CreatedAt: reply.Created.Unix(), Status: statusInProgress,
		Instructions: orNull(request.Instructions), MaxOutputTokens: request.MaxTokens, Metadata: map[string]string{},
		Model: reply.Model, Output: []any{}, ParallelToolCalls: true, PreviousResponseID: orNull(request.PreviousID),
		ToolChoice: "auto", Tools: []responseTool{},
	}
	for _, tool := range request.Tools {
		parameters := tool.Parameters
		if len(parameters) == 0 {
			parameters = json.RawMessage(`{}`)
		}
		r.Tools = append(r.Tools, responseTool{
			Type: "function", Name: tool.Name, Description: tool.Description, Parameters: parameters,
		})
	}
	return r
}

// responseBody returns the whole reply.
func responseBody(request *Request, reply *Reply) response {
	r, choice := responseOf(request, reply), reply.Choices[0]
	r.Status = statusCompleted
	if choice.Stop == StopLength || choice.Stop == StopContext {
		r.Status, r.IncompleteDetails = statusIncomplete, &incompleteDetails{"max_output_tokens"}
	}
	parts := outputParts(choice.Message)
	for i, part := range parts {
		status := statusCompleted
		if i == len(parts)-1 && len(choice.Message.Calls) == 0 {
			status = r.Status
		}
		r.Output = append(r.Output, textItemOf(part, itemID(reply, len(r.Output)), status))
	}
	for _, call := range choice.Message.Calls {
		r.Output = append(r.Output, callItemOf(call, itemID(reply, len(r.Output)), statusCompleted))
	}
	r.Usage = &responseUsage{
		InputTokens: reply.Usage.Prompt, InputTokensDetails: inputDetails{CachedTokens: reply.Usage.Cached},
		OutputTokens: reply.Usage.Completion, OutputTokensDetails: outputDetails{reply.Usage.Reasoning},
		TotalTokens: reply.Usage.Prompt + reply.Usage.Completion,
	}
	return r
}

// responseStream writes the reply as events: the start of the response; the start, pieces and end of each item; and
// the end of the response.
func responseStream(w *writer, request *Request, reply *Reply) {
	started, whole := responseOf(request, reply), responseBody(request, reply)
	w.numbered("response.created", map[string]any{"response": started})
	w.numbered("response.in_progress", map[string]any{"response": started})
	message := reply.Choices[0].Message
	w.sent = reply.Choices[0].Sent
	index := 0
	parts := outputParts(message)
	if reply.Open && parts[0].Text == "" {
		return
	}
	for _, part := range parts {
		begun := textItemOf(part, itemID(reply, index), statusInProgress)
		if reply.Open && index == len(parts)-1 {
			beginText(w, part, begun, index)
			return
		}
		beginText(w, part, begun, index)
		endText(w, part, begun, whole.Output[index], index)
		index++
	}
	for _, call := range message.Calls {
		begun := callItemOf(call, itemID(reply, index), statusInProgress)
		place := func(more map[string]any) map[string]any {
			more["item_id"], more["output_index"] = begun.ID, index
			return more
		}
		w.numbered("response.output_item.added", map[string]any{"output_index": index, "item": begun})
		for _, piece := range pieces(call.Arguments) {
			w.numbered("response.function_call_arguments.delta", place(map[string]any{"delta": piece}))
		}
		w.numbered("response.function_call_arguments.done",
			place(map[string]any{"arguments": call.Arguments, "name": call.Name}))
		w.numbered("response.output_item.done", map[string]any{"output_index": index, "item": whole.Output[index]})
		index++
	}
	w.numbered("response."+whole.Status, map[string]any{"response": whole})
}

// textPlace returns the fields of an event of an item with a message or with reasoning.
func textPlace(part chat.Part, begun textItem, index int, more map[string]any) map[string]any {
	more["item_id"], more["output_index"], more["content_index"] = begun.ID, index, 0
	if !part.Thinking && (more["delta"] != nil || more["text"] != nil) {
		more["logprobs"] = []any{}
	}
	return more
}

// textEventName returns the common prefix of the names of the events of a part's text.
func textEventName(part chat.Part) string {
	if part.Thinking {
		return "response.reasoning_text."
	}
	return "response.output_text."
}

// beginText writes the events of an item with a message or with reasoning, up to the end of its text.
func beginText(w *writer, part chat.Part, begun textItem, index int) {
	w.numbered("response.output_item.added", map[string]any{"output_index": index, "item": begun})
	empty := contentPartOf(chat.Part{Thinking: part.Thinking})
	w.numbered("response.content_part.added", textPlace(part, begun, index, map[string]any{"part": empty}))
	for _, piece := range w.pieces(part.Text) {
		w.numbered(textEventName(part)+"delta", textPlace(part, begun, index, map[string]any{"delta": piece}))
	}
}

// endText writes the events that end an item with a message or with reasoning.
func endText(w *writer, part chat.Part, begun textItem, whole any, index int) {
	w.numbered(textEventName(part)+"done", textPlace(part, begun, index, map[string]any{"text": part.Text}))
	w.numbered("response.content_part.done", textPlace(part, begun, index, map[string]any{"part": contentPartOf(part)}))
	w.numbered("response.output_item.done", map[string]any{"output_index": index, "item": whole})
}
