// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import "context"

// JudgeUsage counts calls and tokens of judges for an episode, including calls without a judgement.
type JudgeUsage struct {
	// Calls counts all calls, Errors the calls that failed, and Unreadable the replies that were not complete judgements.
	Calls, Errors, Unreadable int64
	// PromptTokens and SampledTokens count tokens of the judges, and not the policy's.
	PromptTokens, SampledTokens int64
}

// Judgement is how a judge rated one criterion of a reply.
type Judgement struct {
	// Conversation is the conversation of the reply.
	Conversation string
	Criterion    string
	// Rating is from 0 to 1.
	Rating    float64
	Rationale string
}

// Recorder records the usage, the judgements and the pauses of graders. It is safe for concurrent use.
type Recorder interface {
	// CountJudge counts calls of a judge.
	CountJudge(usage JudgeUsage)
	// RecordJudgements records the ratings of a reply, for people.
	RecordJudgements(judgements []Judgement)
	// Pause stops the clock of the episode's time limit until resume is called: the caller waits for something that
	// is not the episode's work, such as a judge that is down.
	Pause() (resume func())
}

// WithRecorder returns a context in which graders find the recorder.
func WithRecorder(ctx context.Context, recorder Recorder) context.Context {
	return context.WithValue(ctx, recorderKey{}, recorder)
}

// RecorderFrom returns the recorder of a context, or one that records nothing.
func RecorderFrom(ctx context.Context) Recorder {
	if recorder, ok := ctx.Value(recorderKey{}).(Recorder); ok {
		return recorder
	}
	return noRecorder{}
}

type recorderKey struct{}

type noRecorder struct{}

// CountJudge implements Recorder.
func (noRecorder) CountJudge(JudgeUsage) {}

// RecordJudgements implements Recorder.
func (noRecorder) RecordJudgements([]Judgement) {}

// Pause implements Recorder.
func (noRecorder) Pause() func() { return func() {} }
