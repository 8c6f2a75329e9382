// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package supervised turns rows of data into the tokens and weights of a cross-entropy step. Everything is a pure
// function of its arguments.
//
//	row               -> messages, or text                    ReadRow
//	messages, trainOn -> ids and weights                      Builder.Datum, by the renderer's Example
//	ids, weights      -> cut to maxTokens, shifted by one, normalized
//	slot i            -> row                                  rl.Stream, another permutation in each epoch
//	batch k            = the next batchSize usable rows       Batches.Next
//
// A row that cannot be trained on does not fail the step. It is an Unusable with one of a few reasons. It takes its
// slot without a datum, and the batch takes the next row.
//
// Tokens and weights are the same as in build_supervised_example of tinker-cookbook, and datums the same as in its
// conversation_to_datum. Tests compare them with the recorded examples in testdata.
package supervised

import "fmt"

// TrainOn says which messages of a conversation have weight. Headers of messages have none.
type TrainOn string

// The values of TrainOn, with the value of TrainOnWhat in tinker-cookbook that gives the same weights.
const (
	// LastAssistant trains on the conversation's last message, if it is the assistant's, from where the prompt ends
	// (LAST_ASSISTANT_MESSAGE).
	LastAssistant TrainOn = "LastAssistant"
	// AllAssistant trains on all messages of the assistant (ALL_ASSISTANT_MESSAGES). Formats that rewrite history train
	// earlier replies as history has them.
	AllAssistant TrainOn = "AllAssistant"
	// All trains on all messages, including messages of the format's own (ALL_MESSAGES).
	All TrainOn = "All"
	// Marked trains on messages and parts by the weights that the row gives them (CUSTOMIZED, which has no weights other
	// than 0 and 1 and none for parts).
	Marked TrainOn = "Marked"
)

// Normalization selects the sum of an example's weights.
type Normalization string

// The values of Normalization, with the value of reduction in tinker-cookbook that gives the same weights.
const (
	// PerExample makes the weights of each example sum up to 1 (mean, the default of conversation_to_datum in 0.5.8 and
	// in 0.6.1).
	PerExample Normalization = "PerExample"
	// PerToken leaves weights as they are, so that each token counts the same and long examples count more (none).
	PerToken Normalization = "PerToken"
)

// Reason is the reason for which a row is not trained on.
type Reason string

// The reasons.
const (
	// NoWeight means that no token has weight, for example since no message is the assistant's or since the text that has
	// weight is cut off.
	NoWeight Reason = "NoWeight"
	// NotRendered means that the row is not of a known form, or that the model's format has no place for something in it.
	NotRendered Reason = "NotRendered"
	// TooLong means that the row has more tokens than the model's context.
	TooLong Reason = "TooLong"
	// Empty means that the row has no text.
	Empty Reason = "Empty"
	// Filtered means that the row is the record of an episode that the filter of episodes leaves out.
	Filtered Reason = "Filtered"
)

// Unusable is the error of a row that is not trained on.
type Unusable struct {
	Reason Reason
	// Err names the field and its problem.
	Err error
}

// Error implements error.
func (u *Unusable) Error() string { return fmt.Sprintf("%s: %v", u.Reason, u.Err) }

// Unwrap returns the cause.
func (u *Unusable) Unwrap() error { return u.Err }

func unusable(reason Reason, format string, args ...any) *Unusable {
	return &Unusable{Reason: reason, Err: fmt.Errorf(format, args...)}
}
