// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

// Interaction is how an episode proceeds; it has exactly one member. Without it, one reply is the answer.
type Interaction struct {
	ToolUse *ToolUse `json:"toolUse,omitempty"`
}

// ToolUse lets the policy call tools, turn by turn, until it answers.
type ToolUse struct {
	// SystemPrompt is the first message; empty for none. $(tools) in it is replaced by the tools, which the
	// model's format then does not declare.
	SystemPrompt string      `json:"systemPrompt,omitempty"`
	ParseErrors  ParseErrors `json:"parseErrors"`
}

// ParseErrors is what becomes of replies that break the model's format.
type ParseErrors struct {
	// MaxConsecutive of them in a row are answered with what is wrong; one more ends the episode.
	MaxConsecutive int `json:"maxConsecutive"`
	// Train says whether such replies are training data.
	Train TrainParseErrors `json:"train"`
}

func (i *Interaction) validate(p *problems, path string) {
	if i == nil {
		return
	}
	p.require(i.ToolUse != nil, path, "must be toolUse")
	if i.ToolUse == nil {
		return
	}
	errors := i.ToolUse.ParseErrors
	p.require(errors.MaxConsecutive >= 0, path+".toolUse.parseErrors.maxConsecutive", "must be at least 0")
	oneOf(p, path+".toolUse.parseErrors.train", errors.Train, TrainKeep, TrainMask)
}
