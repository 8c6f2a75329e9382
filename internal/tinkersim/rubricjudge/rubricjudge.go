// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package rubricjudge is a frozen model that judges responses by rule, so that a run with a judge needs no large model.
// It reads the request that it is given, as every judge would, and applies criteria of one form:
//
//	The response contains TEXT.
//	The response does not contain TEXT.
//
// TEXT may be in quotes. Criteria of another form are left without a rating, which the reader of the judgement notices.
package rubricjudge

import (
	"encoding/json"
	"regexp"
	"strings"
)

// The parts of a request.
const (
	responseMark = "## Response\n\n"
	criteriaMark = "\n\n## Criteria\n\n"
	taskMark     = "\n\n## Task\n\n"
	scoreMark    = "Each rating is a number"
)

var (
	numbered = regexp.MustCompile(`(?m)^(\d+)\. (.*)$`)
	// marks match the tags around a response.
	marks = regexp.MustCompile(`(?s)^<response-[a-p]+>\n(.*)\n</response-[a-p]+>$`)
	form  = regexp.MustCompile(`^The response (contains|does not contain) (.+?)\.?$`)
)

// rating is the rating of one criterion in the judgement.
type rating struct {
	Criterion int    `json:"criterion"`
	Rationale string `json:"rationale"`
	Rating    any    `json:"rating"`
}

// Reply returns the judgement that a prompt asks for as JSON, or OK if it asks for none.
func Reply(prompt string) string {
	task := strings.LastIndex(prompt, taskMark)
	if task < 0 {
		return "OK"
	}
	criteria := strings.LastIndex(prompt[:task], criteriaMark)
	response := strings.Index(prompt, responseMark)
	if criteria < 0 || response < 0 || response+len(responseMark) > criteria {
		return "OK"
	}
	text := marks.ReplaceAllString(prompt[response+len(responseMark):criteria], "$1")
	scores := strings.Contains(prompt[task:], scoreMark)
	var judgement struct {
		Ratings []rating `json:"ratings"`
	}
	for i, match := range numbered.FindAllStringSubmatch(prompt[criteria+len(criteriaMark):task], -1) {
		judged := rate(text, match[2], scores)
		judged.Criterion = i + 1
		judgement.Ratings = append(judgement.Ratings, judged)
	}
	// Texts and numbers are always JSON.
	encoded, _ := json.Marshal(judgement)
	return string(encoded)
}

// rate applies one criterion.
func rate(response, criterion string, scores bool) rating {
	match := form.FindStringSubmatch(strings.TrimSpace(criterion))
	if match == nil {
		return rating{Rationale: "The criterion has a form that this judge does not know.", Rating: "Unknown"}
	}
	wanted := strings.Trim(match[2], `"`)
	found := strings.Contains(response, wanted)
	judged := rating{Rationale: "The response lacks " + wanted + ".", Rating: "No"}
	if found {
		judged.Rationale = "The response has " + wanted + "."
	}
	met := found == (match[1] == "contains")
	switch {
	case scores && met:
		judged.Rating = 1
	case scores:
		judged.Rating = 0
	case met:
		judged.Rating = "Yes"
	}
	return judged
}
