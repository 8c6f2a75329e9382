// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// HeartbeatPath is the path to which heartbeats are posted.
const HeartbeatPath = "/heartbeat"

// Desired is an order of the manager to the learner.
type Desired string

// DesiredRun makes the learner continue to train, and DesiredDrain makes it stop at a saved state.
const (
	DesiredRun   Desired = "Run"
	DesiredDrain Desired = "Drain"
)

// HeartbeatRequest is the body of a heartbeat.
type HeartbeatRequest struct {
	RunUID string `json:"runUID"`
	// Attempt is the newest attempt that the manager has started. The learner of a lower attempt stops, fenced.
	Attempt int32   `json:"attempt"`
	Desired Desired `json:"desired"`
	// HistoryVersion is the version of the records that the manager reads; 0 for a manager that reads none.
	HistoryVersion int32 `json:"historyVersion,omitempty"`
	// KnownRecords is the number of the newest record of this learner that the manager has stored.
	KnownRecords int64 `json:"knownRecords,omitempty"`
}

// Phase is the current activity of the learner.
type Phase string

// The phases of a learner.
const (
	PhaseOpening    Phase = "Opening"
	PhaseTraining   Phase = "Training"
	PhaseEvaluating Phase = "Evaluating"
	PhaseDraining   Phase = "Draining"
	PhaseDone       Phase = "Done"
)

// HeartbeatReply is the learner's answer to a heartbeat.
type HeartbeatReply struct {
	RunUID  string `json:"runUID"`
	Attempt int32  `json:"attempt"`
	// Sequence grows by one with each change of Progress.
	Sequence int64 `json:"sequence"`
	// SecondsSinceProgress is the time since a group was accepted, a step was committed, or a failing call to the
	// endpoint recovered.
	SecondsSinceProgress float64 `json:"secondsSinceProgress"`
	// Waiting describes the reason of a wait for people, such as "sampling: 3 of 32 groups". It is empty if the loop
	// does not wait.
	Waiting string `json:"waiting,omitempty"`
	// Problems keep the run from making progress. The first one decides the conditions.
	Problems []problem.Problem `json:"problems,omitempty"`
	// Unavailable are the environments that no worker can play, by name.
	Unavailable []UnavailableEnvironment `json:"unavailable,omitempty"`
	// Tracking are the problems of the services that show the run's curves, during which training continues.
	Tracking []tracking.Problem `json:"tracking,omitempty"`
	Progress Progress           `json:"progress"`
	// Records are the oldest records after KnownRecords of the request, at most MaxRecords and about MaxRecordsBytes.
	Records []Record `json:"records,omitempty"`
	// MoreRecords says that there are newer records, for which the reply has no room.
	MoreRecords bool `json:"moreRecords,omitempty"`
}

// UnavailableEnvironment is an environment whose server takes no sessions at any worker.
type UnavailableEnvironment struct {
	Name string `json:"name"`
	// Problem describes a worker's observation in one line.
	Problem string `json:"problem"`
	// Code is a code that is more specific than EnvironmentUnavailable and ServersUnavailable, or empty.
	Code problem.Code `json:"code,omitempty"`
	// Skipped says that the run trains on its other environments until this one is available again.
	Skipped bool `json:"skipped,omitempty"`
}

// Problem returns the problem that keeps the run waiting, and whether there is any. Waiting for episodes is no problem.
func (r HeartbeatReply) Problem() (problem.Problem, bool) {
	if len(r.Problems) == 0 {
		return problem.Problem{}, false
	}
	return r.Problems[0], true
}

// AwaitsRepair reports whether the learner waits for something that a person has to repair.
func (r HeartbeatReply) AwaitsRepair() bool {
	found, any := r.Problem()
	return any && problem.Lookup(found.Code).NeedsAction
}

