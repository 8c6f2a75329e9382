// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
)

// Parts of a message are found by writing the conversation a second time, with marks around the text of each part.
// Formats trim, frame, reorder and drop parts in their own ways, and carry the marks along with the text. If the
// pieces without their marks differ from the pieces of the conversation, the parts count as not found.

// markOpen and markClose enclose the number of a part before its text; markClose also stands after its text. They are
// noncharacters, which no interchanged text contains.
const (
	markOpen  = "\uFDD0"
	markClose = "\uFDD1"
)

// writtenText is a piece of text and the place of its ids.
type writtenText struct {
	text       string
	begin, end int
}

// locateParts finds the parts of the messages that consist of parts.
func (c *familyRenderer) locateParts(messages []chat.Message, example renderer.Example, texts []writtenText) error {
	marked, places, err := mark(messages, example.Written)
	if err != nil || len(places) == 0 {
		return err
	}
	var again []writtenText
	out := NewWriter(c.family.Base(), nil)
	out.texts = &again
	if _, err := c.example(out, marked); err != nil {
		return err
	}
	if len(again) != len(texts) {
		return errParts
	}
	for i, piece := range texts {
		text, cuts := unmark(again[i].text)
		if text != piece.text {
			return errParts
		}
		ids := example.IDs[piece.begin:piece.end]
		for _, cut := range cuts {
			place := places[cut.part]
			at, err := c.tokenAt(text, ids, place.widen(text, cut))
			if err != nil {
				return err
			}
			if cut.closes {
				place.extent.End = piece.begin + at
			} else {
				place.extent.Begin = piece.begin + at
			}
		}
	}
	return nil
}

var errParts = fmt.Errorf("the format writes the parts of a message otherwise, depending on their text; "+
	"give weights to whole messages: %w", renderer.ErrUnsupported)

// partPlace is the place of a part: its extent, and the white space around its text, which a format may trim.
type partPlace struct {
	extent      *renderer.Extent
	lead, trail string
}

// widen returns the offset of a cut, moved outward over the white space of the part that the format has written.
func (p partPlace) widen(text string, cut markCut) int {
	if cut.closes {
		return cut.offset + commonPrefix(text[cut.offset:], p.trail)
	}
	lead := p.lead
	for !strings.HasSuffix(text[:cut.offset], lead) {
		_, size := utf8.DecodeRuneInString(lead)
		lead = lead[size:]
	}
	return cut.offset - len(lead)
}

// mark returns messages with marks in their parts. It makes the parts' extents and returns their places by number.
func mark(messages []chat.Message, written []renderer.Written) ([]chat.Message, []partPlace, error) {
	messages = slices.Clone(messages)
	var places []partPlace
	for i, m := range messages {
		parts := slices.Clone(m.AllParts())
		if !m.IsStructured() {
			continue
		}
		written[i].Parts = make([]renderer.Extent, len(parts))
		for j := range parts {
			if strings.ContainsAny(parts[j].Text, markOpen+markClose) {
				return nil, nil, errParts
			}
			place := partPlace{extent: &written[i].Parts[j]}
			place.lead, parts[j].Text, place.trail = withMarks(parts[j].Text, len(places))
			parts[j].Text = place.lead + parts[j].Text + place.trail
			places = append(places, place)
		}
		messages[i] = m.WithParts(parts)
	}
	return messages, places, nil
}

// withMarks splits a text into the white space at its ends and the text between, with marks around the latter.
func withMarks(text string, number int) (lead, marked, trail string) {
	core := strings.TrimLeftFunc(text, isSpace)
	lead = text[:len(text)-len(core)]
	trail = core
	core = strings.TrimRightFunc(core, isSpace)
	trail = trail[len(core):]
	if core == "" {
		return "", text, ""
	}
	return lead, markOpen + strconv.Itoa(number) + markClose + core + markClose, trail
}

// isSpace reports whether a format may trim a character: whether it is white space in Unicode or in Python.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// markCut is the place at which a part begins or ends in a text.
type markCut struct {
	part, offset int
	closes       bool
}

// unmark removes the marks of a text and returns their places. A mark without its counterpart stays, so that the text
// differs.
func unmark(text string) (string, []markCut) {
	var out strings.Builder
	var cuts []markCut
	for {
		before, rest, found := strings.Cut(text, markOpen)
		number, rest, numbered := strings.Cut(rest, markClose)
		core, rest, closed := strings.Cut(rest, markClose)
		part, err := strconv.Atoi(number)
		if !found || !numbered || !closed || err != nil {
			out.WriteString(text)
			return out.String(), cuts
		}
		out.WriteString(before)
		cuts = append(cuts, markCut{part: part, offset: out.Len()})
		out.WriteString(core)
		cuts = append(cuts, markCut{part: part, offset: out.Len(), closes: true})
		text = rest
	}
}

// tokenAt returns the index of the first of a text's ids that begins at an offset or after it.
func (c *familyRenderer) tokenAt(text string, ids []int32, offset int) (int, error) {
	tokens := c.family.Base().Tokens
	whole, err := tokens.Decode(ids)
	if err != nil {
		return 0, err
	}
	if whole != text {
		// The tokenizer has normalised the text: find the offset in the normalised text.
		before, err := tokens.Decode(tokens.AppendEncode(nil, text[:offset], c.family.Base().match))
		if err != nil {
			return 0, err
		}
		offset = commonPrefix(before, whole)
	}
	at := sort.Search(len(ids), func(n int) bool {
		before, decodeErr := tokens.Decode(ids[:n])
		if decodeErr != nil {
			err = decodeErr
		}
		return commonPrefix(before, whole) >= offset
	})
	return at, err
}

// commonPrefix returns the number of bytes that two texts begin with alike. The end of a text whose last character is
// cut in two does not count.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
