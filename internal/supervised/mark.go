// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package supervised

import (
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
)

// hasParts reports whether some part has a weight of its own.
func hasParts(marks []Mark) bool {
	return slices.ContainsFunc(marks, func(m Mark) bool { return m.Parts != nil })
}

// weight returns the weight of tokens outside of parts: the calls of a message and the mark of its end. A message
// without a weight has the weight of its last part that has one.
func (m Mark) weight() float32 {
	if m.Weight != nil {
		return float32(*m.Weight)
	}
	for _, part := range slices.Backward(m.Parts) {
		if part != nil {
			return float32(*part)
		}
	}
	return 0
}

// part returns the weight of a part: its own, or the message's.
func (m Mark) part(i int) float32 {
	switch {
	case m.Parts[i] != nil:
		return float32(*m.Parts[i])
	case m.Weight != nil:
		return float32(*m.Weight)
	default:
		return 0
	}
}

// apply sets the weights of a message's ids. The weight of a part covers its text, and the text that the format
// writes between the part and its neighbour: the frame of reasoning belongs to the reasoning, and the format's text
// between two texts to the first of them. The text after the last part belongs to the message.
func (m Mark) apply(weights []float32, w renderer.Written, message chat.Message) {
	fill(weights[w.Output.Begin:w.Output.End], m.weight())
	if len(w.Parts) < len(m.Parts) || m.Parts == nil {
		return // The format has made one text of the parts, as some do with a system message.
	}
	// Calls that are written as text may be an additional part.
	order := written(w.Parts[:len(m.Parts)])
	begin := w.Output.Begin
	for k, i := range order {
		end := w.Parts[i].End
		if k+1 < len(order) {
			if next := order[k+1]; message.Parts[i].Thinking || !message.Parts[next].Thinking {
				end = w.Parts[next].Begin
			}
		}
		fill(weights[begin:end], m.part(i))
		begin = end
	}
}

// written returns the indexes of the parts that the format wrote, in the order of their ids.
func written(parts []renderer.Extent) []int {
	var order []int
	for i, extent := range parts {
		if !extent.IsEmpty() {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return parts[a].Begin - parts[b].Begin })
	return order
}
