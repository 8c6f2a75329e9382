// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// blocks are what a learner may wait for besides the tokenizer, by what its words begin with. What follows goes into
// the message.
var blocks = []struct{ prefix, reason, message string }{
	{contract.BlockedOnArtifacts, v1alpha1.ReasonArtifactsBlocked,
		"The learner cannot write its files (%s): repair the store of " +
			"spec.artifacts; the run then continues by itself."},
	{contract.BlockedOnData, v1alpha1.ReasonDataBlocked,
		"A worker cannot read its data (%s); the run then continues by itself."},
	{contract.BlockedOnJudge, v1alpha1.ReasonJudgeBlocked,
		"A worker cannot ask a judge (%s). No reply is scored without it. " +
			"Once it answers, the run continues by itself within a minute. " +
			"Another address or model of a judge counts for runs that are created later."},
	{contract.BlockedOnFormat, v1alpha1.ReasonUnsupportedByFormat,
		"The format of the run's model cannot express a prompt (%s). " +
			"Until a first step is committed, change environments[].environmentRef or model.renderer of the run; " +
			"a change of a RewardEnvironment alone concerns later runs. " +
			"A server that gives other prompts and tools is asked again within a minute. The run then continues by itself."},
	{contract.BlockedOnEnvironment, v1alpha1.ReasonEnvironmentUnavailable,
		"The run waits for the server of environment %q: " +
			"see the condition EnvironmentsReady; the run then continues by itself."},
}

// BlockedOn gives the reason and the repair of what a learner waits for.
func BlockedOn(words string) (reason, message string) {
	for _, b := range blocks {
		if what, ok := strings.CutPrefix(words, b.prefix); ok {
			return b.reason, fmt.Sprintf(b.message, what)
		}
	}
	return v1alpha1.ReasonTokenizerBlocked, fmt.Sprintf("The tokenizer cannot be loaded (%s): check the source of "+
		"model.tokenizer and the network; "+
		"the run then continues by itself.", strings.TrimPrefix(words, contract.BlockedOnTokenizer))
}
