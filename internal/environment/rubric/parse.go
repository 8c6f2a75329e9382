// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rubric

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// judgement has a judge's ratings of the criteria of one call.
type judgement struct {
	// ratings are from 0 to 1, or NaN for a criterion that was not rated.
	ratings    []float64
	rationales []string
}

// newJudgement returns a judgement of that number of criteria without any rating.
func newJudgement(criteria int) judgement {
	j := judgement{ratings: make([]float64, criteria), rationales: make([]string, criteria)}
	for i := range j.ratings {
		j.ratings[i] = math.NaN()
	}
	return j
}

// judgements lists the criteria that are rated, for people.
func (j judgement) judgements(conversation string, criteria []string) []environment.Judgement {
	var list []environment.Judgement
	for i, rating := range j.ratings {
		if !math.IsNaN(rating) {
			list = append(list, environment.Judgement{Conversation: conversation, Criterion: criteria[i], Rating: rating,
				Rationale: j.rationales[i]})
		}
	}
	return list
}

// document is the reply of a judge.
type document struct {
	Ratings []rating `json:"ratings"`
}

// rating is the rating of one criterion.
type rating struct {
	// Criterion counts from 1. Judges may leave it out of a complete list.
	Criterion *ordinal        `json:"criterion"`
	Rating    json.RawMessage `json:"rating"`
	// Rationale may be of any kind: only a text counts.
	Rationale json.RawMessage `json:"rationale"`
}

// ordinal is a whole number, which judges also write as a text.
type ordinal int

// UnmarshalJSON implements json.Unmarshaler.
func (o *ordinal) UnmarshalJSON(data []byte) error {
	n, err := strconv.Atoi(strings.Trim(string(data), `"`))
	if err != nil {
		return fmt.Errorf("reading the number of a criterion: %w", err)
	}
	*o = ordinal(n)
	return nil
}

// parse reads the ratings of the given number of criteria. A rating is from 0 to 1, or NaN if it is missing or
// invalid. A list without the numbers of the criteria must be complete: otherwise it would not tell which ratings are
// missing.
func parse(text string, criteria int, scores bool) (judgement, error) {
	found, err := decode(text)
	if err != nil {
		return judgement{}, err
	}
	j := newJudgement(criteria)
	numbered := isNumbered(found.Ratings)
	if !numbered && len(found.Ratings) != criteria {
		return judgement{}, fmt.Errorf("reading a judgement: it has %d ratings for %d criteria", len(found.Ratings), criteria)
	}
	seen := map[int]bool{}
	for i, r := range found.Ratings {
		at := i
		if numbered {
			at = int(*r.Criterion) - 1
		}
		if at < 0 || at >= criteria || seen[at] {
			return judgement{},
				fmt.Errorf("reading a judgement: the number %d is that of none of %d criteria, or is given twice", at+1, criteria)
		}
		seen[at] = true
		j.ratings[at] = valueOf(r.Rating, scores)
		_ = json.Unmarshal(r.Rationale, &j.rationales[at]) // A rationale that is not a string is left out.
	}
	return j, nil
}

// isNumbered reports whether every rating has the number of its criterion.
func isNumbered(ratings []rating) bool {
	return len(ratings) > 0 && !slices.ContainsFunc(ratings, func(r rating) bool { return r.Criterion == nil })
}

// valueOf reads a rating. Yes, true and 1 are 1; no, false and 0 are 0. Upper case and a full stop do not matter. If
// ratings are scores, only a number from 0 to 1 is one.
func valueOf(raw json.RawMessage, scores bool) float64 {
	text := strings.ToLower(strings.TrimSpace(strings.Trim(strings.TrimSpace(string(raw)), `"`)))
	value, err := strconv.ParseFloat(text, 64)
	switch text = strings.TrimSuffix(text, "."); {
	case err == nil && value >= 0 && value <= 1 && (scores || value == 0 || value == 1):
		return value
	case !scores && (text == "yes" || text == "true"):
		return 1
	case !scores && (text == "no" || text == "false"):
		return 0
	default:
		return math.NaN()
	}
}

// beginning matches the beginning of an object whose list of ratings comes first.
var beginning = regexp.MustCompile(`\{\s*"ratings"`)

// decode finds the JSON object of a judgement: the text between the first and the last brace, which leaves out fences
// and other words, or else an object that begins with a list of ratings, which leaves out reasoning with braces. If
// there are several such objects and they differ, none of them counts: a judge may quote the reply, which may contain
// a judgement of its own.
func decode(text string) (document, error) {
	first, last := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if first < 0 || last < first {
		return document{}, errors.New("reading a judgement: it has no JSON object")
	}
	found, err := decodeObject(text[first : last+1])
	if err == nil {
		return found, nil
	}
	objects := 0
	for at, starts := 0, beginning.FindAllStringIndex(text, -1); len(starts) > 0; starts = starts[1:] {
		start := starts[0][0]
		length := objectLength(text[start:])
		if start < at || length == 0 {
			continue // It is a part of the object before, or has no end.
		}
		object, failed := decodeObject(text[start : start+length])
		if failed != nil {
			continue
		}
		if objects++; objects > 1 && !sameRatings(found, object) {
			return document{}, errors.New("reading a judgement: it has several lists of ratings, which differ")
		}
		found, err, at = object, nil, start+length
	}
	return found, err
}

// objectLength returns the length of the JSON object at the beginning of a text, and 0 if it has no end.
func objectLength(text string) int {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && c == '{':
			depth++
		case !inString && c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// sameRatings reports whether two documents rate alike, whatever their rationales.
func sameRatings(a, b document) bool {
	return slices.EqualFunc(a.Ratings, b.Ratings, func(x, y rating) bool {
		return reflect.DeepEqual(x.Criterion, y.Criterion) && bytes.Equal(x.Rating, y.Rating)
	})
}

func decodeObject(text string) (document, error) {
	var found document
	if err := json.Unmarshal(escapeControls(text), &found); err != nil {
		return document{}, fmt.Errorf("reading a judgement: %w", err)
	}
	if found.Ratings == nil {
		return document{}, errors.New("reading a judgement: it has no list of ratings")
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
