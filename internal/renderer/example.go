// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

// Example is a whole conversation in the ids that a model is trained on, as one sequence. It says which ids belong to
// which message, but has no weights.
//
// A format writes an earlier reply as history, for example without its reasoning. If Prompt writes history differently
// from the last reply, then only the last reply of an example follows the same tokens as when the model samples.
type Example struct {
	IDs []int32
	// Written are the messages in the order of the ids, including messages of the format's own.
	Written []Written
	// Given is the number of ids at the beginning that the prompt of the last message has. It is 0 if the last message is
	// not the assistant's, or if the example does not begin with that prompt. The latter happens if a format writes a
	// reply without reasoning differently from the beginning of a reply in its prompt.
	Given int
	// Contradicts means that the last reply reasons, while the format's prompts tell the model not to. Trained on such
	// replies, the model learns to reason after it is told not to.
	Contradicts bool
}

// Written is the place of a message in the ids of an example.
type Written struct {
	// Message is the index of the message in the conversation. It is negative for a message of the format's own, such as
	// the declaration of tools.
	Message int
	// Output are the ids of the message itself: its content with the mark of its end, and not its header.
	Output Extent
	// Parts are the places of the message's parts, if they were asked for. A part that the format drops or that has no
	// text has an empty extent.
	Parts []Extent
}

// Extent is a range of ids, from Begin to before End.
type Extent struct{ Begin, End int }

// IsEmpty reports whether an extent has no id.
func (e Extent) IsEmpty() bool { return e.End <= e.Begin }
