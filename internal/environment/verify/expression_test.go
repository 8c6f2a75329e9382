// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

func TestExpression(t *testing.T) {
	row := dataset.Row{ID: "r1", Prompt: "How many?", Answer: "12", Fields: map[string]any{
		"nums": []any{json.Number("3"), json.Number("4")}, "meta": map[string]any{"level": json.Number("2"),
			"tags": []any{"a"}},
		"ok": true, "none": nil, "answers": []any{"twelve", "12"},
	}}
	const reply = "First 1,234.5 and -2.\nThen <answer> 12 </answer> is \\boxed{\\frac{24}{2}}\nso it is 12."
	const data = "```json\n{\"city\": \"Paris\", \"people\": 2.1, \"list\": [1, 2]}\n```"
	cases := map[string]struct {
		expression, reply string
		want              float64
	}{
		"the last number":             {`reply.lastNumber() == double(row.answer) ? 1.0 : 0.0`, reply, 1},
		"no last number":              {`reply.lastNumber() == double(row.answer) ? 1.0 : 0.0`, "twelve", 0},
		"the length":                  {`size(reply.text) < 400 ? 1.0 : 0.0`, reply, 1},
		"a bool":                      {`reply.text.contains('Then')`, reply, 1},
		"an int":                      {`size(reply.numbers())`, "1 2 3", 3},
		"the first number":            {`reply.numbers()[0]`, reply, 1234.5},
		"a negative number":           {`reply.numbers()[1]`, reply, -2},
		"a tag":                       {`reply.tag('answer') == row.answer`, reply, 1},
		"no tag":                      {`reply.tag('reason') == ''`, reply, 1},
		"the box":                     {`reply.boxed() == '\\frac{24}{2}'`, reply, 1},
		"equal mathematics":           {`reply.boxed().mathEquals(row.answer)`, reply, 1},
		"the last line":               {`reply.lastLine().startsWith('so')`, reply, 1},
		"a function of a text":        {`reply.lastLine().lastNumber()`, reply, 12},
		"a field of JSON":             {`reply.json().city == 'Paris'`, data, 1},
		"a number of JSON":            {`reply.json().people * 2.0`, data, 4.2},
		"a list of JSON":              {`size(reply.json().list)`, data, 2},
		"JSON or not":                 {`reply.isJSON()`, reply, 0},
		"a field without JSON":        {`has(reply.json().city) ? 1.0 : 0.25`, reply, 0.25},
		"an optional field":           {`reply.json().?city.orValue('none') == 'none'`, reply, 1},
		"fields of the row":           {`row.nums[0] + row.nums[1]`, reply, 7},
		"a nested field":              {`row.meta.level * 2.0 + (row.meta.tags[0] == 'a' ? 1.0 : 0.0)`, reply, 5},
		"a number compared with ints": {`row.meta.level == 2 && row.nums.exists(n, n > 3)`, reply, 1},
		"several answers":             {`row.answers.exists(a, reply.text.contains(a))`, reply, 1},
		"a field that may be missing": {`has(row.rubrics) ? 1.0 : 0.5`, reply, 0.5},
		"id and prompt":               {`row.id == 'r1' && row.prompt == 'How many?'`, reply, 1},
		"null and bool":               {`row.none == null && row.ok`, reply, 1},
		"the episode": {
			`double(episode.turns) + 10.0 * double(episode.toolCalls) + 100.0 * double(episode.sampledTokens)`, reply, 903},
		"string functions":       {`reply.text.lowerAscii().trim().split('\n').size()`, reply, 3},
		"math functions":         {`math.greatest(0.0, 1.0 - math.abs(reply.lastNumber() - 11.0) / 2.0)`, reply, 0.5},
		"a regular expression":   {`reply.text.matches('(?m)^so it is [0-9]+')`, reply, 1},
		"truncated or malformed": {`reply.truncated || reply.malformed`, reply, 0},
		"an unsigned number":     {`uint(3)`, reply, 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			grader, err := NewExpression(tc.expression)
			if err != nil {
				t.Fatal(err)
			}
			given := says(tc.reply)
			given.Usage = environment.Usage{Turns: 3, ToolCalls: 10, SampledTokens: 8}
			got, err := grader.Grade(t.Context(), row, given)
			if err != nil || got.Reward != tc.want {
				t.Errorf("%s = %v, %v, want %v", tc.expression, got.Reward, err, tc.want)
			}
		})
	}
}

// TestExpressionErrors checks that errors have the position and a repair.
func TestExpressionErrors(t *testing.T) {
	for expression, want := range map[string][]string{
		`reply.lastNumber( ==`:           {"line 1, column 19", "Syntax error"},
		"1.0 +\n  replyy.lastNumber()":   {"line 2, column 3", "undeclared reference to 'replyy'", "row, reply and episode"},
		`reply.txt == 'a'`:               {"line 1, column 6", "undefined field 'txt'"},
		`reply.text + 1.0`:               {"line 1, column 12", "no matching overload"},
		`reply.text`:                     {"type string", "1.0 : 0.0"},
		`reply`:                          {"is no reward"},
		`episode.turn`:                   {"undefined field 'turn'"},
		`a + b + c + d + e`:              {"and 2 more"},
		`reply.tag()`:                    {"no matching overload"},
		`"${secret}".matches(reply.tag)`: {"line 1"},
	} {
		grader, err := NewExpression(expression)
		if err == nil {
			t.Errorf("NewExpression(%q) = %v", expression, grader)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("NewExpression(%q): err = %v, want %q", expression, err, part)
			}
		}
		if strings.Contains(err.Error(), "\n") || len(err.Error()) > 600 {
			t.Errorf("NewExpression(%q): err = %q, want one short line", expression, err)
		}
	}
}

