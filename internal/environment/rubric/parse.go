// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rubric

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// judgement is what a judge replies.
type judgement struct {
	Ratings []rating `json:"ratings"`
}

// rating is that of one criterion.
type rating struct {
	// Criterion counts from 1. Judges may leave it out of a complete list.
	Criterion *int            `json:"criterion"`
	Rating    json.RawMessage `json:"rating"`
}

// parse reads the ratings of so many criteria, each from 0 to 1, or NaN for one that is missing or is no rating. A list
// without the criteria's numbers must be complete: it would not say which ratings are missing.
func parse(text string, criteria int, scores bool) ([]float64, error) {
	found, err := decode(text)
	if err != nil {
		return nil, err
	}
	ratings := make([]float64, criteria)
	for i := range ratings {
		ratings[i] = math.NaN()
	}
	numbered := isNumbered(found.Ratings)
	if !numbered && len(found.Ratings) != criteria {
		return nil, fmt.Errorf("reading a judgement: it has %d ratings for %d criteria", len(found.Ratings), criteria)
	}
	seen := map[int]bool{}
	for i, r := range found.Ratings {
		at := i
		if numbered {
			at = *r.Criterion - 1
		}
		if at < 0 || at >= criteria || seen[at] {
			return nil, fmt.Errorf("reading a judgement: criterion %d of %d is not one, or is rated twice", at+1, criteria)
		}
		seen[at] = true
		ratings[at] = valueOf(r.Rating, scores)
	}
	return ratings, nil
}

// isNumbered reports whether every rating has the number of its criterion.
func isNumbered(ratings []rating) bool {
	for _, r := range ratings {
		if r.Criterion == nil {
			return false
		}
	}
	return len(ratings) > 0
}

// valueOf reads a rating: yes, true and 1 are 1, and no, false and 0 are 0, in any case. A score is any number from 0 to 1.
func valueOf(raw json.RawMessage, scores bool) float64 {
	text := strings.ToLower(strings.TrimSpace(strings.Trim(strings.TrimSpace(string(raw)), `"`)))
	if scores {
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || !(value >= 0 && value <= 1) {
			return math.NaN()
		}
		return value
	}
	switch text {
	case "yes", "true", "1":
		return 1
	case "no", "false", "0":
		return 0
	default:
		return math.NaN()
	}
}

// beginning is that of the object, if its list comes first.
var beginning = regexp.MustCompile(`\{\s*"ratings"`)

// decode finds the JSON object of a judgement: what is between its first and last brace, which leaves out fences and other
// words, or what begins with the last list of ratings, which leaves out reasoning with braces.
func decode(text string) (judgement, error) {
	first, last := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if first < 0 || last < first {
		return judgement{}, errors.New("reading a judgement: it has no JSON object")
	}
	found, err := decodeObject(text[first : last+1])
	if starts := beginning.FindAllStringIndex(text[:last], -1); err != nil && len(starts) > 0 {
		found, err = decodeObject(text[starts[len(starts)-1][0] : last+1])
	}
	return found, err
}

func decodeObject(text string) (judgement, error) {
	var found judgement
	if err := json.Unmarshal(escapeControls(text), &found); err != nil {
		return judgement{}, fmt.Errorf("reading a judgement: %w", err)
	}
	if found.Ratings == nil {
		return judgement{}, errors.New("reading a judgement: it has no list of ratings")
	}
	return found, nil
}

// escapeControls escapes the control characters within strings, which JSON forbids and models write.
func escapeControls(text string) []byte {
	out := make([]byte, 0, len(text))
	inString := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case inString && c == '\\' && i+1 < len(text):
			out = append(out, c)
			i++
			c = text[i]
		case c == '"':
			inString = !inString
		case inString && c < ' ':
			out = fmt.Appendf(out, `\u%04x`, c)
			continue
		}
		out = append(out, c)
	}
	return out
}
