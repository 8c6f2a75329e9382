// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package algorithm

// Baseline is subtracted from a reward.
// +kubebuilder:validation:Enum=GroupMean;LeaveOneOut;BatchMean;None
type Baseline string

// The baselines.
const (
	BaselineGroupMean   Baseline = "GroupMean"
	BaselineLeaveOneOut Baseline = "LeaveOneOut"
	BaselineBatchMean   Baseline = "BatchMean"
	BaselineNone        Baseline = "None"
)

// Scale divides an advantage.
// +kubebuilder:validation:Enum=None;GroupStd;BatchStd
type Scale string

// The scales.
const (
	ScaleNone     Scale = "None"
	ScaleGroupStd Scale = "GroupStd"
	ScaleBatchStd Scale = "BatchStd"
)

// Advantage turns rewards into advantages.
// +kubebuilder:validation:XValidation:rule="!has(self.baseline) || !has(self.scale) || self.baseline != 'LeaveOneOut' || self.scale == 'None'",message="baseline LeaveOneOut is GroupMean times n/(n-1) for a group of n, a factor that scale GroupStd or BatchStd divides out again: set baseline to GroupMean, or scale to None"
type Advantage struct {
	// baseline is subtracted from each reward. GroupMean is the mean of the rewards that grouping compares, LeaveOneOut
	// the mean of the others among them, BatchMean the mean of all rewards of the role in the batch. None subtracts
	// nothing. LeaveOneOut needs scale None.
	// +kubebuilder:default=GroupMean
	// +optional
	Baseline Baseline `json:"baseline,omitempty"`
	// scale divides the difference of reward and baseline by its standard deviation: GroupStd over the rewards that
	// grouping compares, BatchStd over all rewards of the role in the batch. None does not divide.
	// +kubebuilder:default=None
	// +optional
	Scale Scale `json:"scale,omitempty"`
	// ddof is the delta degrees of freedom of the standard deviation, whose divisor is the number of rewards minus ddof: 0
	// for a population, 1 for a sample.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +kubebuilder:default=0
	// +optional
	DDoF int32 `json:"ddof,omitempty"`
}

// RoleAdvantage turns the rewards of one role into advantages. Unset fields default to algorithm.advantage.
// +kubebuilder:validation:MinProperties=1
type RoleAdvantage struct {
	// baseline is subtracted from rewards. Defaults to algorithm.advantage.baseline.
	// +optional
	Baseline Baseline `json:"baseline,omitempty"`
	// scale divides the difference of reward and baseline. Defaults to algorithm.advantage.scale.
	// +optional
	Scale Scale `json:"scale,omitempty"`
	// ddof is the delta degrees of freedom of the standard deviation. Defaults to algorithm.advantage.ddof.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +optional
	DDoF *int32 `json:"ddof,omitempty"`
}

// RoleName is the name of a role of an environment. It is part of the names of metrics.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9_-]*$`
type RoleName string

// Role has the settings for training on the trajectories of one role.
// +kubebuilder:validation:XValidation:rule="has(self.advantage) || has(self.loss)",message="a role of algorithm.roles changes nothing: give advantage or loss, or remove the entry"
type Role struct {
	// name is the name of the role in the environment.
	// +required
	Name RoleName `json:"name"`
	// advantage turns the rewards of the role into advantages. Defaults to algorithm.advantage.
	// +optional
	Advantage *RoleAdvantage `json:"advantage,omitempty"`
	// loss is the loss of the role's data. Defaults to algorithm.loss. One optimizer step follows the data of all roles.
	// +optional
	Loss *Loss `json:"loss,omitempty"`
}

// Grouping selects the trajectories that are compared with each other.
// +kubebuilder:validation:Enum=Trajectory;Step;Episode
type Grouping string

// The groupings.
const (
	GroupingTrajectory Grouping = "Trajectory"
	GroupingStep       Grouping = "Step"
	GroupingEpisode    Grouping = "Episode"
)

// LossName names a loss.
// +kubebuilder:validation:Enum=ImportanceSampling;PPO;CISPO;GSPO
type LossName string

// The losses.
const (
	LossImportanceSampling LossName = "ImportanceSampling"
	LossPPO                LossName = "PPO"
	LossCISPO              LossName = "CISPO"
	LossGSPO               LossName = "GSPO"
)

