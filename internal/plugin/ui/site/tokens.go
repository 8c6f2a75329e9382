// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// The figures by which tokens are coloured.
const (
	byLogprob   = "logprob"
	byRatio     = "ratio"
	byAdvantage = "advantage"
)

var colours = []option{{Value: "", Text: "messages"}, {Value: byLogprob, Text: "tokens by log-probability"},
	{Value: byRatio, Text: "tokens by log-ratio of trainer and sampler"},
	{Value: byAdvantage, Text: "tokens by advantage"}}

// mostTokens limits the coloured tokens of an episode.
const mostTokens = 8000

// tokenRow is a segment whose tokens are shown.
type tokenRow struct {
	Title  string
	Tokens []token
	// Cut says how many tokens are left out.
	Cut int
}

// token is a token that is shown. Title has its figures.
type token struct{ Text, Class, Title string }

// tokenizers keeps the tokenizers of models.
type tokenizers struct {
	load PiecesFunc

	mu    sync.Mutex
	known map[string]func([]int32) []string
}

func newTokenizers(load PiecesFunc) *tokenizers {
	return &tokenizers{load: load, known: map[string]func([]int32) []string{}}
}

func (t *tokenizers) of(ctx context.Context, model string) (func([]int32) []string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if pieces := t.known[model]; pieces != nil {
		return pieces, nil
	}
	pieces, err := t.load(ctx, model)
	if err == nil {
		t.known[model] = pieces
	}
	return pieces, err
}

// colour adds the tokens of the episodes that the page shows, if the request asks for them.
func (s *Site) colour(r *http.Request, page *conversationsPage, run *v1alpha1.TrainingRun) {
	for _, o := range colours {
		o.Chosen = o.Value == page.Filter.Colour
		page.Colours = append(page.Colours, o)
	}
	if page.Filter.Colour == "" || page.Group == nil {
		return
	}
	pieces, err := s.tokens.of(r.Context(), run.Spec.Model.Name)
	if err != nil {
		page.Problem = "Tokens are shown by their numbers, since there is no tokenizer of " + run.Spec.Model.Name + ": " +
			err.Error()
		pieces = numbers
	}
	for i := range page.Group.Episodes {
		room := mostTokens
		for j := range page.Group.Episodes[i].Shown {
			c := &page.Group.Episodes[i].Shown[j]
			c.Tokens, room = rowsOf(c.Segments, page.Filter.Colour, pieces, room)
			if len(c.Tokens) == 0 {
				c.NoText = "The record has no tokens of this conversation."
			}
		}
	}
}

// numbers shows tokens by their numbers.
func numbers(ids []int32) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = fmt.Sprint(id, " ")
	}
	return all
}

// rowsOf returns the tokens of segments, and how much room is left.
func rowsOf(segments []transcript.Segment, by string, pieces func([]int32) []string, room int) ([]tokenRow, int) {
	var rows []tokenRow
	for i, s := range segments {
		if len(s.IDs) == 0 {
			continue
		}
		shown := s.IDs[:min(len(s.IDs), room)]
		room -= len(shown)
		row := tokenRow{Title: fmt.Sprintf("segment %d: %d tokens, %d sampled, mean log-probability %.3g", i+1, s.Tokens,
			s.Sampled, s.Logprob), Cut: len(s.IDs) - len(shown)}
		place := map[int]int{}
		for n, at := range s.Actions {
			place[at] = n
		}
		for at, text := range pieces(shown) {
			one := token{Text: text}
			if n, sampled := place[at]; sampled {
				one.Class, one.Title = figuresOf(s, n, by)
			}
			row.Tokens = append(row.Tokens, one)
		}
		rows = append(rows, row)
	}
	return rows, room
}

// figuresOf returns the class and the title of the nth sampled token of a segment.
func figuresOf(s transcript.Segment, n int, by string) (class, title string) {
	title, class = "sampled", "t-none"
	if n < len(s.Logprobs) {
		lp := float64(s.Logprobs[n])
		title = fmt.Sprintf("log-probability %.4g", lp)
		if by == byLogprob {
			class = level("p", -lp, 0.05, 0.3, 1, 2.5, 5)
		}
	}
	if n < len(s.TrainerLogprobs) && n < len(s.Logprobs) {
		ratio := float64(s.TrainerLogprobs[n]) - float64(s.Logprobs[n])
		title += fmt.Sprintf(", log-ratio of trainer and sampler %+.4g", ratio)
		if by == byRatio {
			class = signed(ratio, 0.01, 0.05, 0.2, 1)
		}
	}
	if n < len(s.Advantages) {
		a := float64(s.Advantages[n])
		title += fmt.Sprintf(", advantage %+.4g", a)
		if by == byAdvantage {
			class = signed(a, 0.001, 0.25, 0.75, 1.5)
		}
	}
	return class, title
}

// signed returns the class of a figure around 0.
func signed(v float64, bounds ...float64) string {
	if v < 0 {
		return level("n", -v, bounds...)
	}
	return level("q", v, bounds...)
}

// level returns the class of a figure by the bounds below it.
func level(prefix string, v float64, bounds ...float64) string {
	n := 0
	for _, bound := range bounds {
		if v >= bound || math.IsNaN(v) {
			n++
		}
	}
	return fmt.Sprintf("t-%s%d", prefix, n)
}

func sortedNames(values map[string]float64) []string { return slices.Sorted(maps.Keys(values)) }
