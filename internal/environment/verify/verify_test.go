// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"strings"
	"testing"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

// must returns the grader, and panics if it could not be built.
func must[G Grader](grader G, err error) Grader {
	if err != nil {
		panic(err)
	}
	return grader
}

func says(text string) environment.Reply {
	return environment.Reply{Message: chat.Message{Role: "assistant", Content: text}}
}

func cut(text string) environment.Reply {
	reply := says(text)
	reply.Truncated = true
	return reply
}

func answer(text string) dataset.Row { return dataset.NewRow("What is it?", text) }

// numbersRow is a row of a Countdown data set.
func numbersRow(target string, nums ...string) dataset.Row {
	var list []any
	for _, n := range nums {
		list = append(list, json.Number(n))
	}
	return dataset.Row{Fields: map[string]any{"nums": list, "target": json.Number(target)}}
}

func TestGrade(t *testing.T) {
	const object = `{"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}, "people": {"type": "integer"}}}`
	cases := map[string]struct {
		grader Grader
		row    dataset.Row
		reply  environment.Reply
		reward float64
		// metric must be 1.
		metric string
	}{
		"the whole text": {ExactMatch{Part: settings.PartText}, answer("Paris"), says(" Paris\n"), 1,
			MetricCorrect},
		"more than the text": {ExactMatch{Part: settings.PartText}, answer("Paris"), says("It is Paris"), 0,
			MetricWrong},
		"the whole text in other case": {ExactMatch{Part: settings.PartText}, answer("Paris"), says("paris"), 0,
			MetricWrong},
		"case is ignored": {ExactMatch{Part: settings.PartText,
			Normalize: []settings.Normalization{settings.NormalizeCase}}, answer("Paris"), says("PARIS"), 1, MetricCorrect},
		"space is ignored": {ExactMatch{Part: settings.PartText,
			Normalize: []settings.Normalization{settings.NormalizeSpace}}, answer("New York"), says("New \n York"), 1,
			MetricCorrect},
		"space counts": {ExactMatch{Part: settings.PartText}, answer("New York"), says("New  York"), 0,
			MetricWrong},
		"punctuation and articles": {ExactMatch{Part: settings.PartText,
			Normalize: []settings.Normalization{settings.NormalizeCase, settings.NormalizePunctuation,
				settings.NormalizeArticles}}, answer("The Cat's hat"), says("a cats hat."), 1, MetricCorrect},
		"the last line": {ExactMatch{Part: settings.PartLastLine}, answer("B"), says("I think\n\nB\n "),
			1, MetricCorrect},
		"an answer tag": {ExactMatch{Part: settings.PartAnswerTag}, answer("B"),
			says("<answer>A</answer> <ANSWER> B </ANSWER>"), 1, MetricCorrect},
		"no answer tag": {ExactMatch{Part: settings.PartAnswerTag}, answer("B"), says("B"), 0,
			MetricNoAnswer},
		"an answer with commas": {ExactMatch{}, answer("1,998"), says("1998"), 1, MetricCorrect},
		"an expression matches": {must(NewRegex(`(?i)\bsorry\b`)), answer(""), says("I am Sorry."), 1,
			MetricCorrect},
		"an expression does not match": {must(NewRegex(`^sorry$`)), answer(""), says("sorry!"), 0, MetricNoAnswer},
		"an expression's last answer": {must(NewRegex(`ANSWER: (?P<answer>\w+)`)), answer("B"),
			says("ANSWER: A, no, ANSWER: B"), 1, MetricCorrect},
		"an expression's wrong answer": {must(NewRegex(`ANSWER: (?P<answer>\w+)`)), answer("B"), says("ANSWER: A"), 0,
			MetricWrong},
		"an expression and a cut reply": {must(NewRegex(`A`)), answer(""), cut("A"), 0, MetricTruncated},
		"JSON that the schema accepts": {must(NewJSONSchema([]byte(object))), answer(""),
			says(`{"city": "Paris", "people": 2100000}`), 1, MetricValid},
		"JSON in a fence": {must(NewJSONSchema([]byte(object))), answer(""),
			says("Here:\n```json\n{\"city\": \"Paris\"}\n```\nDone."), 1, MetricValid},
		"JSON that it rejects": {must(NewJSONSchema([]byte(object))), answer(""), says(`{"city": 1}`), 0,
			MetricInvalid},
		"no JSON": {must(NewJSONSchema([]byte(object))), answer(""), says(`city: Paris`), 0,
			MetricNoJSON},
		"JSON twice": {must(NewJSONSchema([]byte(object))), answer(""),
			says(`{"city": "a"} {"city": "b"}`), 0, MetricNoJSON},
		"JSON that was cut": {must(NewJSONSchema([]byte(object))), answer(""), cut(`{"city": "Paris"}`), 0,
			MetricTruncated},
		"a boxed fraction": {Math{}, answer(`\frac{1}{2}`), says(`So it is \boxed{0.5}.`), 1,
			MetricCorrect},
		"a solution with a box":          {Math{}, answer(`Thus $\boxed{12}$.`), says(`\boxed{12.0}`), 1, MetricCorrect},
		"no box":                         {Math{}, answer("12"), says("12"), 0, MetricNoAnswer},
		"another boxed number":           {Math{}, answer("12"), says(`\boxed{13}`), 0, MetricWrong},
		"a boxed answer and a cut reply": {Math{}, answer("12"), cut(`\boxed{12} but`), 0, MetricTruncated},
		"the mark of GSM8K": {GSM8K{}, answer("3 + 4 = <<3+4=7>>7\n#### 1,007"), says("#### 1007"), 1,
			MetricCorrect},
		"a decimal of the same value": {GSM8K{}, answer("#### 18"), says("The answer is $18.00."), 1, MetricCorrect},
		"a box instead of the mark": {GSM8K{}, answer("#### 18"), says(`\boxed{18} after 3 steps`), 1,
			MetricCorrect},
		"the last number":     {GSM8K{}, answer("18"), says("3 steps give 18"), 1, MetricCorrect},
		"a wrong last number": {GSM8K{}, answer("18"), says("18 after 3 steps"), 0, MetricWrong},
		"no number":           {GSM8K{}, answer("18"), says("eighteen"), 0, MetricNoAnswer},
		"strict with the mark": {GSM8K{Strict: true}, answer("#### 1,018"), says("#### 1,018 dollars"), 1,
			MetricCorrect},
		"strict without the mark": {GSM8K{Strict: true}, answer("#### 18"), says("18"), 0, MetricNoAnswer},
		"strict compares text":    {GSM8K{Strict: true}, answer("#### 18"), says("#### 18."), 0, MetricWrong},
		"strict takes the first mark": {GSM8K{Strict: true}, answer("#### 18"), says("#### 17 #### 18"), 0,
			MetricWrong},
		"a countdown": {Countdown{Strict: true}, numbersRow("98", "44", "19", "35"),
			says("<answer>44+19+35</answer>"), 1, MetricCorrect},
		"a countdown with a power": {Countdown{Strict: true}, numbersRow("8", "2", "3"),
			says("<answer>2**3</answer>"), 0, MetricWrong},
		"a countdown with a power as rLLM": {Countdown{}, numbersRow("8", "2", "3"), says("<answer>2**3</answer>"), 1,
			MetricCorrect},
		"a cut countdown": {Countdown{Strict: true}, numbersRow("5", "2", "3"),
			cut("<answer>2+3</answer> or"), 0, MetricTruncated},
		"a cut countdown as rLLM": {Countdown{}, numbersRow("5", "2", "3"), cut("<answer>2+3</answer> or"), 1,
			MetricCorrect},
		"a cut countdown without an answer": {Countdown{}, numbersRow("5", "2", "3"), cut("<answer>2+3"), 0,
			MetricTruncated},
		"a countdown whose columns are texts": {Countdown{Strict: true},
			dataset.Row{Fields: map[string]any{"nums": []any{"2", "3"}, "target": "5"}}, says("<answer>2+3</answer>"), 1,
			MetricCorrect},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.grader.Grade(t.Context(), tc.row, tc.reply)
			if err != nil || got.Reward != tc.reward || got.Metrics[tc.metric] != 1 {
				t.Errorf("Grade = %+v, %v, want the reward %v and %s", got, err, tc.reward, tc.metric)
			}
			for _, other := range []string{MetricCorrect, MetricWrong, MetricNoAnswer, MetricTruncated, MetricValid,
				MetricInvalid, MetricNoJSON} {
				if other != tc.metric && got.Metrics[other] != 0 {
					t.Errorf("%s is %v beside %s, want 0: an episode has one outcome", other, got.Metrics[other], tc.metric)
				}
			}
		})
	}
}

