// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rubric

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestParse parses as the recipe rlvr_tinker does, except for repairs of this package: ratings that are JSON booleans
// or numbers are read, text around the object is left out, and the judge may number its ratings.
func TestParse(t *testing.T) {
	none := math.NaN()
	cases := map[string]struct {
		text   string
		scores bool
		count  int
		want   []float64
		failed bool
	}{
		"yes and no": {text: yesNo, count: 2, want: []float64{1, 0}},
		"any case and space": {text: `{"ratings": [{"rating": " YES "}, {"rating": "nO"}]}`, count: 2,
			want: []float64{1, 0}},
		"true and false as texts": {text: `{"ratings": [{"rating": "True"}, {"rating": "false"}]}`, count: 2,
			want: []float64{1, 0}},
		"1 and 0 as texts": {text: `{"ratings": [{"rating": "1"}, {"rating": "0"}]}`, count: 2,
			want: []float64{1, 0}},
		"booleans": {text: `{"ratings": [{"rating": true}, {"rating": false}]}`, count: 2,
			want: []float64{1, 0}},
		"numbers": {text: `{"ratings": [{"rating": 1}, {"rating": 0}]}`, count: 2,
			want: []float64{1, 0}},
		"numbers with a fraction": {text: `{"ratings": [{"rating": 1.0}, {"rating": "0.0"}, {"rating": 0.5}]}`, count: 3,
			want: []float64{1, 0, none}},
		"full stops": {text: `{"ratings": [{"rating": "Yes."}, {"rating": "No."}]}`, count: 2, want: []float64{1, 0}},
		"numbers as texts": {
			text: `{"ratings": [{"criterion": "2", "rating": "No"}, {"criterion": "1", "rating": "Yes"}]}`, count: 2,
			want: []float64{1, 0}},
		"numbers that are words": {text: `{"ratings": [{"criterion": "first", "rating": "No"}]}`, count: 1, failed: true},
		"a fence":                {text: "```json\n" + yesNo + "\n```", count: 2, want: []float64{1, 0}},
		"words around it": {text: "Here you are:\n" + yesNo + "\nThat is all.", count: 2,
			want: []float64{1, 0}},
		"reasoning with braces": {text: "<think>The set {a} is {b}.</think>\n" + yesNo, count: 2,
			want: []float64{1, 0}},
		"control characters": {text: "{\"ratings\": [{\"rationale\": \"first\tline\nsecond\", \"rating\": " +
			"\"Yes\"}]}", count: 1, want: []float64{1}},
		"escapes in a rationale": {text: `{"ratings": [{"rationale": "he said \"no\\\" {", "rating": "Yes"}]}`,
			count: 1, want: []float64{1}},
		"a rating that is neither": {text: `{"ratings": [{"rating": "Partially"}, {"rating": "Yes"}]}`, count: 2,
			want: []float64{none, 1}},
		"a rating of another kind": {text: `{"ratings": [{"rating": ["Yes"]}, {"rating": null}, {}]}`, count: 3,
			want: []float64{none, none, none}},
		"numbered in another order": {
			text: `{"ratings": [{"criterion": 2, "rating": "No"}, {"criterion": 1, "rating": "Yes"}]}`, count: 2,
			want: []float64{1, 0}},
		"one is missing, and all are counted": {text: `{"ratings": [{"criterion": 2, "rating": "No"}]}`, count: 2,
			want: []float64{none, 0}},
		"one is missing": {text: `{"ratings": [{"rating": "Yes"}]}`, count: 2, failed: true},
		"one too many":   {text: yesNo, count: 1, failed: true},
		"a number twice": {
			text: `{"ratings": [{"criterion": 1, "rating": "Yes"}, {"criterion": 1, "rating": "No"}]}`, count: 2, failed: true},
		"a number beyond the list": {text: `{"ratings": [{"criterion": 3, "rating": "Yes"}]}`, count: 2, failed: true},
		"a number below 1":         {text: `{"ratings": [{"criterion": 0, "rating": "Yes"}]}`, count: 2, failed: true},
		"no list":                  {text: `{"rating": "Yes"}`, count: 1, failed: true},
		"the same twice": {text: `{"ratings": [{"rating": "No"}]} I repeat: {"ratings": [{"rating": "No"}]}`, count: 1,
			want: []float64{0}},
		"a quotation of the reply": {text: `{"ratings": [{"rating": "No"}]} Note: the response asks me to write ` +
			`{"ratings": [{"rating": "Yes"}]}.`, count: 1, failed: true},
		"a quotation before the judgement": {text: `It asks for {"ratings": [{"rating": "Yes"}]}, which I do not follow: ` +
			`{"ratings": [{"rating": "No"}]}`, count: 1, failed: true},
		"a quotation in a rationale": {text: `{"ratings": [{"rationale": "it has {\"ratings\": [{\"rating\": \"Yes\"}]}", ` +
			`"rating": "No"}]} That is all {I} say.`, count: 1, want: []float64{0}},
		"a part of an object before it": {text: `I begin with {"ratings": and then {"ratings": [{"rating": "No"}]} follows`,
			count: 1, want: []float64{0}},
		"an empty list":  {text: `{"ratings": []}`, count: 1, failed: true},
		"no object":      {text: "Yes", count: 1, failed: true},
		"half an object": {text: yesNo[:len(yesNo)-4], count: 2, failed: true},
		"nothing":        {text: "", count: 1, failed: true},
		"scores": {text: `{"ratings": [{"rating": 0.5}, {"rating": "1"}, {"rating": 0}]}`, scores: true,
			count: 3, want: []float64{0.5, 1, 0}},
		"scores out of range": {text: `{"ratings": [{"rating": 1.5}, {"rating": -1}, {"rating": "NaN"}, {"rating": "Yes"}]}`,
			scores: true, count: 4, want: []float64{none, none, none, none}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parse(tc.text, tc.count, tc.scores)
			if (err != nil) != tc.failed {
				t.Fatalf("parse = %v, %v, want failure %v", got, err, tc.failed)
			}
			if diff := cmp.Diff(tc.want, got.ratings, cmpopts.EquateNaNs()); err == nil && diff != "" {
				t.Errorf("parse (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(yesNo, 2, false)
	f.Add("```json\n{\"ratings\": [{\"criterion\": 1, \"rating\": 0.5}]}\n```", 1, true)
	f.Fuzz(func(t *testing.T, text string, count int, scores bool) {
		if count < 1 || count > 100 {
			return
		}
		found, err := parse(text, count, scores)
		if err != nil {
			return
		}
		ratings := found.ratings
		if len(ratings) != count {
			t.Errorf("%d ratings for %d criteria", len(ratings), count)
		}
		for _, rating := range ratings {
			if rating < 0 || rating > 1 {
				t.Errorf("a rating is %v", rating)
			}
		}
	})
}
