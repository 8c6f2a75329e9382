// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// conversationsPage is the content of the page of conversations.
type conversationsPage struct {
	Run      listedRun
	Filter   filter
	Problem  string
	Forbids  bool
	Pending  string
	Step     int64
	Steps    []int64
	Before   string
	After    string
	Title    string
	Missing  string
	Outcomes []option
	Stops    []option
	Roles    []option
	Colours  []option
	// Found of Total episodes fit the filters.
	Found, Total int
	Groups       []groupEntry
	Group        *groupView
	MoreGroups   string
}

// groupEntry is a group in the list of all.
type groupEntry struct {
	Title, Note, Address, Outcome string
	Rewards                       []rewardMark
	Chosen                        bool
}

// rewardMark is the reward of an episode in the list of groups.
type rewardMark struct{ Text, Class, Address string }

// groupsOfPage is the number of groups in the list, and sideBySide the number of episodes that are shown side by side.
const (
	groupsOfPage = 200
	sideBySide   = 16
)

func (s *Site) serveConversations(r *http.Request) (view, error) {
	run, err := s.run(r)
	if err != nil {
		return view{}, err
	}
	page := conversationsPage{Run: s.listed(run), Filter: filterOf(r)}
	made := view{template: "conversations.html", title: "Conversations of " + run.Name, section: "runs"}
	found, whole := s.conversations.get(r.Context(), run, page.Filter.step, page.Filter.Evaluation, glance)
	switch {
	case !whole:
		page.Pending = "A pod reads the artifacts of the run, since " + output.Duration(time.Since(found.began)) + "."
		made.pending = true
	case found.err != nil:
		page.Problem, page.Forbids = found.err.Error(), apierrors.IsForbidden(found.err)
		page.Steps = s.conversations.steps(run, page.Filter.Evaluation)
	default:
		page.show(r, found, s.conversations.steps(run, page.Filter.Evaluation))
		s.colour(r, &page, run)
	}
	made.data = &page
	return made, nil
}

// show puts a transcript into the page.
func (p *conversationsPage) show(r *http.Request, found *reading, steps []int64) {
	p.Step, p.Steps, p.Missing = found.step.Step, steps, found.step.Missing
	p.Title = fmt.Sprintf("Step %d, sampled by version %d", found.step.Step, found.step.SampledAt)
	if found.step.Evaluation != "" {
		p.Title = fmt.Sprintf("Evaluation of version %d", found.step.Step)
	}
	if at, ok := slices.BinarySearch(steps, p.Step); ok {
		if at > 0 {
			p.Before = with(r, "step", strconv.FormatInt(steps[at-1], 10), "slot", "", "episode", "")
		}
		if at+1 < len(steps) {
			p.After = with(r, "step", strconv.FormatInt(steps[at+1], 10), "slot", "", "episode", "")
		}
	}
	p.choices(found.step)
	chosen := -1
	for i, g := range found.step.Groups {
		p.Total += len(g.Episodes)
		episodes := p.Filter.episodes(g)
		if len(episodes) == 0 && (len(g.Episodes) > 0 || p.Filter.isSet()) {
			continue
		}
		p.Found += len(episodes)
		if chosen < 0 || p.Filter.hasSlot && g.Slot == p.Filter.slot {
			chosen = i
		}
		if len(p.Groups) < groupsOfPage {
			p.Groups = append(p.Groups, entryOf(r, g, episodes))
		} else {
			p.MoreGroups = fmt.Sprintf("The list ends after %d groups: narrow the filters to see others.", groupsOfPage)
		}
	}
	if chosen < 0 {
		return
	}
	group := found.step.Groups[chosen]
	for i := range p.Groups {
		p.Groups[i].Chosen = p.Groups[i].Address == slotAddress(r, group.Slot)
	}
	p.Group = p.Filter.view(r, found.step, group)
}

// slotAddress returns the address of a group.
func slotAddress(r *http.Request, slot int64) string {
	return with(r, "slot", strconv.FormatInt(slot, 10), "episode", "")
}

