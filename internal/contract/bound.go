// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// Bounds of a reply besides its records. The project's own learner stays below them.
const (
	maxReplyText        = 4 << 10
	maxReplyList        = 64
	maxLineage          = 128
	maxReplyCheckpoints = 16
)

// Bounded returns the part of a reply that a manager keeps: the metrics that the status shows, at most MaxRecords
// records of at most MaxRecordMetrics metrics each, and no text or list that is longer than in a reply of the project's
// own learner. The second result describes in one line the parts that Bounded left out. It is empty for the replies of
// the project's own learner.
func (r HeartbeatReply) Bounded() (HeartbeatReply, string) {
	var excess []string
	r.RunUID, r.Waiting = Truncate(r.RunUID, maxReplyText), Truncate(r.Waiting, maxReplyText)
	r.Problems = bounded(r.Problems, maxReplyList, "problems", &excess)
	if n := len(r.Problems); n > 0 {
		r.Problems = slices.DeleteFunc(r.Problems, func(p problem.Problem) bool { return problem.EndsAttempts(p.Code) })
		if left := n - len(r.Problems); left > 0 {
			excess = append(excess, fmt.Sprintf("%d problems that end attempts", left))
		}
	}
	for i := range r.Problems {
		p := &r.Problems[i]
		p.Code, p.Evidence = p.Code.Bounded(), Truncate(p.Evidence, maxReplyText)
	}
	r.Unavailable = bounded(r.Unavailable, maxReplyList, "unavailable environments", &excess)
	for i := range r.Unavailable {
		e := &r.Unavailable[i]
		e.Name, e.Problem = Truncate(e.Name, maxReplyText), Truncate(e.Problem, maxReplyText)
	}
	r.Tracking = bounded(r.Tracking, maxReplyList, "problems of tracking", &excess)
	r.Progress = r.Progress.bounded(&excess)
	r.Records = boundedRecords(bounded(r.Records, MaxRecords, "records", &excess), &excess)
	return r, strings.Join(excess, ", ")
}

func (p Progress) bounded(excess *[]string) Progress {
	p.Phase = Phase(Truncate(string(p.Phase), maxLineage))
	p.Lineage, p.TokenizerSHA256 = Truncate(p.Lineage, maxLineage), Truncate(p.TokenizerSHA256, maxLineage)
	p.Console = Truncate(p.Console, maxReplyText)
	p.TemplateSHA256 = Truncate(p.TemplateSHA256, maxLineage)
	p.Metrics = StatusMetrics(p.Metrics)
	p.Checkpoints = bounded(p.Checkpoints, maxReplyCheckpoints, "checkpoints", excess)
	p.Environments = bounded(p.Environments, maxReplyList, "environments", excess)
	for i := range p.Environments {
		e := &p.Environments[i]
		e.Fault = Truncate(e.Fault, maxReplyText)
		e.Evaluation = bounded(e.Evaluation, MaxEstimates, "estimates of an environment", excess)
	}
	if read := p.Contents; read != nil {
		kept := *read
		kept.Sources = bounded(kept.Sources, maxReplyList, "sources of data", excess)
		p.Contents = &kept
	}
	if found := p.Capabilities; found != nil {
		kept := *found
		kept.Supported = bounded(kept.Supported, maxReplyList, "supported features", excess)
		kept.Ignored = bounded(kept.Ignored, maxReplyList, "ignored features", excess)
		kept.Unsupported = bounded(kept.Unsupported, maxReplyList, "unsupported features", excess)
		p.Capabilities = &kept
	}
	return p
}

// boundedRecords bounds the metrics of records. A record whose lineage is longer than any learner makes it loses both
// its lineage and its metrics, because a cut lineage could be mistaken for the lineage of another version.
func boundedRecords(records []Record, excess *[]string) []Record {
	left := 0
	for i := range records {
		kept := MainMetrics(records[i].Metrics, MaxRecordMetrics)
		if len(records[i].Lineage) > maxLineage {
			records[i].Lineage, kept = "", nil
		}
		left += len(records[i].Metrics) - len(kept)
		if records[i].Metrics != nil {
			records[i].Metrics = kept
		}
	}
	if left > 0 {
		*excess = append(*excess, fmt.Sprintf("%d metrics of records", left))
	}
	return records
}

// bounded returns a copy of the first elements of a list, and notes the number of elements that it leaves out.
func bounded[T any](list []T, limit int, what string, excess *[]string) []T {
	if left := len(list) - limit; left > 0 {
		*excess = append(*excess, fmt.Sprintf("%d %s of %d", left, what, len(list)))
	}
	return slices.Clone(list[:min(len(list), limit)])
}