// Progress is the progress of the run.
type Progress struct {
	Phase  Phase `json:"phase"`
	Step   int64 `json:"step"`
	Steps  int64 `json:"steps"`
	Cursor int64 `json:"cursor"`
	// FromStep is the step that this attempt began at.
	FromStep int64  `json:"fromStep"`
	Lineage  string `json:"lineage,omitempty"`
	// Metrics are the metrics of the newest step and evaluation, under the names of metrics.jsonl.
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// EvaluatedStep is the step of the evaluation whose metrics are in Metrics; nil before the first evaluation.
	EvaluatedStep *int64 `json:"evaluatedStep,omitempty"`
	// Diverged says that a metric was NaN or infinite.
	Diverged bool `json:"diverged,omitempty"`
	// Checkpoints are the newest checkpoints, at most 16, the newest first.
	Checkpoints []Checkpoint `json:"checkpoints,omitempty"`
	Best        *Checkpoint  `json:"best,omitempty"`
	Usage       Usage        `json:"usage"`
	// EstimatedUSD is the cost of Usage, each token at the price when it was counted; nil if a price is not known.
	EstimatedUSD *float64 `json:"estimatedUSD,omitempty"`
	// UnconfirmedUSD is the part of EstimatedUSD that the unconfirmed tokens cost; nil if a price is not known, and in
	// reports of earlier versions of the program.
	UnconfirmedUSD *float64 `json:"unconfirmedUSD,omitempty"`
	// Environments are keyed by name.
	Environments []EnvironmentMetrics `json:"environments,omitempty"`
	// ResumedFrom is the run that this run continues; nil if there is none.
	ResumedFrom *ResumedFrom `json:"resumedFrom,omitempty"`
	// EarlierRun is an earlier run of the same namespace and name that this run does not continue; nil if there is none.
	EarlierRun *EarlierRun `json:"earlierRun,omitempty"`
	// WorkersSeen is the number of live workers that have sent Hello to this attempt.
	WorkersSeen int `json:"workersSeen"`
	// Capabilities are the endpoint's capabilities; nil until they are known.
	Capabilities *Capabilities `json:"capabilities,omitempty"`
	// ColdOptimizer says that this attempt resumed from a state without its optimizer: Adam started from zero.
	ColdOptimizer bool `json:"coldOptimizer,omitempty"`
	// LostVersions is the number of versions of the lag's window that had neither sampler weights nor a state left and
	// were replaced by a newer version.
	LostVersions int32 `json:"lostVersions,omitempty"`
	// TokenizerSHA256 is the digest of the vocabulary's file, 64 hex digits; empty while it is not known, and for a
	// vocabulary that is built in.
	TokenizerSHA256 string `json:"tokenizerSHA256,omitempty"`
	// TemplateSHA256 is the digest of the chat template with its special tokens; empty while it is not known, and for a
	// renderer.
	TemplateSHA256 string `json:"templateSHA256,omitempty"`
	// Contents are the data that a supervised run has read; nil until then, and for tasks that are generated.
	Contents *DataContents `json:"contents,omitempty"`
	// Console is the address at which the service shows the session of the models; empty for an endpoint without one.
	Console string `json:"console,omitempty"`
	// TrainingSeconds is the time that all attempts have spent on committed steps, as far as the stored rows show.
	TrainingSeconds float64 `json:"trainingSeconds"`
}

// SetCost sets the cost of the usage. cost is nil if a price is not known.
func (p *Progress) SetCost(cost *spending.Cost) {
	p.EstimatedUSD, p.UnconfirmedUSD = nil, nil
	if cost != nil {
		total := cost.Total()
		p.EstimatedUSD, p.UnconfirmedUSD = &total, &cost.Unconfirmed
	}
}

// EndpointVariable is the environment variable with the name of a learner's TinkerEndpoint. Such a learner asks the
// broker which features the server supports, instead of checking them itself.
const EndpointVariable = "TINKER_ENDPOINT"

