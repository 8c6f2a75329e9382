// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TrainingRunStatus is the observed state of the run. Its metrics are rounded to four digits.
type TrainingRunStatus struct {
	// conditions are the conditions of the run, for programs.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// codes are the codes of the problems that conditions show. A reason may stand for several codes; the table of
	// docs/troubleshooting.md describes each code.
	// +listType=map
	// +listMapKey=condition
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Codes []ConditionCode `json:"codes,omitempty"`
	// runUID is the uid of the run that the status belongs to. The status of a run that was restored from a backup has the
	// uid of the former run until spec.resumeFrom names that run.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	RunUID string `json:"runUID,omitempty"`
	// resumedFrom is the run that this run continues, once its learner has loaded a state of that run.
	// +optional
	ResumedFrom *ResumedFrom `json:"resumedFrom,omitempty"`
	// earlierRun is an earlier run of the same namespace and name, which this run does not continue.
	// +optional
	EarlierRun *EarlierRun `json:"earlierRun,omitempty"`
	// observedGeneration is the generation of the newest spec that was acted upon.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// observedRetryGeneration is the spec.retryGeneration that the operator last acted upon.
	// +optional
	ObservedRetryGeneration *int32 `json:"observedRetryGeneration,omitempty"`
	// state is a summary of the conditions for people. Later versions may add values.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	State string `json:"state,omitempty"`
	// startTime is the time at which the first attempt began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// settingsFixed says that a step was committed, or an evaluation completed: fields that are fixed once a step is
	// committed can no longer be changed, but algorithm.steps and epochs may be raised. While it is false, these fields
	// may be changed, and the next attempt starts with the new values.
	// +optional
	SettingsFixed *bool `json:"settingsFixed,omitempty"`
	// completionTime is the time at which the run became Complete or Failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// step is the number of committed steps.
	// +optional
	Step *int64 `json:"step,omitempty"`
	// steps is the total number of steps of the run, as the newest attempt has it.
	// +optional
	Steps *int64 `json:"steps,omitempty"`
	// epochs is the algorithm.epochs that the newest attempt was started with.
	// +optional
	Epochs *int64 `json:"epochs,omitempty"`
	// restarts is the number of times that an attempt ended by itself and the next attempt began. Suspensions, changes of
	// the learner's pod before it ran, and refused Jobs do not count.
	// +optional
	Restarts *int32 `json:"restarts,omitempty"`
	// failuresSinceCheckpoint counts the failures since the last checkpoint of a step. failurePolicy.maxRestarts limits
	// them.
	// +optional
	FailuresSinceCheckpoint *int32 `json:"failuresSinceCheckpoint,omitempty"`
	// metrics are the main metrics of the newest step and of the newest evaluation.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Metrics []MetricValue `json:"metrics,omitempty"`
	// diagnoses are reasons why the policy does not learn, found in the metrics of the newest steps. A reason that
	// explains others comes before them. A run that learns has no diagnoses.
	// +listType=map
	// +listMapKey=cause
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Diagnoses []Diagnosis `json:"diagnoses,omitempty"`
	// evaluation is the newest evaluation. The metrics whose names begin with test/ are its results.
	// +optional
	Evaluation *EvaluationStatus `json:"evaluation,omitempty"`
	// latestCheckpoint is the name of the newest checkpoint.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	LatestCheckpoint string `json:"latestCheckpoint,omitempty"`
	// bestCheckpoint is the name of the best checkpoint by spec.checkpoints.bestMetric.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	BestCheckpoint string `json:"bestCheckpoint,omitempty"`
	// checkpoints are the newest checkpoints, the newest first, and the best checkpoint. The newest and the best have all
	// fields.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Checkpoints []Checkpoint `json:"checkpoints,omitempty"`
	// attempts are the attempts, the newest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Attempts []Attempt `json:"attempts,omitempty"`
	// pendingChanges are fields of the spec that have changed since the learner's current attempt began. They take effect
	// with the next attempt: suspend and resume the run to apply them at once.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	// +optional
	PendingChanges []string `json:"pendingChanges,omitempty"`
	// capabilities are the operations that the endpoint supports, found by the first attempt, or by another run at the
	// same endpoint.
	// +optional
	Capabilities *Capabilities `json:"capabilities,omitempty"`
	// tokenizerSHA256 is the digest of the tokenizer's file with which the run began. A file with another digest is
	// refused.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TokenizerSHA256 string `json:"tokenizerSHA256,omitempty"`
	// templateSHA256 is the digest of the chat template with which the run began, including the names of its special
	// tokens. A template with another digest is refused.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TemplateSHA256 string `json:"templateSHA256,omitempty"`
	// dataset is the data that a run of mode Supervise has read. Once a step is committed, other data is refused.
	// +optional
	Dataset *DatasetStatus `json:"dataset,omitempty"`
	// console is the address at which the service shows the session of the run's newest models. Only hosted Tinker has a
	// console.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Console string `json:"console,omitempty"`
	// activeSeconds is the total time of attempts that have ended.
	// +optional
	ActiveSeconds *int64 `json:"activeSeconds,omitempty"`
	// usage is the usage of all attempts. The counters of answered requests never fall. In a run without artifacts,
	// nothing records the requests of earlier learners and lost workers: after a restart, a counter rises again only once
	// the new attempt has used more than the counter shows.
	// +optional
	Usage *Usage `json:"usage,omitempty"`
	// effectiveTrainingRatio is the time spent on steps that count, divided by the time since the start.
	// +optional
	EffectiveTrainingRatio *float64 `json:"effectiveTrainingRatio,omitempty"`
	// environments are the environments that the run uses, as it pinned them.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Environments []EnvironmentStatus `json:"environments,omitempty"`
	// queue is the Kueue queue that admits the run. It is absent if the run has no queue.
	// +optional
	Queue *QueueStatus `json:"queue,omitempty"`
	// workers is the number of worker pods, for autoscalers.
	// +optional
	Workers *int32 `json:"workers,omitempty"`
	// readyWorkers is the number of ready worker pods.
	// +optional
	ReadyWorkers *int32 `json:"readyWorkers,omitempty"`
	// workerSelector finds the worker pods, for autoscalers.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	WorkerSelector string `json:"workerSelector,omitempty"`
}

