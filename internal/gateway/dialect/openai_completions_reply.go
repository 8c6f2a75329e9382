// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"
	"unicode/utf8"
)

// textCompletion is a reply of completions, or an event of its stream.
type textCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []textChoice `json:"choices"`
	Usage   *openAIUsage `json:"usage,omitempty"`
}

type textChoice struct {
	Text         string        `json:"text"`
	Index        int           `json:"index"`
	Logprobs     *textLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
}

type textLogprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []*float64           `json:"token_logprobs"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"`
}

// completionsBody returns the reply in one body.
func completionsBody(request *Request, reply *Reply) textCompletion {
	body := textEvent(reply)
	body.Usage = reply.Usage.openAI()
	for i, choice := range reply.Choices {
		text := choice.Text
		if request.Echo {
			text = choice.Prompt + text
		}
		body.Choices = append(body.Choices, textChoice{
			Text: text, Index: i, Logprobs: textTokens(request, choice), FinishReason: textFinish(choice.Stop),
		})
	}
	return body
}

// textFinish returns OpenAI's word for the end of a choice. Completions have no word for calls.
func textFinish(s StopReason) *string {
	if s == StopCalls {
		s = StopEnd
	}
	return s.finish()
}

// textEvent returns a reply or an event without choices.
func textEvent(reply *Reply) textCompletion {
	return textCompletion{
		ID: reply.ID, Object: "text_completion", Created: reply.Created.Unix(), Model: reply.Model, Choices: []textChoice{},
	}
}

// textTokens returns the log-probabilities that the request asks for. An echoed prompt comes first. Offsets count
// characters from the beginning of the choice's text.
func textTokens(request *Request, choice Choice) *textLogprobs {
	if request.Logprobs == nil {
		return nil
	}
	tokens := choice.Tokens
	if request.Echo {
		tokens = slices.Concat(choice.PromptTokens, choice.Tokens)
	}
	logprobs := &textLogprobs{
		Tokens: []string{}, TokenLogprobs: []*float64{}, TopLogprobs: []map[string]float64{}, TextOffset: []int{},
	}
	offset := 0
	for _, token := range tokens {
		logprobs.Tokens = append(logprobs.Tokens, token.Text)
		logprobs.TokenLogprobs = append(logprobs.TokenLogprobs, number(token.Logprob))
		logprobs.TopLogprobs = append(logprobs.TopLogprobs, topLogprobs(token, *request.Logprobs))
		logprobs.TextOffset = append(logprobs.TextOffset, offset)
		offset += utf8.RuneCountInString(token.Text)
	}
	return logprobs
}

// topLogprobs returns the likeliest tokens; nil if none are known or asked for.
func topLogprobs(token Token, most int) map[string]float64 {
	var likeliest map[string]float64
	for _, top := range token.Top[:min(most, len(token.Top))] {
		logprob := number(top.Logprob)
		if logprob == nil {
			continue
		}
		if likeliest == nil {
			likeliest = map[string]float64{}
		}
		// Tokens with equal text, such as parts of a character, become one entry, with the log-probability of the likelier
		// token.
		if _, ok := likeliest[top.Text]; !ok {
			likeliest[top.Text] = *logprob
		}
	}
	return likeliest
}

// completionsStream writes the reply as events: the text and the end of each choice, and then the usage.
func completionsStream(w *writer, request *Request, reply *Reply) {
	for i, choice := range completionsBody(request, reply).Choices {
		w.sent = reply.Choices[i].Sent
		send := func(text string, logprobs *textLogprobs, finish *string) {
			event := textEvent(reply)
			event.Choices = []textChoice{{Text: text, Index: choice.Index, Logprobs: logprobs, FinishReason: finish}}
			w.data(event)
		}
		for _, piece := range w.pieces(choice.Text) {
			send(piece, nil, nil)
		}
		if reply.Open && i == len(reply.Choices)-1 {
			return
		}
		send("", choice.Logprobs, choice.FinishReason)
	}
	if request.IncludeUsage {
		event := textEvent(reply)
		event.Usage = reply.Usage.openAI()
		w.data(event)
	}
	w.done()
}
