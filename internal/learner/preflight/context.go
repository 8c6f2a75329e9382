// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// checkContext fails for a run one of whose environments may ask for more tokens than the model's context has, which
// the endpoint would refuse one sample at a time. A context of 0 is not known. A run that has a checkpoint does not
// fail: it was accepted, and its prompts may be shorter than their limit.
func checkContext(file contract.RunFile, context int) error {
	if context == 0 || len(file.KnownCheckpoints) > 0 {
		return nil
	}
	for _, use := range usesOf(file) {
		if err := checkUse(use, file.Fixed.Model.Name, context); err != nil {
			return err
		}
	}
	return nil
}

// checkUse fails for an environment whose first prompt and its reply may exceed the context.
func checkUse(use use, model string, context int) error {
	reply, prompt := int(use.Sampling.MaxTokens), int(use.Limits.PromptTokens)
	trajectory := int(use.Limits.TrajectoryTokens)
	switch {
	case trajectory > 0 && trajectory <= context:
		return nil // prompt and reply together are never longer
	case prompt == 0 && reply >= context:
		return Await(problem.ContextTooShort,
			"%s.sampling.maxTokens is %d, but the context of %s has %d tokens at this endpoint, prompt "+
				"included: set it to at most %d, or set limits.trajectoryTokens to at most %d", use.path, reply, model, context,
			context-1, context)
	case prompt+reply > context:
		return Await(problem.ContextTooShort,
			"%s.limits.promptTokens %d and sampling.maxTokens %d make %d tokens, but the context of %s has "+
				"%d at this endpoint: lower one of them, or set limits.trajectoryTokens to at most %d",
			use.path, prompt, reply, prompt+reply, model, context, context)
	}
	return nil
}
