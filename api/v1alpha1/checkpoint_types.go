// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// OptimizerInit says whether the saved state of the optimizer is used.
// +kubebuilder:validation:Enum=Restore;Reset
type OptimizerInit string

// The values of OptimizerInit.
const (
	OptimizerRestore OptimizerInit = "Restore"
	OptimizerReset   OptimizerInit = "Reset"
)

// InitFrom is the source of the first weights.
// +kubebuilder:validation:XValidation:rule="has(self.checkpoint) != has(self.runRef)",message="give exactly one of checkpoint and runRef"
type InitFrom struct {
	// checkpoint is the path of a training state, tinker://RUN/weights/NAME. A run of mode Evaluate also accepts sampler
	// weights, tinker://RUN/sampler_weights/NAME.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^tinker://[^/]+/(weights|sampler_weights)/[^/]+$')",message="a checkpoint path is tinker://RUN/weights/NAME"
	// +optional
	Checkpoint string `json:"checkpoint,omitempty"`
	// runRef names a TrainingRun of this namespace and one of its checkpoints.
	// +optional
	RunRef *RunCheckpoint `json:"runRef,omitempty"`
	// optimizer selects the initial state of Adam: Restore for the saved state, Reset for a new one. Required to train.
	// +optional
	Optimizer OptimizerInit `json:"optimizer,omitempty"`
	// data selects the task or row at which the run begins. Restart begins with the first. Continue begins after the tasks
	// or rows that led to the checkpoint, which a TrainingRun must have saved. With the same seed and the same data, no
	// task or row repeats before all have been used.
	// +kubebuilder:default=Restart
	// +optional
	Data DataInit `json:"data,omitempty"`
}

// DataInit selects the first task or row of a run.
// +kubebuilder:validation:Enum=Restart;Continue
type DataInit string

// The values of DataInit.
const (
	DataRestart  DataInit = "Restart"
	DataContinue DataInit = "Continue"
)

// RunCheckpoint names a checkpoint of a TrainingRun.
type RunCheckpoint struct {
	// name is the name of the TrainingRun.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +required
	Name string `json:"name"`
	// step is the step of the checkpoint. If it is absent, the newest checkpoint is used.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Step *int64 `json:"step,omitempty"`
	// when selects the moment from which the checkpoint can be used. Available means once the TrainingRun has saved it,
	// Complete once the TrainingRun is Complete.
	// +kubebuilder:default=Available
	// +optional
	When RunRefWhen `json:"when,omitempty"`
}

// RunRefWhen selects the moment from which a checkpoint of another run is used.
// +kubebuilder:validation:Enum=Available;Complete
type RunRefWhen string

// The values of RunRefWhen.
const (
	WhenAvailable RunRefWhen = "Available"
	WhenComplete  RunRefWhen = "Complete"
)

// Checkpoints says when states are saved and how long they are kept. The last state, and the state that is saved on
// suspend, are kept forever.
// +kubebuilder:validation:XValidation:rule="!has(self.everySteps) || self.everySteps > 0 || !has(self.rolling) || !has(self.rolling.everySteps) || self.rolling.everySteps > 0",message="everySteps and rolling.everySteps are both 0, so that a lost pod would lose the run: set one above 0"
type Checkpoints struct {
	// everySteps is the number of steps between lasting checkpoints. With 0, only the last state is a lasting checkpoint.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=20
	// +optional
	EverySteps *int64 `json:"everySteps,omitempty"`
	// ttlSeconds is the time for which lasting checkpoints are kept. With 0, they are kept forever.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=604800
	// +optional
	TTLSeconds *int64 `json:"ttlSeconds,omitempty"`
	// rolling has the settings of states for recovery, which newer states replace.
	// +kubebuilder:default={}
	// +optional
	Rolling RollingCheckpoints `json:"rolling,omitzero"`
	// keepLast limits the number of lasting checkpoints. Older checkpoints are deleted. If it is absent, all are kept.
	// +kubebuilder:validation:Minimum=1
	// +optional
	KeepLast *int32 `json:"keepLast,omitempty"`
	// keepBest is the number of checkpoints that are kept because their bestMetric is the best. With 0, no checkpoint is
	// kept for this reason.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=8
	// +kubebuilder:default=1
	// +optional
	KeepBest *int32 `json:"keepBest,omitempty"`
	// bestMetric names the metric that ranks checkpoints. The highest value is the best; of a negative log-likelihood,
	// such as test/nll, the lowest value is the best. test/ENVIRONMENT/pass@1 ranks checkpoints by one environment. If
	// mode is Supervise and nothing is evaluated on environments, test/pass@1 means test/nll.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:default="test/pass@1"
	// +optional
	BestMetric string `json:"bestMetric,omitempty"`
}

// RollingCheckpoints are states for recovery.
type RollingCheckpoints struct {
	// everySteps is the number of steps between rolling states. With 0, none is saved.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=1
	// +optional
	EverySteps *int64 `json:"everySteps,omitempty"`
	// ttlSeconds is the time for which rolling states are kept after newer states have replaced them.
	// +kubebuilder:validation:Minimum=600
	// +kubebuilder:default=86400
	// +optional
	TTLSeconds *int64 `json:"ttlSeconds,omitempty"`
}