// These are the capabilities that the manager refers to.
const (
	CapabilityOptimizerRestore = "optimizer_restore"
	CapabilitySeed             = "seed"
	CapabilityListCheckpoints  = "list_checkpoints"
	CapabilityGradientSum      = "gradient_sum"
	CapabilityRepeats          = "repeats"
)

// Checkpoint is a saved state with its sampler weights. Times are RFC 3339.
type Checkpoint struct {
	Step           int64    `json:"step"`
	State          string   `json:"state"`
	Sampler        string   `json:"sampler,omitempty"`
	Lineage        string   `json:"lineage"`
	Attempt        int32    `json:"attempt"`
	SaveTime       string   `json:"saveTime,omitempty"`
	ExpirationTime string   `json:"expirationTime,omitempty"`
	Metric         string   `json:"metric,omitempty"`
	Value          *float64 `json:"value,omitempty"`
}

// Usage counts the tokens of a run.
type Usage = spending.Usage

// EnvironmentMetrics are the metrics of one environment in the newest step and evaluation.
type EnvironmentMetrics struct {
	Name       string   `json:"name"`
	Reward     *float64 `json:"reward,omitempty"`
	PassAt1    *float64 `json:"passAt1,omitempty"`
	FaultRatio *float64 `json:"faultRatio,omitempty"`
	// Fault is the newest fault of an episode, with its task; empty if this learner has seen none.
	Fault string `json:"fault,omitempty"`
	// Evaluation has the results of the newest evaluation, at most MaxEstimates, the most important first.
	Evaluation []Estimate `json:"evaluation,omitempty"`
}

// MaxEstimates limits the reported estimates of an environment.
const MaxEstimates = 16

// Estimate is a metric of an evaluation with its confidence interval of 95%.
type Estimate struct {
	// Name is the metric's name without the environment: pass@1, solver_acc, judge/reward/total.
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	// Low and High are nil if there is no interval.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
}

// Cause is the cause of an attempt's end. A learner reports the first eight itself; the manager infers the rest.
type Cause string

// The causes.
const (
	CauseCompleted      Cause = "Completed"
	CauseDrained        Cause = "Drained"
	CauseUpstream       Cause = "Upstream"
	CauseConfigRejected Cause = "ConfigRejected"
	CauseDataRejected   Cause = "DataRejected"
	CauseCrashed        Cause = "Crashed"
	CauseFenced         Cause = "Fenced"
	CauseStalled        Cause = "Stalled"
	CauseDisrupted      Cause = "Disrupted"
	CauseNodeLost       Cause = "NodeLost"
	CauseOOMKilled      Cause = "OOMKilled"
	CauseStartTimeout   Cause = "StartTimeout"
	CauseUnknown        Cause = "Unknown"
	CauseRefused        Cause = "Refused"
)

// Reported reports whether learners report the cause themselves.
func (c Cause) Reported() bool {
	switch c {
	case CauseCompleted, CauseDrained, CauseUpstream, CauseConfigRejected, CauseDataRejected, CauseCrashed, CauseFenced,
		CauseStalled:
		return true
	default:
		return false
	}
}

// Verdict is the last report of a learner, at most 4,096 bytes of JSON in the termination message.
type Verdict struct {
	Cause Cause `json:"cause"`
	// Reason is the code of the problem that ended the attempt; empty if the cause says everything.
	Reason problem.Code `json:"reason,omitempty"`
	// Message is for people and names the repair.
	Message  string   `json:"message,omitempty"`
	Attempt  int32    `json:"attempt"`
	Progress Progress `json:"progress"`
}

// ExitCode returns the exit code of a learner that ends with the cause.
func (c Cause) ExitCode() int {
	switch c {
	case CauseCompleted:
		return 0
	case CauseConfigRejected:
		return 64
	case CauseDataRejected:
		return 65
	case CauseDrained, CauseUpstream:
		return 75
	case CauseFenced:
		return 77
	default:
		return 1
	}
}
