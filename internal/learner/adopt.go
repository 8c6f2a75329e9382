// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/opening"
)

// adopt claims the run that this run continues, before its states are listed, and takes over its files in the artifact
// store. A run that continues no other looks for an earlier run of its name.
func (b *beginning) adopt(ctx context.Context) error {
	run := b.learner.file.Run
	if b.learner.file.ResumeFrom == "" {
		if found := b.learner.journal.Register(run.Namespace, run.Name, b.learner.config.Now().Unix()); found != nil {
			spec := decodeSpec(found.Spec)
			b.learner.opener.Namesake = &contract.EarlierRun{UID: found.UID, Step: found.Step,
				SameSettings: spec != nil && spec.SpecDigest == b.learner.file.SpecDigest}
		}
		return nil
	}
	spec, err := b.learner.journal.Adopt(ctx, b.learner.file.ResumeFrom)
	if adopted, ok := errors.AsType[*artifacts.AdoptedError](err); ok {
		return &opening.ResumeError{UID: b.learner.file.ResumeFrom, Problem: "run " + adopted.By +
			" continues it already. Name that run in resumeFrom if it is deleted."}
	}
	b.learner.journal.Register(run.Namespace, run.Name, b.learner.config.Now().Unix())
	b.learner.opener.Former = decodeSpec(spec)
	return err
}

// decodeSpec reads a run file of another run; nil if it cannot be read.
func decodeSpec(data []byte) *contract.RunFile {
	var file contract.RunFile
	if json.Unmarshal(data, &file) != nil || file.SpecDigest == "" {
		return nil
	}
	return &file
}

// reportOrigin reports the run of the loaded state if it is another run, or the earlier run of the same name that
// this run does not continue.
func (o *modelOpening) reportOrigin(loaded opening.Loaded) {
	o.learner.status.Update(func(p *contract.Progress) {
		if p.EarlierRun = o.learner.opener.Namesake; loaded.Former {
			p.ResumedFrom = &contract.ResumedFrom{UID: o.learner.file.ResumeFrom, Step: loaded.At.Step}
		}
	})
}

// countKnown notes how many steps of the former run the usage lacks, if the loaded state is of a former run. steps is
// the last step whose usage is known.
func (o *modelOpening) countKnown(steps int64) {
	o.learner.status.Update(func(p *contract.Progress) {
		if p.ResumedFrom != nil && p.ResumedFrom.Step == o.learner.loop.at.Step {
			from := *p.ResumedFrom
			from.UncountedSteps = from.Step - steps
			p.ResumedFrom = &from
		}
	})
}