// ConditionCode is the code of the problem that a condition shows.
type ConditionCode struct {
	// condition is the type of the condition.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Condition string `json:"condition"`
	// code is the code of the problem.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Code string `json:"code"`
}

// MetricValue is the newest value of a metric.
type MetricValue struct {
	// name is the name of the metric in metrics.jsonl, or in evaluations.jsonl if it begins with test/.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Name string `json:"name"`
	// value is the newest value, rounded to four digits.
	// +required
	Value float64 `json:"value"`
}

// Diagnosis is a reason why the policy does not learn.
type Diagnosis struct {
	// cause is the name of the rule that holds, such as NoGradient.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Cause string `json:"cause"`
	// message has the figures.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// EvaluationStatus is the newest evaluation.
type EvaluationStatus struct {
	// step is the number of steps that led to the evaluated weights.
	// +required
	Step int64 `json:"step"`
}

// Metric returns the value of a metric of the status; nil if there is none.
func (s *TrainingRunStatus) Metric(name string) *float64 {
	for i := range s.Metrics {
		if s.Metrics[i].Name == name {
			return &s.Metrics[i].Value
		}
	}
	return nil
}

// Checkpoint returns the checkpoint with a name; nil if there is none.
func (s *TrainingRunStatus) Checkpoint(name string) *Checkpoint {
	for i := range s.Checkpoints {
		if name != "" && s.Checkpoints[i].Name == name {
			return &s.Checkpoints[i]
		}
	}
	return nil
}

// Checkpoint is a saved state.
type Checkpoint struct {
	// name is the name of the state at the endpoint, the last part of its path.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Name string `json:"name"`
	// step is the step after which the checkpoint was saved.
	// +required
	Step int64 `json:"step"`
	// state is the path to train on from.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	State string `json:"state,omitempty"`
	// sampler is the path to sample from.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Sampler string `json:"sampler,omitempty"`
	// lineage identifies the weights of the checkpoint: it is a digest of the settings and of the batches of all steps
	// that led to them.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Lineage string `json:"lineage,omitempty"`
	// attempt is the attempt that saved it.
	// +optional
	Attempt *int32 `json:"attempt,omitempty"`
	// saveTime is the time at which the checkpoint was saved.
	// +optional
	SaveTime *metav1.Time `json:"saveTime,omitempty"`
	// expirationTime is the time at which the endpoint deletes the checkpoint.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
	// metric is the metric by which the checkpoint was ranked.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Metric string `json:"metric,omitempty"`
	// value is the value of that metric.
	// +optional
	Value *float64 `json:"value,omitempty"`
}

// Attempt is one learner of the run, from its start to its end.
type Attempt struct {
	// number counts from 1.
	// +required
	Number int32 `json:"number"`
	// cause is the kind of the attempt's end.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Cause string `json:"cause,omitempty"`
	// reason is the code of the problem that ended the attempt, which docs/troubleshooting.md describes. It is empty if no
	// problem ended the attempt.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`
	// count is the number of consecutive attempts that ended for this reason and share this entry. number is the number of
	// the newest of these attempts. count is absent for a single attempt.
	// +optional
	Count int32 `json:"count,omitempty"`
	// message describes the attempt's end.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
	// startTime is the time at which the attempt began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// answerTime is the time at which the learner began to answer the operator, after its start or after the last period
	// without an answer.
	// +optional
	AnswerTime *metav1.Time `json:"answerTime,omitempty"`
	// completionTime is the time at which the attempt ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// fromStep is the step at which the attempt began.
	// +optional
	FromStep *int64 `json:"fromStep,omitempty"`
	// toStep is the last step that the attempt committed.
	// +optional
	ToStep *int64 `json:"toStep,omitempty"`
	// coldOptimizer says that the attempt resumed from a state without its optimizer: Adam started from zero.
	// +optional
	ColdOptimizer *bool `json:"coldOptimizer,omitempty"`
	// lostVersions is the number of older versions of the policy that algorithm.lag requires and that the attempt could no
	// longer sample. The attempt sampled a newer version instead, so that another run of the spec would have other
	// weights.
	// +optional
	LostVersions *int32 `json:"lostVersions,omitempty"`
}

// Usage counts the tokens of each answered request of all attempts once, even if the answer was not used. The counts
// include the checks before a run begins, and discarded steps, samples and evaluations.
type Usage struct {
	// promptTokens is the number of prompt tokens that were read. The prompt of a request counts once, whatever the number
	// of its samples.
	// +optional
	PromptTokens *int64 `json:"promptTokens,omitempty"`
	// cachedPromptTokens is the part of promptTokens that the endpoint reported as cached.
	// +optional
	CachedPromptTokens *int64 `json:"cachedPromptTokens,omitempty"`
	// sampledTokens is the number of sampled tokens.
	// +optional
	SampledTokens *int64 `json:"sampledTokens,omitempty"`
	// trainedTokens is the number of tokens that went through forward_backward, or through forward, which measures
	// held-out rows and finds data that the endpoint refuses.
	// +optional
	TrainedTokens *int64 `json:"trainedTokens,omitempty"`
	// boughtTwiceTokens is the part of trainedTokens whose result was lost, so that no step that led to the newest version
	// contains it.
	// +optional
	BoughtTwiceTokens *int64 `json:"boughtTwiceTokens,omitempty"`
	// judgePromptTokens is the number of tokens that judges read. promptTokens does not include them.
	// +optional
	JudgePromptTokens *int64 `json:"judgePromptTokens,omitempty"`
	// judgeSampledTokens is the number of tokens that judges sampled. sampledTokens does not include them.
	// +optional
	JudgeSampledTokens *int64 `json:"judgeSampledTokens,omitempty"`
	// referenceTokens is the number of tokens that the reference of a KL penalty read. promptTokens does not include them.
	// +optional
	ReferenceTokens *int64 `json:"referenceTokens,omitempty"`
	// teacherTokens is the number of tokens that teachers read. promptTokens does not include them.
	// +optional
	TeacherTokens *int64 `json:"teacherTokens,omitempty"`
	// unconfirmedTokens is the highest possible cost of requests that may or may not have been executed: requests in
	// flight, and requests of learners and workers that died. Budgets include these tokens; the other counts do not.
	// +optional
	UnconfirmedTokens *int64 `json:"unconfirmedTokens,omitempty"`
	// estimatedUSD is the cost of these tokens in dollars, at budget.prices, or else at the prices of the TinkerEndpoint,
	// or else at the prices in the operator's table. Each token has the price at which the attempt counted it; later
	// prices do not change its cost. estimatedUSD is absent if a price is not known.
	// +optional
	EstimatedUSD *float64 `json:"estimatedUSD,omitempty"`
	// unconfirmedUSD is the part of estimatedUSD for unconfirmedTokens, at the highest current price of the policy's
	// tokens.
	// +optional
	UnconfirmedUSD *float64 `json:"unconfirmedUSD,omitempty"`
}

// EnvironmentStatus is one environment as the run pinned it.
type EnvironmentStatus struct {
	// name is the name of the environment in the spec.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// digest is the digest of the RewardEnvironment's spec.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Digest string `json:"digest,omitempty"`
	// outdated says that the spec of the RewardEnvironment has changed since the run pinned it. The run keeps the spec
	// with which it began. A fork of the run uses the new spec.
	// +optional
	Outdated *bool `json:"outdated,omitempty"`
	// tasks is the number of tasks in the chosen splits.
	// +optional
	Tasks *int64 `json:"tasks,omitempty"`
	// reward is the mean reward of the newest step.
	// +optional
	Reward *float64 `json:"reward,omitempty"`
	// passAt1 is pass@1 of the newest evaluation.
	// +optional
	PassAt1 *float64 `json:"passAt1,omitempty"`
	// faultRatio is the share of the newest step's episodes that ended with a fault.
	// +optional
	FaultRatio *float64 `json:"faultRatio,omitempty"`
	// fault is the newest fault of an episode: its task, and the words of the environment or of the reward.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Fault string `json:"fault,omitempty"`
	// evaluation has the results of the newest evaluation: pass@k, solved@n, rewards in all and by role, and the metrics
	// of the environment.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Evaluation []Estimate `json:"evaluation,omitempty"`
}

// Estimate is a mean over the tasks of an evaluation.
type Estimate struct {
	// name is the name of the metric in metrics.jsonl, without the environment's name.
	// +kubebuilder:validation:MaxLength=128
	// +required
	Name string `json:"name"`
	// value is the measured value.
	// +required
	Value float64 `json:"value"`
	// low is the lower end of the confidence interval of 95%.
	// +optional
	Low *float64 `json:"low,omitempty"`
	// high is the upper end of the confidence interval of 95%.
	// +optional
	High *float64 `json:"high,omitempty"`
}

// QueueStatus is the place of a run in Kueue.
type QueueStatus struct {
	// name is the LocalQueue.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// workload is the name of the run's Workload.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Workload string `json:"workload,omitempty"`
}
