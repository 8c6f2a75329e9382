// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

// Baseline is what is subtracted from a reward.
type Baseline string

// The baselines.
const (
	BaselineGroupMean   Baseline = "GroupMean"
	BaselineLeaveOneOut Baseline = "LeaveOneOut"
	BaselineBatchMean   Baseline = "BatchMean"
	BaselineNone        Baseline = "None"
)

// Grouping is which trajectories are compared with each other to get advantages. The empty string means those of one
// role in all members of a slot.
type Grouping string

// The groupings besides the empty one.
const (
	// GroupingStep compares the steps of one index, each with its own reward, of the same trajectories.
	GroupingStep Grouping = "Step"
	// GroupingEpisode compares the trajectories of one member.
	GroupingEpisode Grouping = "Episode"
)

// Scale is what an advantage is divided by.
type Scale string

// The scales.
const (
	ScaleNone     Scale = "None"
	ScaleGroupStd Scale = "GroupStd"
	ScaleBatchStd Scale = "BatchStd"
)

// LossName is a loss as the Tinker API spells it.
type LossName string

// The losses.
const (
	LossImportanceSampling LossName = "importance_sampling"
	LossPPO                LossName = "ppo"
	LossCISPO              LossName = "cispo"
)

// Clips reports whether the loss bounds the probability ratio, which training on samples of an older policy needs.
func (n LossName) Clips() bool { return n == LossPPO || n == LossCISPO }

// The settings of losses as the Tinker API spells them.
const (
	SettingClipLow  = "clip_low_threshold"
	SettingClipHigh = "clip_high_threshold"
)

// Schedule is how the learning rate changes after the warm-up.
type Schedule string

// The schedules.
const (
	ScheduleConstant Schedule = "Constant"
	ScheduleLinear   Schedule = "Linear"
	ScheduleCosine   Schedule = "Cosine"
)

// OnLimit is what becomes of an episode that a limit ended. The empty string means Grade.
type OnLimit string

// What can become of an episode that a limit ended.
const (
	OnLimitGrade   OnLimit = "Grade"
	OnLimitZero    OnLimit = "Zero"
	OnLimitExclude OnLimit = "Exclude"
)

// Reduction is how the rewards of an episode become one number.
type Reduction string

// The reductions.
const (
	ReductionSum  Reduction = "Sum"
	ReductionMean Reduction = "Mean"
	ReductionMax  Reduction = "Max"
	ReductionMin  Reduction = "Min"
	ReductionLast Reduction = "Last"
)

// SecretDelivery is where a server reads the secrets of its sessions.
type SecretDelivery string

// Where a server can read secrets.
const (
	DeliverHeader SecretDelivery = "Header"
	DeliverBody   SecretDelivery = "Body"
	DeliverBoth   SecretDelivery = "Both"
)

// ToolDialect is how calls of tools are written.
type ToolDialect string

// The dialects of calls. Empty, it is that of the model's format.
const (
	// HermesJSON is a JSON object with name and arguments between <tool_call> tags.
	HermesJSON ToolDialect = "HermesJSON"
	// QwenXML is <function=NAME> with a <parameter=NAME> for each argument between these tags.
	QwenXML ToolDialect = "QwenXML"
)

// TrainParseErrors is what training makes of replies that break the model's format.
type TrainParseErrors string

// What training can make of replies that break the model's format.
const (
	TrainKeep TrainParseErrors = "Keep"
	TrainMask TrainParseErrors = "Mask"
)