func TestCountdownScoreMetric(t *testing.T) {
	for text, want := range map[string]float64{"": 0, "<answer>2-3</answer>": 0.1, "<answer>2+3</answer>": 1} {
		for _, strict := range []bool{false, true} {
			got, err := Countdown{Strict: strict}.Grade(t.Context(), numbersRow("5", "2", "3"), says(text))
			if err != nil || got.Metrics[MetricScore] != want {
				t.Errorf("strict %v: %q has the score %v, %v, want %v", strict, text, got.Metrics[MetricScore], err, want)
			}
		}
	}
}

// TestRowsThatCannotBeGraded checks that such a row leads to a permanent fault that names the repair, and not to a
// reward.
func TestRowsThatCannotBeGraded(t *testing.T) {
	cases := map[string]struct {
		grader Grader
		row    dataset.Row
		names  string
	}{
		"no answer":                        {ExactMatch{}, answer(""), "dataset.fields"},
		"an answer that is not an integer": {ExactMatch{}, answer("Paris"), "exactMatch.part"},
		"no answer for a group":            {must(NewRegex(`(?P<answer>.)`)), answer(""), "dataset.fields"},
		"no answer for math":               {Math{}, answer(""), "dataset.fields"},
		"no answer for GSM8K":              {GSM8K{}, answer(""), "dataset.fields"},
		"two numbers without the mark":     {GSM8K{}, answer("3 and 4"), "####"},
		"no numbers": {Countdown{}, dataset.Row{Fields: map[string]any{"target": json.Number("3")}},
			"nums"},
		"a number that is a bool": {Countdown{},
			dataset.Row{Fields: map[string]any{"nums": []any{true}, "target": json.Number("3")}}, "nums"},
		"a number below 0": {Countdown{}, numbersRow("3", "-3"), "nums"},
		"no target": {Countdown{}, dataset.Row{Fields: map[string]any{"nums": []any{json.Number("3")}}},
			"target"},
		"a target that is enormous":       {Countdown{}, numbersRow("1e999999999", "3"), "target"},
		"a field that the row lacks":      {must(NewExpression("double(row.answer)")), answer(""), "answer"},
		"an expression that divides by 0": {must(NewExpression("1 / episode.turns")), answer("1"), "zero"},
		"an expression that gives NaN":    {must(NewExpression("reply.lastNumber()")), answer("1"), "CONDITION"},
		"an expression that gives a text": {must(NewExpression("row.answer")), answer("1"), "string"},
		"a leaf that fails":               {Weighted{{"a", 1, Math{}}}, answer(""), "reward a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			score, err := tc.grader.Grade(t.Context(), tc.row, says("none"))
			if err == nil {
				t.Fatalf("Grade = %+v, want a fault", score)
			}
			if fault := environment.AsFault(err); !fault.Permanent || fault.Kind != environment.EnvironmentFault ||
				!strings.Contains(err.Error(), tc.names) {
				t.Errorf("Grade: err = %v, want a permanent fault that names %q", err, tc.names)
			}
		})
	}
}