func TestExpressionEndsWithItsContext(t *testing.T) {
	grader := must(NewExpression(`reply.numbers().all(a, reply.numbers().all(b, a + b >= 0.0))`))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := grader.Grade(ctx, answer("1"), says(strings.Repeat("7 ", 2000))); !errors.Is(err, context.Canceled) {
		t.Errorf("Grade: err = %v, want the context's error", err)
	}
}

func FuzzExpression(f *testing.F) {
	f.Add("It is 1,234.5 or -3.", `{"a": [1, {"b": null}]}`)
	f.Add("```json\n{\"a\": 1e999}\n```", "<answer>\n7</answer>")
	f.Add(`\boxed{\frac{1}{2}}`, "0.5")
	grader := must(
		NewExpression(`(reply.lastNumber() == row.answer.lastNumber() ? 1.0 : 0.0) + double(size(reply.numbers())) +
		(reply.boxed().mathEquals(row.answer) ? 1.0 : 0.0) + (has(
			reply.json().a) ? 1.0 : 0.0) + double(size(reply.tag('answer'))) +
		double(size(reply.lastLine())) + (row.answer.isJSON() ? 1.0 : 0.0)`))
	f.Fuzz(func(t *testing.T, text, other string) {
		if other == "" {
			return
		}
		first, err := grader.Grade(t.Context(), answer(other), says(text))
		var fault *environment.Fault
		if err != nil && !errors.As(err, &fault) {
			t.Fatalf("Grade: err = %v, which is not a fault", err)
		}
		if second, _ := grader.Grade(t.Context(), answer(other), says(text)); second.Reward != first.Reward {
			t.Errorf("the same reply earns %v, then %v", first.Reward, second.Reward)
		}
	})
}

func FuzzGraders(f *testing.F) {
	f.Add("#### 1,234", "#### 1234.0")
	f.Add("the 1,234 and 5", "<answer>5</answer>")
	graders := []Grader{
		ExactMatch{}, ExactMatch{Part: settings.PartText, Normalize: []settings.Normalization{settings.NormalizeCase,
			settings.NormalizeArticles, settings.NormalizePunctuation}},
		ExactMatch{Part: settings.PartLastLine}, ExactMatch{Part: settings.PartAnswerTag}, GSM8K{}, GSM8K{Strict: true},
		Math{},
		must(NewRegex(`(?P<answer>[0-9]+)`)), must(NewJSONSchema([]byte(`{"type": "object"}`))),
	}
	f.Fuzz(func(t *testing.T, text, solution string) {
		for _, grader := range graders {
			score, err := grader.Grade(t.Context(), answer(solution), says(text))
			if err == nil && score.Reward != 0 && score.Reward != 1 {
				t.Errorf("%T: the reward is %v", grader, score.Reward)
			}
			right, wrong, err := Answers(grader, answer(solution))
			if err != nil {
				continue
			}
			best, _ := grader.Grade(t.Context(), answer(solution), says(right))
			worst, _ := grader.Grade(t.Context(), answer(solution), says(wrong))
			if best.Reward <= worst.Reward {
				t.Errorf("%+v: for %q the right answer %q earns %v and %q earns %v", grader, solution, right, best.Reward, wrong,
					worst.Reward)
			}
		}
	})
}

// TestDocumentedExpressions grades four replies by each example of the documentation: a right one, a wrong one, the
// probe's, and an empty one. None of them leads to a fault.
func TestDocumentedExpressions(t *testing.T) {
	page, err := os.ReadFile("../../../docs/rewards.md")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../../../docs/data.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile(`expression: '([^'\n]+)'`).FindAllStringSubmatch(string(page)+string(data), -1)
	number, list := answer("42"), dataset.Row{Fields: map[string]any{"answers": []any{"42", "forty-two"}}}
	right := says(`It is <answer>42</answer>, or {"city": "42"}: 42`)
	right.Usage.Turns = 1
	for _, example := range examples {
		expression, err := NewExpression(example[1])
		if err != nil {
			t.Errorf("%s: %v", example[1], err)
			continue
		}
		row := number
		if strings.Contains(example[1], "row.answers.exists") {
			row = list
		}
		for _, reply := range []environment.Reply{right, says("41"), says("I do not know."), says("")} {
			reply.Usage.Turns = 1
			score, err := expression.Grade(t.Context(), row, reply)
			if err != nil || score.Reward < 0 || score.Reward > 1 {
				t.Errorf("%s: the reward is %v for %q: %v", example[1], score.Reward, reply.Message.Content, err)
			}
		}
		if strings.Contains(example[1], ".json()") {
			continue // its right reply is an object alone
		}
		if score, err := expression.Grade(t.Context(), row, right); err != nil || score.Reward != 1 {
			t.Errorf("%s: the reward is %v for the right reply (%v), want 1", example[1], score.Reward, err)
		}
	}
	if len(examples) < 7 {
		t.Errorf("the pages have %d examples", len(examples))
	}
	for _, f := range textFunctions {
		if !strings.Contains(string(page), "`"+f.name+"(") {
			t.Errorf("the page lacks the function %s", f.name)
		}
	}
}
