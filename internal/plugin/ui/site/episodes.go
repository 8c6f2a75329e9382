// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// filter selects the part of a transcript that a request asks to see.
type filter struct {
	Evaluation                bool
	Least, Greatest           string
	Outcome, Stop, Role, Text string
	Colour, Asked             string

	step, slot int64
	hasSlot    bool
	episode    int
}

func filterOf(r *http.Request) filter {
	query := r.URL.Query()
	f := filter{Evaluation: query.Get("evaluation") != "", Least: query.Get("least"), Greatest: query.Get("greatest"),
		Outcome: query.Get("outcome"), Stop: query.Get("stop"), Role: query.Get("role"), Text: query.Get("q"),
		Colour: query.Get("colour"), Asked: query.Get("step"), step: newest, episode: -1}
	if n, err := strconv.ParseInt(f.Asked, 10, 64); err == nil && n >= 0 {
		f.step = n
	}
	if n, err := strconv.ParseInt(query.Get("slot"), 10, 64); err == nil {
		f.slot, f.hasSlot = n, true
	}
	if n, err := strconv.Atoi(query.Get("episode")); err == nil {
		f.episode = n
	}
	return f
}

func (f filter) isSet() bool { return f.Least+f.Greatest+f.Outcome+f.Stop+f.Role+f.Text != "" }

// episodes returns the episodes of a group that fit the filter.
func (f filter) episodes(g transcript.Group) []transcript.Episode {
	var all []transcript.Episode
	for _, e := range g.Episodes {
		if f.fits(e) {
			all = append(all, e)
		}
	}
	return all
}

func (f filter) fits(e transcript.Episode) bool {
	if least, err := strconv.ParseFloat(f.Least, 64); err == nil && e.Reward < least {
		return false
	}
	if greatest, err := strconv.ParseFloat(f.Greatest, 64); err == nil && e.Reward > greatest {
		return false
	}
	if f.Outcome != "" && e.Outcome != f.Outcome || f.Stop != "" && e.StopReason != f.Stop {
		return false
	}
	has := func(c transcript.Conversation) bool {
		return (f.Role == "" || c.Role == f.Role) && (f.Text == "" || mentions(c, strings.ToLower(f.Text)))
	}
	return f.Role+f.Text == "" || slices.ContainsFunc(e.Conversations, has)
}

// mentions reports whether a conversation has a text, in lower case.
func mentions(c transcript.Conversation, text string) bool {
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	return slices.ContainsFunc(c.Messages, func(m transcript.Message) bool {
		return has(m.Text) || has(m.Thinking) || slices.ContainsFunc(m.Calls, func(call transcript.Call) bool {
			return has(call.Name) || has(call.Arguments)
		})
	})
}

// groupView is a group whose episodes are shown.
type groupView struct {
	Title, Note, Missing string
	Episodes             []episodeView
	// Hidden counts the episodes that do not fit the filter, or have no room.
	Hidden int
	Single bool
	Whole  string
}

// episodeView is an episode that is shown.
type episodeView struct {
	transcript.Episode

	Address, Class, Advantage string
	Figures                   []figure
	Shown                     []conversationView
}

// conversationView is a conversation that is shown.
type conversationView struct {
	transcript.Conversation

	Note string
	// Broken explains why the conversation is a branch of its own.
	Broken string
	Shown  []messageView
	Tokens []tokenRow
	NoText string
}

// messageView is a message that is shown.
type messageView struct {
	transcript.Message

	// Broken explains why the reply does not continue the tokens before it.
	Broken         string
	Body, Thoughts passage
	Called         []callView
	Folded         bool
}

// passage is a text, or its beginning with the address of its rest.
type passage struct {
	excerpt

	More string
}

// callView is a call of a tool that is shown.
type callView struct {
	Name      string
	Arguments passage
}