// TestAnswersEarnMoreThanWrongOnes grades the right and wrong answers that the probe plays.
func TestAnswersEarnMoreThanWrongOnes(t *testing.T) {
	cases := map[string]struct {
		grader Grader
		row    dataset.Row
		known  bool
	}{
		"text":                    {ExactMatch{Part: settings.PartText}, answer("Paris"), true},
		"last line":               {ExactMatch{Part: settings.PartLastLine}, answer("Paris"), true},
		"answer tag":              {ExactMatch{Part: settings.PartAnswerTag}, answer("Paris"), true},
		"math":                    {Math{}, answer(`\frac12`), true},
		"math with a solution":    {Math{}, answer(`It is \boxed{x^2}.`), true},
		"GSM8K":                   {GSM8K{}, answer("a\n#### 1,200"), true},
		"strict GSM8K":            {GSM8K{Strict: true}, answer("a\n#### 1,200"), true},
		"countdown":               {Countdown{}, numbersRow("24", "3", "3", "8", "8"), true},
		"strict countdown":        {Countdown{Strict: true}, numbersRow("24", "3", "3", "8", "8"), true},
		"countdown without a way": {Countdown{}, numbersRow("100", "1", "1"), false},
		"an expression":           {must(NewExpression("1.0")), answer("1"), false},
		"a pattern":               {must(NewRegex("1")), answer("1"), false},
		"a heavy leaf that knows": {Weighted{{"a", 1, Math{}}, {"b", 0.1, must(NewExpression("size(reply.text) < 4"))}},
			answer("12"), true},
		"a light leaf that knows": {Weighted{{"a", 0.1, Math{}}, {"b", 1, must(NewExpression("size(reply.text) < 9"))}},
			answer("12"), false},
		"a penalty that knows":      {Weighted{{"a", -1, Math{}}}, answer("12"), false},
		"two leaves of equal force": {Weighted{{"a", 1, Math{}}, {"b", 1, GSM8K{}}}, answer("12"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			right, wrong, err := Answers(tc.grader, tc.row)
			if (err == nil) != tc.known {
				t.Fatalf("Answers = %q, %q, %v, want known %v", right, wrong, err, tc.known)
			}
			if !tc.known {
				return
			}
			best, err := tc.grader.Grade(t.Context(), tc.row, says(right))
			if err != nil {
				t.Fatal(err)
			}
			worst, err := tc.grader.Grade(t.Context(), tc.row, says(wrong))
			if err != nil || best.Reward <= worst.Reward {
				t.Errorf("%q earns %v and %q earns %v, %v", right, best.Reward, wrong, worst.Reward, err)
			}
		})
	}
}