// Loss is the loss and its settings.
// +kubebuilder:validation:XValidation:rule="self.name in ['PPO', 'CISPO', 'GSPO'] || (!has(self.clipLow) && !has(self.clipHigh))",message="clipLow and clipHigh are settings of PPO, CISPO and GSPO: remove them or change loss.name"
// +kubebuilder:validation:XValidation:rule="!has(self.clipLow) || has(self.clipHigh) || self.clipLow < (self.name == 'CISPO' ? 4.0 : 1.2)",message="clipLow must be below clipHigh, which is 1.2 for PPO and GSPO and 4 for CISPO unless it is given: lower clipLow or give clipHigh"
// +kubebuilder:validation:XValidation:rule="!has(self.clipHigh) || has(self.clipLow) || self.clipHigh > (self.name == 'CISPO' ? 0.0 : 0.8)",message="clipHigh must be above clipLow, which is 0.8 for PPO and GSPO and 0 for CISPO unless it is given: raise clipHigh or give clipLow"
// +kubebuilder:validation:XValidation:rule="!has(self.clipLow) || !has(self.clipHigh) || self.clipLow < self.clipHigh",message="clipLow must be below clipHigh; both are bounds of the probability ratio, such as 0.8 and 1.2"
type Loss struct {
	// name is the name of the loss.
	// +required
	Name LossName `json:"name"`
	// clipLow is the minimum of the probability ratio of a token, or of a sequence if name is GSPO. Defaults to 0.8, or to
	// 0 if name is CISPO.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ClipLow *float64 `json:"clipLow,omitempty"`
	// clipHigh is the maximum of the probability ratio. Defaults to 1.2, or to 4 if name is CISPO.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ClipHigh *float64 `json:"clipHigh,omitempty"`
}

// ConstantGroupPolicy selects the treatment of a group whose rewards are all equal.
// +kubebuilder:validation:Enum=Keep;Drop
type ConstantGroupPolicy string

// The policies for constant groups.
const (
	KeepConstantGroups ConstantGroupPolicy = "Keep"
	DropConstantGroups ConstantGroupPolicy = "Drop"
)

// DroppedGroupPolicy selects a batch's reaction to a group that was dropped.
// +kubebuilder:validation:Enum=Refill;Shrink
type DroppedGroupPolicy string

// The policies for dropped groups.
const (
	RefillDroppedGroups DroppedGroupPolicy = "Refill"
	ShrinkDroppedGroups DroppedGroupPolicy = "Shrink"
)

// Algorithm turns groups of episodes into optimizer steps.
// +kubebuilder:validation:XValidation:rule="has(self.steps) != has(self.epochs)",message="give exactly one of steps and epochs"
// +kubebuilder:validation:XValidation:rule="!has(self.lag) || self.lag == 0 || self.loss.name in ['PPO', 'CISPO', 'GSPO']",message="lag above 0 trains on samples of older policies, which needs a clipped loss: set loss.name to PPO, CISPO or GSPO, or lag to 0"
// +kubebuilder:validation:XValidation:rule="!has(self.lag) || self.lag == 0 || !has(self.roles) || self.roles.all(r, !has(r.loss) || r.loss.name in ['PPO', 'CISPO', 'GSPO'])",message="lag above 0 trains on samples of older policies, which needs clipped losses: set the loss.name of every entry of roles to PPO, CISPO or GSPO, or lag to 0"
// +kubebuilder:validation:XValidation:rule="!has(self.roles) || self.roles.all(r, !has(r.advantage) || (has(r.advantage.baseline) ? r.advantage.baseline : self.advantage.baseline) != 'LeaveOneOut' || (has(r.advantage.scale) ? r.advantage.scale : self.advantage.scale) == 'None')",message="an entry of roles has baseline LeaveOneOut with scale GroupStd or BatchStd, given there or in advantage: LeaveOneOut is GroupMean times n/(n-1) for a group of n, a factor that scale divides out again: set the entry's baseline to GroupMean, or its scale to None"
type Algorithm struct {
	// tasksPerStep is the number of groups in one batch. The groups have different tasks, if there are enough tasks.
	// Required in mode Train.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	TasksPerStep int32 `json:"tasksPerStep,omitempty"`
	// steps is the number of steps of the run. Once a step is committed, steps can only be raised, and only if
	// optimizer.schedule is Constant. In a run in progress, the new number takes effect with the learner's next attempt,
	// which begins at the latest after the former number of steps. A complete run continues.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	Steps int64 `json:"steps,omitempty"`
	// epochs is the number of passes over all tasks. The run has epochs x tasks / tasksPerStep steps, rounded down, but at
	// least one. In mode Supervise it has epochs x rows / supervised.batchSize steps. epochs may be raised like steps.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Epochs int64 `json:"epochs,omitempty"`
	// seed decides the order of tasks, and the seeds of samples and environments.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	// +optional
	Seed int64 `json:"seed,omitempty"`
	// advantage turns rewards into advantages.
	// +kubebuilder:default={}
	// +optional
	Advantage Advantage `json:"advantage,omitzero"`
	// loss is the loss with its settings.
	// +kubebuilder:default={name: ImportanceSampling}
	// +optional
	Loss Loss `json:"loss,omitzero"`
	// grouping selects the trajectories that are compared with each other for advantages. Each conversation of an episode
	// is a trajectory with rewards of its own. Trajectory compares the rewards of one role in all episodes of a task. Step
	// compares the replies of one role with the same index, each with its own reward. Episode compares the trajectories of
	// one episode. (rLLM: grouping_level.)
	// +kubebuilder:default=Trajectory
	// +optional
	Grouping Grouping `json:"grouping,omitempty"`
	// roles are the roles whose advantage or loss differs from the algorithm's own.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Roles []Role `json:"roles,omitempty"`
	// kl is a penalty for tokens that are more likely under the policy than under a reference. Defaults to no penalty.
	// +optional
	KL *KL `json:"kl,omitempty"`
	// substeps is the number of optimizer steps into which one batch is split.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=1
	// +optional
	Substeps int32 `json:"substeps,omitempty"`
	// lag is the number of steps by which the sampling policy is older than the trained policy. A lag above 0 lets
	// sampling and training overlap, and needs the loss PPO, CISPO or GSPO.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16
	// +kubebuilder:default=0
	// +optional
	Lag int32 `json:"lag,omitempty"`
	// constantGroups selects the treatment of trajectories that grouping compares and whose rewards are all equal. Keep
	// trains on them; their advantages are 0 with the baselines GroupMean and LeaveOneOut. Drop leaves them out, unless a
	// teacher scores them, and drops the whole group of a task if none of its trajectories is left.
	// +kubebuilder:default=Keep
	// +optional
	ConstantGroups ConstantGroupPolicy `json:"constantGroups,omitempty"`
	// onDroppedGroup selects a batch's reaction to a group that was dropped. Refill takes further tasks until the batch is
	// full. Shrink trains on a smaller batch.
	// +kubebuilder:default=Refill
	// +optional
	OnDroppedGroup DroppedGroupPolicy `json:"onDroppedGroup,omitempty"`
	// optimizer has the settings of AdamW.
	// +required
	Optimizer Optimizer `json:"optimizer"`
}