// view returns the episodes of a group as the page shows them.
func (f filter) view(r *http.Request, step transcript.Step, g transcript.Group) *groupView {
	out := &groupView{Title: fmt.Sprintf("Slot %d", g.Slot), Missing: g.Missing, Single: f.episode >= 0,
		Whole: slotAddress(r, g.Slot)}
	out.Note = strings.Join(slices.DeleteFunc([]string{g.Environment, splitOf(g), g.Outcome, g.Reason},
		func(s string) bool { return s == "" }), ", ")
	for _, e := range f.episodes(g) {
		if f.episode >= 0 && e.Index != f.episode || len(out.Episodes) == sideBySide {
			continue
		}
		place := url.Values{"step": {strconv.FormatInt(step.Step, 10)}, "slot": {strconv.FormatInt(g.Slot, 10)},
			"episode": {strconv.Itoa(e.Index)}}
		if f.Evaluation {
			place.Set("evaluation", "1")
		}
		at := address(r.PathValue("namespace"), r.PathValue("name"), "text")
		out.Episodes = append(out.Episodes, viewOf(e, at, place,
			with(r, "slot", strconv.FormatInt(g.Slot, 10), "episode", strconv.Itoa(e.Index))))
	}
	out.Hidden = len(g.Episodes) - len(out.Episodes)
	return out
}

func splitOf(g transcript.Group) string {
	if g.Split == "" {
		return ""
	}
	return fmt.Sprintf("%s task %d", g.Split, g.Task)
}

func viewOf(e transcript.Episode, texts string, place url.Values, address string) episodeView {
	out := episodeView{Episode: e, Address: address, Class: rewardClass(e), Advantage: advantageOf(e)}
	for _, name := range sortedNames(e.Parts) {
		out.Figures = append(out.Figures, figure{Name: "part " + name, Value: numberOf(e.Parts[name])})
	}
	for _, name := range sortedNames(e.Metrics) {
		out.Figures = append(out.Figures, figure{Name: name, Value: numberOf(e.Metrics[name])})
	}
	for i, c := range e.Conversations {
		shown := conversationView{Conversation: c, Note: noteOf(c), Broken: transcript.ExplainPrefix(c.PrefixBroken)}
		for j, m := range c.Messages {
			shown.Shown = append(shown.Shown, messageOf(m, func(field string, next int) string {
				at := url.Values{"conversation": {strconv.Itoa(i)}, "message": {strconv.Itoa(j)}, "field": {field},
					"from": {strconv.Itoa(next)}}
				for name, values := range place {
					at[name] = values
				}
				return texts + "?" + at.Encode()
			}))
		}
		out.Shown = append(out.Shown, shown)
	}
	return out
}

// messageOf returns a message as it is shown; more returns the address of the rest of a text.
func messageOf(m transcript.Message, more func(field string, next int) string) messageView {
	passageOf := func(text, field string) passage {
		p := passage{excerpt: excerptOf(text, 0)}
		if p.Left > 0 {
			p.More = more(field, p.Next)
		}
		return p
	}
	out := messageView{Message: m, Broken: transcript.ExplainPrefix(m.PrefixBroken), Body: passageOf(m.Text, "text"),
		Thoughts: passageOf(m.Thinking, "thinking"), Folded: m.Role == "tool"}
	for i, call := range m.Calls {
		out.Called = append(out.Called, callView{Name: call.Name, Arguments: passageOf(call.Arguments, strconv.Itoa(i))})
	}
	return out
}

// advantageOf returns the mean advantage of the tokens of an episode that were trained on; "" if none was.
func advantageOf(e transcript.Episode) string {
	sum, n := 0.0, 0
	for _, c := range e.Conversations {
		for _, s := range c.Segments {
			for _, a := range s.Advantages {
				sum += float64(a)
				n++
			}
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%+.3g", sum/float64(n))
}

func noteOf(c transcript.Conversation) string {
	var parts []string
	if c.Reward != nil {
		parts = append(parts, "reward "+output.Number(c.Reward))
	}
	if c.StopReason != "" {
		parts = append(parts, "stop reason "+c.StopReason)
	}
	if n := len(c.Segments); n > 1 {
		parts = append(parts, fmt.Sprintf("%d segments", n))
	}
	return strings.Join(parts, ", ")
}

func numberOf(v float64) string { return output.Number(&v) }