// entryOf returns the entry of a group.
func entryOf(r *http.Request, g transcript.Group, episodes []transcript.Episode) groupEntry {
	entry := groupEntry{Title: fmt.Sprintf("slot %d", g.Slot), Note: g.Environment, Address: slotAddress(r, g.Slot)}
	if g.Outcome != usable {
		entry.Outcome = g.Outcome
	}
	for _, e := range episodes[:min(len(episodes), sideBySide)] {
		entry.Rewards = append(entry.Rewards, rewardMark{Text: output.Number(&e.Reward), Class: rewardClass(e),
			Address: with(r, "slot", strconv.FormatInt(g.Slot, 10), "episode", strconv.Itoa(e.Index))})
	}
	return entry
}

// usable is the outcome of episodes that count.
const usable = "Usable"

func rewardClass(e transcript.Episode) string {
	switch {
	case e.Outcome != usable:
		return "warn"
	case e.Passed != nil && *e.Passed, e.Passed == nil && e.Reward > 0:
		return "good"
	}
	return "bad"
}

// choices offers the values that the episodes of a step have.
func (p *conversationsPage) choices(step transcript.Step) {
	var outcomes, stops, roles []string
	for _, g := range step.Groups {
		for _, e := range g.Episodes {
			outcomes, stops = appendNew(outcomes, e.Outcome), appendNew(stops, e.StopReason)
			for _, c := range e.Conversations {
				roles = appendNew(roles, c.Role)
			}
		}
	}
	p.Outcomes, p.Stops = optionsOf(outcomes, p.Filter.Outcome), optionsOf(stops, p.Filter.Stop)
	p.Roles = optionsOf(roles, p.Filter.Role)
}

func optionsOf(values []string, chosen string) []option {
	slices.Sort(values)
	var all []option
	for _, v := range appendNew(values, chosen) {
		all = append(all, option{Value: v, Text: v, Chosen: v == chosen})
	}
	return all
}

// serveText answers with the rest of a text that a page has in part.
func (s *Site) serveText(w http.ResponseWriter, r *http.Request) {
	text, err := s.textOf(r)
	if err != nil {
		http.Error(w, output.Safe(err.Error()), codeOf(err))
		return
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("from"))
	part := excerptOf(text, from)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if part.Left > 0 {
		w.Header().Set("X-Next", with(r, "from", strconv.Itoa(part.Next)))
		w.Header().Set("X-Left", strconv.Itoa(part.Left))
	}
	_, _ = w.Write(visible([]byte(part.Text)))
}

// textOf returns the text that a request names by its place.
func (s *Site) textOf(r *http.Request) (string, error) {
	run, err := s.run(r)
	if err != nil {
		return "", err
	}
	f := filterOf(r)
	found, whole := s.conversations.get(r.Context(), run, f.step, f.Evaluation, patience)
	if !whole {
		return "", &notFoundError{"the transcript is being read: open the conversation again"}
	}
	if found.err != nil {
		return "", found.err
	}
	query := r.URL.Query()
	at := func(name string) int {
		n, err := strconv.Atoi(query.Get(name))
		if err != nil {
			return -1
		}
		return n
	}
	for _, g := range found.step.Groups {
		for _, e := range g.Episodes {
			if g.Slot != f.slot || e.Index != at("episode") {
				continue
			}
			if text, ok := textIn(e, at("conversation"), at("message"), query.Get("field")); ok {
				return text, nil
			}
		}
	}
	return "", &notFoundError{"the transcript has no such text"}
}

// textIn returns a text of an episode by its place.
func textIn(e transcript.Episode, conversation, message int, field string) (string, bool) {
	if conversation < 0 || conversation >= len(e.Conversations) {
		return "", false
	}
	c := e.Conversations[conversation]
	if message < 0 || message >= len(c.Messages) {
		return "", false
	}
	m := c.Messages[message]
	switch field {
	case "text":
		return m.Text, true
	case "thinking":
		return m.Thinking, true
	}
	if n, err := strconv.Atoi(field); err == nil && n >= 0 && n < len(m.Calls) {
		return m.Calls[n].Arguments, true
	}
	return "", false
}