// KL is a penalty on advantages, as in tinker-cookbook. A token's advantage changes by coefficient times m - d, where d
// is the token's log-probability under the policy minus its log-probability under the reference, and m is the mean of d
// over all sampled tokens of the batch.
type KL struct {
	// coefficient is the factor of the penalty. (tinker-cookbook: kl_penalty_coef; rLLM: kl_beta.)
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=100
	// +required
	Coefficient float64 `json:"coefficient"`
	// discount adds the penalties of later tokens to a token's own penalty, each multiplied by discount to the power of
	// its distance in tokens. With 0, none is added. (tinker-cookbook: kl_discount_factor.)
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +kubebuilder:default=0.0
	// +optional
	Discount float64 `json:"discount,omitempty"`
	// reference is the model to stay close to. Defaults to the base model of the run.
	// +optional
	Reference *Reference `json:"reference,omitempty"`
}

// Reference is a base model or a checkpoint. (tinker-cookbook: kl_reference_config.)
// +kubebuilder:validation:XValidation:rule="has(self.model) != has(self.checkpoint)",message="give exactly one of model and checkpoint, or leave reference out for the run's base model"
type Reference struct {
	// model is a base model that has the run's tokenizer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Model string `json:"model,omitempty"`
	// checkpoint is the path of sampler weights, tinker://RUN/sampler_weights/NAME.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^tinker://.+/sampler_weights/.+$')",message="checkpoint must name sampler weights, tinker://RUN/sampler_weights/NAME, since a training state cannot be sampled"
	// +optional
	Checkpoint string `json:"checkpoint,omitempty"`
}

// Schedule selects how the learning rate falls after the warm-up.
// +kubebuilder:validation:Enum=Constant;Linear;Cosine
type Schedule string

// The schedules.
const (
	ScheduleConstant Schedule = "Constant"
	ScheduleLinear   Schedule = "Linear"
	ScheduleCosine   Schedule = "Cosine"
)

// Falls reports whether the learning rate of a step depends on the number of steps of the run.
func (s Schedule) Falls() bool { return s == ScheduleLinear || s == ScheduleCosine }

// Optimizer is AdamW.
type Optimizer struct {
	// learningRate is the rate at the schedule's peak. Write 4.0e-5: YAML 1.1 readers such as Python's read 4e-5 as a
	// string.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=1
	// +required
	LearningRate float64 `json:"learningRate"`
	// schedule selects how the learning rate falls after the warm-up. Constant keeps it. Linear and Cosine reach 0 at the
	// end of the run.
	// +kubebuilder:default=Constant
	// +optional
	Schedule Schedule `json:"schedule,omitempty"`
	// warmupSteps is the number of steps in which the learning rate rises linearly from 0 to learningRate.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	// +optional
	WarmupSteps int64 `json:"warmupSteps,omitempty"`
	// beta1 is the beta1 of Adam.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +kubebuilder:validation:ExclusiveMaximum=true
	// +kubebuilder:default=0.9
	// +optional
	Beta1 *float64 `json:"beta1,omitempty"`
	// beta2 is the beta2 of Adam.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +kubebuilder:validation:ExclusiveMaximum=true
	// +kubebuilder:default=0.95
	// +optional
	Beta2 *float64 `json:"beta2,omitempty"`
	// epsilon is the epsilon of Adam.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:default=1.0e-8
	// +optional
	Epsilon float64 `json:"epsilon,omitempty"`
	// weightDecay is the decoupled weight decay.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0.0
	// +optional
	WeightDecay float64 `json:"weightDecay,omitempty"`
	// gradClipNorm is the maximum norm of the gradient. With 0, the gradient is not clipped.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0.0
	// +optional
	GradClipNorm float64 `json:"gradClipNorm,omitempty"`
}
