// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

func TestExactMatch(t *testing.T) {
	cases := map[string]struct {
		answer, reply string
		truncated     bool
		reward        float64
		metric        string
	}{
		"the number alone":                  {answer: "12", reply: "12", reward: 1, metric: MetricCorrect},
		"the number among words":            {answer: "12", reply: "Well, 12 it is.", reward: 1, metric: MetricCorrect},
		"the last number is right":          {answer: "12", reply: "7 + 5 = 12", reward: 1, metric: MetricCorrect},
		"only the first number is right":    {answer: "12", reply: "12, or 13", reward: 0, metric: MetricWrong},
		"a comma within the number":         {answer: "1998", reply: "1,998", reward: 1, metric: MetricCorrect},
		"leading zeros":                     {answer: "12", reply: "0012", reward: 1, metric: MetricCorrect},
		"another sign":                      {answer: "12", reply: "-12", reward: 0, metric: MetricWrong},
		"a negative answer":                 {answer: "-12", reply: "it is -012", reward: 1, metric: MetricCorrect},
		"zero with a sign":                  {answer: "0", reply: "-0", reward: 1, metric: MetricCorrect},
		"a longer number":                   {answer: "12", reply: "121", reward: 0, metric: MetricWrong},
		"a minus between numbers is a sign": {answer: "4", reply: "9-4", reward: 0, metric: MetricWrong},
		"a fraction whose digits end so":    {answer: "5", reply: "The answer is 4.5", reward: 0, metric: MetricWrong},
		"a fraction below 1":                {answer: "5", reply: "The answer is 0.5", reward: 0, metric: MetricWrong},
		"a fraction without a zero":         {answer: "5", reply: "The answer is .5", reward: 0, metric: MetricWrong},
		"a fraction of zeros":               {answer: "5", reply: "The answer is 5.0", reward: 1, metric: MetricCorrect},
		"a fraction of zero":                {answer: "0", reply: "-0.0", reward: 1, metric: MetricCorrect},
		"a point at the end":                {answer: "5", reply: "The answer is 5.", reward: 1, metric: MetricCorrect},
		"a quotient":                        {answer: "7", reply: "The answer is 3/7", reward: 0, metric: MetricWrong},
		"a quotient in LaTeX": {answer: "7", reply: `The answer is \frac{3}{7}.`, reward: 0,
			metric: MetricWrong},
		"a list without spaces":   {answer: "12", reply: "1,2", reward: 0, metric: MetricWrong},
		"the last of a list":      {answer: "2", reply: "1,2", reward: 1, metric: MetricCorrect},
		"a negative list":         {answer: "2", reply: "-1,2", reward: 1, metric: MetricCorrect},
		"groups with a sign":      {answer: "-1998", reply: "-1,998", reward: 1, metric: MetricCorrect},
		"groups of other lengths": {answer: "12345", reply: "1,2345", reward: 0, metric: MetricWrong},
		"no number":               {answer: "12", reply: "twelve", reward: 0, metric: MetricNoAnswer},
		"an empty reply":          {answer: "12", reply: "", reward: 0, metric: MetricNoAnswer},
		"a truncated reply with the number": {answer: "12", reply: "12", truncated: true, reward: 0,
			metric: MetricTruncated},
		"a truncated reply without a number": {answer: "12", reply: "I would", truncated: true, reward: 0,
			metric: MetricTruncated},
		"a number beyond 64 bits": {answer: "123456789012345678901234567890", reply: "123456789012345678901234567890",
			reward: 1, metric: MetricCorrect},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reply := environment.Reply{Message: chat.Message{Content: tc.reply}, Truncated: tc.truncated}
			want := Score{Reward: tc.reward, Metrics: map[string]float64{MetricCorrect: 0, MetricWrong: 0, MetricNoAnswer: 0,
				MetricTruncated: 0, MetricAnswered: 0}}
			want.Metrics[tc.metric] = 1
			if tc.metric == MetricCorrect || tc.metric == MetricWrong {
				want.Metrics[MetricAnswered] = 1
			}
			got, err := ExactMatch{}.Grade(t.Context(), dataset.Row{Answer: tc.answer}, reply)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("Grade: err %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestExactMatchAnswers(t *testing.T) {
	for _, answer := range []string{"0", "7", "198", "-3"} {
		row := dataset.Row{Answer: answer}
		right, wrong, err := Answers(ExactMatch{}, row)
		if err != nil {
			t.Fatalf("Answers(%q): %v", answer, err)
		}
		for text, want := range map[string]float64{right: 1, wrong: 0} {
			reply := environment.Reply{Message: chat.Message{Content: text}}
			if got, err := (ExactMatch{}).Grade(t.Context(), row, reply); got.Reward != want || err != nil {
				t.Errorf("with the answer %q the reply %q earns %v, %v, want %v", answer, text, got.Reward, err, want)
			}
		}
	}
}

func TestAnswersAreNotKnown(t *testing.T) {
	if _, _, err := Answers(ExactMatch{}, dataset.Row{}); !errors.Is(err, environment.ErrNoAnswers) {
		t.Errorf("Answers of a row without an answer: err = %v, want ErrNoAnswers", err)
	}
	// The wrong answer of Math is empty, like the answer of this row.
	if right, wrong, err := Answers(Math{}, dataset.Row{}); !errors.Is(err, environment.ErrNoAnswers) {
		t.Errorf("Answers of math for a row without an answer = %q, %q, %v, want ErrNoAnswers", right, wrong, err)
	}
}
