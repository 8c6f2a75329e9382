// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import "github.com/tinker-operator/tinker-operator/api/v1alpha1"

// repairs says what to do about a reason, with $(run) for the name of the run.
var repairs = map[string]string{
	v1alpha1.ReasonEnvironmentNotFound: "Apply the RewardEnvironment that the message names; the run then starts " +
		"by itself.",
	v1alpha1.ReasonEnvironmentNotReady: "Look at the environment: kubectl describe rewardenvironments. The run starts " +
		"once its probe succeeds.",
	v1alpha1.ReasonSplitNotFound:     "Correct the name of the split in the spec; the message lists those that exist.",
	v1alpha1.ReasonSecretNotFound:    "Create the Secret; the pod then starts by itself.",
	v1alpha1.ReasonSecretKeyNotFound: "Add the key to the Secret; the pod then starts by itself.",
	v1alpha1.ReasonConfigNotFound:    "Create what the message names; the pod then starts by itself.",
	v1alpha1.ReasonKeyRefused: "Correct the API key in the Secret, or tinker.apiKeySecretRef; the run then " +
		"continues by itself.",
	v1alpha1.ReasonEndpointUnreachable: "Check tinker.baseURL and the network between cluster and endpoint, or wait; " +
		"nothing is lost.",
	v1alpha1.ReasonEndpointFailing: "Look at the log of the endpoint; the run continues by itself once it answers.",
	v1alpha1.ReasonRequestTooLarge: "Raise the limit of request bodies at the endpoint or the ingress before it.",
	v1alpha1.ReasonThrottled:       "Nothing: the run continues as fast as the endpoint allows.",
	v1alpha1.ReasonPausedCapacity: "Wait: the endpoint has paused the run for lack of capacity. This does not " +
		"count against maxRestarts.",
	v1alpha1.ReasonPausedRateLimit: "Wait: the endpoint has paused the run because of its rate limit. This does " +
		"not count against maxRestarts.",
	v1alpha1.ReasonPaymentRequired: "Pay at the endpoint; the run then continues by itself.",
	v1alpha1.ReasonArtifactsBlocked: "Repair the volume of the artifacts, as the message says; the run then " +
		"continues by itself.",
	v1alpha1.ReasonTokenizerBlocked: "Repair the way to the tokenizer, as the message says; the run then continues " +
		"by itself.",
	v1alpha1.ReasonDataBlocked:   "Repair the data, as the message says; the run then continues by itself.",
	v1alpha1.ReasonJudgeBlocked:  "Repair the judge, as the message says; no reply is scored meanwhile.",
	v1alpha1.ReasonJobSuspended:  "Nothing: the run continues once the queue that suspended the Job resumes it.",
	v1alpha1.ReasonUnschedulable: "Add a node that fits, or correct learner.pod.",
	v1alpha1.ReasonImagePullFailed: "Correct the image, or imagePullSecrets, in the pod's fields of the spec or " +
		"in the chart.",
	v1alpha1.ReasonContainerRefused: "Correct the pod's fields of the spec, as the message says.",
	v1alpha1.ReasonInitContainerFailed: "Correct the container of initContainers that the message names, or what it " +
		"needs; the run then continues by itself.",
	v1alpha1.ReasonCreateRefused: "Correct the pod's fields of the spec, or the quota or admission policy that " +
		"refuses them.",
	v1alpha1.ReasonSpecRefused: "Correct the field that the message names; nothing is tried until the " +
		"spec changes.",
	v1alpha1.ReasonWorkersCrashed: "Read the workers' log: kubectl tinker logs $(run) --role rollout",
	v1alpha1.ReasonScaledToZero:   "Add workers: kubectl tinker scale $(run) --replicas 2",
	v1alpha1.ReasonSettingsDiffer: "Restore the fields that the message names, and the run continues; put the " +
		"new values into another run.",
	v1alpha1.ReasonStatusRestored: "Set spec.resumeFrom.uid to the uid that the message names. To begin anew, " +
		"create the run without a status.",
	v1alpha1.ReasonResumeRefused: "Correct spec.resumeFrom, or what the message names; nothing is tried until " +
		"the spec changes.",
	v1alpha1.ReasonPromptsDiffer: "Set sampling.sharedPrompt to false for the environment that the message names.",
	v1alpha1.ReasonRoleNotFound:  "Correct algorithm.roles or algorithm.grouping, as the message says.",
	v1alpha1.ReasonModelUnknown: "Do what the message says about the model that it names; a run that has not " +
		"failed then continues by itself, else: kubectl tinker retry $(run)",
	v1alpha1.ReasonUnsupportedByEndpoint: "Repair the endpoint, or change the setting that the message names; a run " +
		"that has not failed then continues by itself, else: kubectl tinker retry $(run)",
	v1alpha1.ReasonUnsupportedByFormat: "Give the environment a dialect of calls or the run another model.renderer, as " +
		"the message says; the run then continues by itself.",
	v1alpha1.ReasonOptimizerNotRestored: "Set failurePolicy.requireOptimizer to false, or repair the endpoint; a run " +
		"that has not failed then continues by itself, else: kubectl tinker retry $(run)",
	v1alpha1.ReasonInitFromNotFound:  "Correct initFrom, or wait until the run that it names exists.",
	v1alpha1.ReasonInitFromNotReady:  "Wait until the run that initFrom names has saved the checkpoint.",
	v1alpha1.ReasonTokenizerRejected: "Correct model.tokenizer, then: kubectl tinker retry $(run)",
	v1alpha1.ReasonNoUsableCheckpoint: "Make the checkpoint readable that the message names; the run then continues by " +
		"itself. If it has failed: create another run, if possible with initFrom.",
	v1alpha1.ReasonNoProgress: "Read the learner's log, since the step itself ends it: kubectl tinker logs " +
		"$(run). Then: kubectl tinker retry $(run)",
	v1alpha1.ReasonRestartsExhausted: "Repair the cause, which the attempts name, then: kubectl tinker retry $(run)",
	v1alpha1.ReasonConfigRejected:    "Correct what the message names and create the run again.",
	v1alpha1.ReasonDataRejected:      "Correct what the message names and create the run again.",
	v1alpha1.ReasonSuspended:         "Resume it: kubectl tinker resume $(run)",
	v1alpha1.ReasonDraining:          "Wait: the learner stops at a saved state.",
	v1alpha1.ReasonVersionsLost:      "Nothing is lost except reproducibility.",
	v1alpha1.ReasonDiverged: "The loss or its gradient was not finite, or the endpoint sampled no valid " +
		"tokens: look at the curves with kubectl tinker metrics $(run) --plot reward,loss, and lower the learning rate of " +
		"the next run.",
}
