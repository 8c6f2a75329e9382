// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/tracking"
)

// TrainingRun is one run against the Tinker API: reinforcement learning, supervised training, or an evaluation. It
// names the model, the data and the settings. The operator continues it until its last step is committed, whatever
// happens to its pods.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.rollouts.workers,statuspath=.status.workers,selectorpath=.status.workerSelector
// +kubebuilder:resource:shortName=trun,categories=tinker
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Step",type=integer,JSONPath=`.status.step`
// +kubebuilder:printcolumn:name="Steps",type=integer,JSONPath=`.status.steps`
// +kubebuilder:printcolumn:name="Reward",type=number,JSONPath=`.status.metrics[?(@.name=="env/all/reward/total")].value`
// +kubebuilder:printcolumn:name="Pass@1",type=number,JSONPath=`.status.metrics[?(@.name=="test/pass@1")].value`
// +kubebuilder:printcolumn:name="Checkpoint",type=integer,JSONPath=`.status.checkpoints[0].step`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Model",type=string,priority=1,JSONPath=`.spec.model.name`
// +kubebuilder:printcolumn:name="USD",type=number,priority=1,JSONPath=`.status.usage.estimatedUSD`
// +kubebuilder:printcolumn:name="Workers",type=integer,priority=1,JSONPath=`.status.workers`
// +kubebuilder:printcolumn:name="Lineage",type=string,priority=1,JSONPath=`.status.checkpoints[0].lineage`
// +kubebuilder:printcolumn:name="NLL",type=number,priority=1,JSONPath=`.status.metrics[?(@.name=="train_mean_nll")].value`
// +kubebuilder:printcolumn:name="Test-NLL",type=number,priority=1,JSONPath=`.status.metrics[?(@.name=="test/nll")].value`
// +kubebuilder:selectablefield:JSONPath=`.spec.model.name`
// +kubebuilder:selectablefield:JSONPath=`.status.state`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$')",optionalOldSelf=true,message="metadata.name must have at most 40 characters, of a-z, 0-9 and '-', begin with a letter and end with a letter or digit: pods, Jobs and the Service are named after the run; shorten or rename it"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (has(oldSelf.status.settingsFixed) && !oldSelf.status.settingsFixed) || (self.spec.model.name == oldSelf.spec.model.name && has(self.spec.model.loraRank) == has(oldSelf.spec.model.loraRank) && (!has(self.spec.model.loraRank) || self.spec.model.loraRank == oldSelf.spec.model.loraRank) && has(self.spec.model.trainModules) == has(oldSelf.spec.model.trainModules) && (!has(self.spec.model.trainModules) || self.spec.model.trainModules == oldSelf.spec.model.trainModules) && has(self.spec.model.seed) == has(oldSelf.spec.model.seed) && (!has(self.spec.model.seed) || self.spec.model.seed == oldSelf.spec.model.seed) && has(self.spec.model.renderer) == has(oldSelf.spec.model.renderer) && (!has(self.spec.model.renderer) || self.spec.model.renderer == oldSelf.spec.model.renderer) && has(self.spec.model.date) == has(oldSelf.spec.model.date) && (!has(self.spec.model.date) || self.spec.model.date == oldSelf.spec.model.date) && has(self.spec.model.tokenizer) == has(oldSelf.spec.model.tokenizer) && (!has(self.spec.model.tokenizer) || has(self.spec.model.tokenizer.repository) == has(oldSelf.spec.model.tokenizer.repository) && (!has(self.spec.model.tokenizer.repository) || self.spec.model.tokenizer.repository == oldSelf.spec.model.tokenizer.repository) && has(self.spec.model.tokenizer.revision) == has(oldSelf.spec.model.tokenizer.revision) && (!has(self.spec.model.tokenizer.revision) || self.spec.model.tokenizer.revision == oldSelf.spec.model.tokenizer.revision) && has(self.spec.model.tokenizer.url) == has(oldSelf.spec.model.tokenizer.url) && (!has(self.spec.model.tokenizer.url) || self.spec.model.tokenizer.url == oldSelf.spec.model.tokenizer.url) && has(self.spec.model.tokenizer.sha256) == has(oldSelf.spec.model.tokenizer.sha256) && (!has(self.spec.model.tokenizer.sha256) || self.spec.model.tokenizer.sha256 == oldSelf.spec.model.tokenizer.sha256)))",fieldPath=".spec.model",reason=FieldValueForbidden,message="model decides the weights and is fixed once a step is committed: create another run, kubectl tinker create -f FILE --name NAME"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (has(oldSelf.status.settingsFixed) && !oldSelf.status.settingsFixed) || (has(self.spec.tinker.baseURL) == has(oldSelf.spec.tinker.baseURL) && (!has(self.spec.tinker.baseURL) || self.spec.tinker.baseURL == oldSelf.spec.tinker.baseURL))",fieldPath=".spec.tinker.baseURL",reason=FieldValueForbidden,message="tinker.baseURL is fixed once a step is committed, since the checkpoints are there: create another run"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (has(oldSelf.status.settingsFixed) && !oldSelf.status.settingsFixed) || (has(self.spec.tinker.endpointRef) == has(oldSelf.spec.tinker.endpointRef) && (!has(self.spec.tinker.endpointRef) || self.spec.tinker.endpointRef == oldSelf.spec.tinker.endpointRef))",fieldPath=".spec.tinker.endpointRef",reason=FieldValueForbidden,message="tinker.endpointRef is fixed once a step is committed, since the checkpoints are there: create another run"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (has(oldSelf.status.settingsFixed) && !oldSelf.status.settingsFixed) || (has(self.spec.environments) == has(oldSelf.spec.environments) && (!has(self.spec.environments) || self.spec.environments == oldSelf.spec.environments))",fieldPath=".spec.environments",reason=FieldValueForbidden,message="environments decide the weights and are fixed once a step is committed: create another run that begins with the weights of this one, kubectl tinker fork",messageExpression="'environments decide the weights and are fixed once a step is committed: create another run that begins with the weights of this one, kubectl tinker fork ' + self.metadata.name + ' --set spec.environments[NAME].FIELD=VALUE'"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (has(oldSelf.status.settingsFixed) && !oldSelf.status.settingsFixed) || (has(self.spec.algorithm) == has(oldSelf.spec.algorithm) && (!has(self.spec.algorithm) || has(self.spec.algorithm.tasksPerStep) == has(oldSelf.spec.algorithm.tasksPerStep) && (!has(self.spec.algorithm.tasksPerStep) || self.spec.algorithm.tasksPerStep == oldSelf.spec.algorithm.tasksPerStep) && has(self.spec.algorithm.seed) == has(oldSelf.spec.algorithm.seed) && (!has(self.spec.algorithm.seed) || self.spec.algorithm.seed == oldSelf.spec.algorithm.seed) && has(self.spec.algorithm.advantage) == has(oldSelf.spec.algorithm.advantage) && (!has(self.spec.algorithm.advantage) || self.spec.algorithm.advantage == oldSelf.spec.algorithm.advantage) && has(self.spec.algorithm.loss) == has(oldSelf.spec.algorithm.loss) && (!has(self.spec.algorithm.loss) || self.spec.algorithm.loss == oldSelf.spec.algorithm.loss) && has(self.spec.algorithm.grouping) == has(oldSelf.spec.algorithm.grouping) && (!has(self.spec.algorithm.grouping) || self.spec.algorithm.grouping == oldSelf.spec.algorithm.grouping) && has(self.spec.algorithm.roles) == has(oldSelf.spec.algorithm.roles) && (!has(self.spec.algorithm.roles) || self.spec.algorithm.roles == oldSelf.spec.algorithm.roles) && has(self.spec.algorithm.kl) == has(oldSelf.spec.algorithm.kl) && (!has(self.spec.algorithm.kl) || self.spec.algorithm.kl == oldSelf.spec.algorithm.kl) && has(self.spec.algorithm.substeps) == has(oldSelf.spec.algorithm.substeps) && (!has(self.spec.algorithm.substeps) || self.spec.algorithm.substeps == oldSelf.spec.algorithm.substeps) && has(self.spec.algorithm.lag) == has(oldSelf.spec.algorithm.lag) && (!has(self.spec.algorithm.lag) || self.spec.algorithm.lag == oldSelf.spec.algorithm.lag) && has(self.spec.algorithm.constantGroups) == has(oldSelf.spec.algorithm.constantGroups) && (!has(self.spec.algorithm.constantGroups) || self.spec.algorithm.constantGroups == oldSelf.spec.algorithm.constantGroups) && has(self.spec.algorithm.onDroppedGroup) == has(oldSelf.spec.algorithm.onDroppedGroup) && (!has(self.spec.algorithm.onDroppedGroup) || self.spec.algorithm.onDroppedGroup == oldSelf.spec.algorithm.onDroppedGroup) && self.spec.algorithm.optimizer == oldSelf.spec.algorithm.optimizer))",fieldPath=".spec.algorithm",reason=FieldValueForbidden,message="algorithm decides the weights and is fixed once a step is committed: create another run that begins with the weights of this one, kubectl tinker fork",messageExpression="'algorithm decides the weights and is fixed once a step is committed: create another run that begins with the weights of this one, kubectl tinker fork ' + self.metadata.name + ' --set spec.algorithm.' + (self.spec.algorithm.optimizer.learningRate != oldSelf.spec.algorithm.optimizer.learningRate ? 'optimizer.learningRate' : has(self.spec.algorithm.tasksPerStep) != has(oldSelf.spec.algorithm.tasksPerStep) || has(self.spec.algorithm.tasksPerStep) && self.spec.algorithm.tasksPerStep != oldSelf.spec.algorithm.tasksPerStep ? 'tasksPerStep' : has(self.spec.algorithm.seed) != has(oldSelf.spec.algorithm.seed) || has(self.spec.algorithm.seed) && self.spec.algorithm.seed != oldSelf.spec.algorithm.seed ? 'seed' : has(self.spec.algorithm.lag) != has(oldSelf.spec.algorithm.lag) || has(self.spec.algorithm.lag) && self.spec.algorithm.lag != oldSelf.spec.algorithm.lag ? 'lag' : has(self.spec.algorithm.substeps) != has(oldSelf.spec.algorithm.substeps) || has(self.spec.algorithm.substeps) && self.spec.algorithm.substeps != oldSelf.spec.algorithm.substeps ? 'substeps' : has(self.spec.algorithm.advantage) != has(oldSelf.spec.algorithm.advantage) || has(self.spec.algorithm.advantage) && self.spec.algorithm.advantage != oldSelf.spec.algorithm.advantage ? 'advantage' : has(self.spec.algorithm.loss) != has(oldSelf.spec.algorithm.loss) || has(self.spec.algorithm.loss) && self.spec.algorithm.loss != oldSelf.spec.algorithm.loss ? 'loss' : has(self.spec.algorithm.kl) != has(oldSelf.spec.algorithm.kl) || has(self.spec.algorithm.kl) && self.spec.algorithm.kl != oldSelf.spec.algorithm.kl ? 'kl' : has(self.spec.algorithm.grouping) != has(oldSelf.spec.algorithm.grouping) || has(self.spec.algorithm.grouping) && self.spec.algorithm.grouping != oldSelf.spec.algorithm.grouping ? 'grouping' : has(self.spec.algorithm.roles) != has(oldSelf.spec.algorithm.roles) || has(self.spec.algorithm.roles) && self.spec.algorithm.roles != oldSelf.spec.algorithm.roles ? 'roles' : has(self.spec.algorithm.constantGroups) != has(oldSelf.spec.algorithm.constantGroups) || has(self.spec.algorithm.constantGroups) && self.spec.algorithm.constantGroups != oldSelf.spec.algorithm.constantGroups ? 'constantGroups' : has(self.spec.algorithm.onDroppedGroup) != has(oldSelf.spec.algorithm.onDroppedGroup) || has(self.spec.algorithm.onDroppedGroup) && self.spec.algorithm.onDroppedGroup != oldSelf.spec.algorithm.onDroppedGroup ? 'onDroppedGroup' : self.spec.algorithm.optimizer != oldSelf.spec.algorithm.optimizer ? 'optimizer' : 'FIELD') + '=VALUE'"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (has(oldSelf.status.settingsFixed) && !oldSelf.status.settingsFixed) || !has(self.spec.algorithm) || !has(oldSelf.spec.algorithm) || (has(self.spec.algorithm.steps) == has(oldSelf.spec.algorithm.steps) && (!has(self.spec.algorithm.steps) || self.spec.algorithm.steps == oldSelf.spec.algorithm.steps) && has(self.spec.algorithm.epochs) == has(oldSelf.spec.algorithm.epochs) && (!has(self.spec.algorithm.epochs) || self.spec.algorithm.epochs == oldSelf.spec.algorithm.epochs)) || (self.spec.algorithm.optimizer.schedule == 'Constant' && (has(self.spec.algorithm.steps) ? has(oldSelf.spec.algorithm.steps) && self.spec.algorithm.steps >= oldSelf.spec.algorithm.steps : has(oldSelf.spec.algorithm.epochs) && self.spec.algorithm.epochs >= oldSelf.spec.algorithm.epochs))",fieldPath=".spec.algorithm",reason=FieldValueForbidden,messageExpression="(self.spec.algorithm.optimizer.schedule == 'Constant' ? 'algorithm.steps and algorithm.epochs can only be raised once a step is committed' : 'algorithm.steps and algorithm.epochs are fixed once a step is committed, since the learning rate of optimizer.schedule ' + self.spec.algorithm.optimizer.schedule + ' depends on them') + ': create another run that begins with the weights of this one, kubectl tinker fork ' + self.metadata.name + ' --set spec.algorithm.' + (has(self.spec.algorithm.epochs) ? 'epochs' : 'steps') + '=NUMBER'"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (has(oldSelf.status.settingsFixed) && !oldSelf.status.settingsFixed) || (has(self.spec.supervised) == has(oldSelf.spec.supervised) && (!has(self.spec.supervised) || self.spec.supervised == oldSelf.spec.supervised))",fieldPath=".spec.supervised",reason=FieldValueForbidden,message="supervised decides the weights and is fixed once a step is committed: create another run that begins with the weights of this one, kubectl tinker fork",messageExpression="'supervised decides the weights and is fixed once a step is committed: create another run that begins with the weights of this one, kubectl tinker fork ' + self.metadata.name + ' --set spec.supervised.FIELD=VALUE'"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (has(oldSelf.status.settingsFixed) && !oldSelf.status.settingsFixed) || (has(self.spec.initFrom) == has(oldSelf.spec.initFrom) && (!has(self.spec.initFrom) || self.spec.initFrom == oldSelf.spec.initFrom))",fieldPath=".spec.initFrom",reason=FieldValueForbidden,message="initFrom is fixed once a step is committed: create another run"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (has(oldSelf.status.settingsFixed) && !oldSelf.status.settingsFixed) || (has(self.spec.resumeFrom) == has(oldSelf.spec.resumeFrom) && (!has(self.spec.resumeFrom) || self.spec.resumeFrom == oldSelf.spec.resumeFrom))",fieldPath=".spec.resumeFrom",reason=FieldValueForbidden,message="resumeFrom is fixed once a step is committed: create another run"
type TrainingRun struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the desired run.
	// +required
	Spec TrainingRunSpec `json:"spec"`
	// status is the observed state of the run. Only the operator writes it.
	// +optional
	Status TrainingRunStatus `json:"status,omitzero"`
}

// TrainingRunList is a list of TrainingRuns.
// +kubebuilder:object:root=true
type TrainingRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TrainingRun `json:"items"`
}

// Mode selects the kind of a run.
// +kubebuilder:validation:Enum=Train;Supervise;Evaluate
type Mode string

// The values of Mode.
const (
	ModeTrain     Mode = "Train"
	ModeSupervise Mode = "Supervise"
	ModeEvaluate  Mode = "Evaluate"
)

// TrainingRunSpec names the model, the data and the settings of a run.
// +kubebuilder:validation:XValidation:rule="self.mode != 'Train' || (has(self.algorithm) && has(self.environments))",message="mode Train needs environments and algorithm: give both, or set mode to Evaluate and list evaluation.environments"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Train' || !has(self.algorithm) || has(self.algorithm.tasksPerStep)",message="algorithm.tasksPerStep is needed: how many groups one step trains on, for example 32"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Supervise' || (has(self.supervised) && has(self.algorithm))",message="mode Supervise needs supervised and algorithm: give supervised.dataset, and algorithm with steps or epochs and optimizer"
// +kubebuilder:validation:XValidation:rule="!has(self.tinker.endpointRef) || !has(self.budget) || !has(self.budget.prices)",message="budget.prices cannot be set with tinker.endpointRef, whose TinkerEndpoint has the prices: remove it"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Supervise' || !has(self.supervised)",message="supervised needs mode Supervise: remove it, or set mode to Supervise"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Supervise' || !has(self.environments)",message="mode Supervise trains on rows, and not on environments: remove environments, or list those to evaluate on in evaluation.environments"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Supervise' || !has(self.algorithm) || !(has(self.algorithm.tasksPerStep) || has(self.algorithm.roles) || has(self.algorithm.kl) || has(self.algorithm.loss) && self.algorithm.loss.name != 'ImportanceSampling' || has(self.algorithm.advantage) && ((has(self.algorithm.advantage.baseline) && self.algorithm.advantage.baseline != 'GroupMean') || (has(self.algorithm.advantage.scale) && self.algorithm.advantage.scale != 'None') || (has(self.algorithm.advantage.ddof) && self.algorithm.advantage.ddof != 0)) || has(self.algorithm.grouping) && self.algorithm.grouping != 'Trajectory' || has(self.algorithm.substeps) && self.algorithm.substeps != 1 || has(self.algorithm.lag) && self.algorithm.lag != 0 || has(self.algorithm.constantGroups) && self.algorithm.constantGroups != 'Keep' || has(self.algorithm.onDroppedGroup) && self.algorithm.onDroppedGroup != 'Refill')",messageExpression="'algorithm.' + (has(self.algorithm.tasksPerStep) ? 'tasksPerStep' : has(self.algorithm.roles) ? 'roles' : has(self.algorithm.kl) ? 'kl' : has(self.algorithm.loss) && self.algorithm.loss.name != 'ImportanceSampling' ? 'loss' : has(self.algorithm.grouping) && self.algorithm.grouping != 'Trajectory' ? 'grouping' : has(self.algorithm.substeps) && self.algorithm.substeps != 1 ? 'substeps' : has(self.algorithm.lag) && self.algorithm.lag != 0 ? 'lag' : has(self.algorithm.constantGroups) && self.algorithm.constantGroups != 'Keep' ? 'constantGroups' : has(self.algorithm.onDroppedGroup) && self.algorithm.onDroppedGroup != 'Refill' ? 'onDroppedGroup' : 'advantage') + ' says how groups of episodes are trained on, and mode Supervise has rows: remove it; of algorithm only steps or epochs, seed and optimizer apply, and supervised.batchSize is the number of rows of a step'"
// +kubebuilder:validation:XValidation:rule="!has(self.evaluation) || !has(self.evaluation.supervised) || self.mode == 'Supervise'",message="evaluation.supervised measures rows of supervised.dataset, which only mode Supervise has: remove it"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Supervise' || !has(self.evaluation) || has(self.evaluation.supervised) || has(self.evaluation.environments)",message="evaluation needs something to evaluate in mode Supervise: give evaluation.supervised, which measures held-out rows, or evaluation.environments"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Evaluate' || !(has(self.algorithm) || has(self.environments))",message="mode Evaluate trains nothing: remove algorithm and environments, or set mode to Train"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Evaluate' || (has(self.evaluation) && has(self.evaluation.environments))",message="mode Evaluate needs evaluation.environments: list the environments to evaluate on"
// +kubebuilder:validation:XValidation:rule="!has(self.algorithm) || !has(self.algorithm.epochs) || !has(self.environments) || self.environments.all(e, !has(e.weight))",message="algorithm.epochs counts passes over all tasks, which environments[].weight does not visit equally: give algorithm.steps, or remove the weights"
// +kubebuilder:validation:XValidation:rule="!has(self.evaluation) || !has(self.evaluation.environments) || self.evaluation.environments.all(v, !has(v.inheritFrom) || (has(self.environments) && self.environments.exists(e, e.name == v.inheritFrom)))",message="evaluation.environments[].inheritFrom names no entry of environments: correct the name, or give environmentRef and sampling.maxTokens instead"
// +kubebuilder:validation:XValidation:rule="!has(self.initFrom) || self.mode == 'Evaluate' || has(self.initFrom.optimizer)",message="initFrom.optimizer is needed to train: Restore continues with the saved optimizer, Reset starts with a new one"
// +kubebuilder:validation:XValidation:rule="!has(self.initFrom) || !has(self.initFrom.checkpoint) || self.mode == 'Evaluate' || !self.initFrom.checkpoint.contains('/sampler_weights/')",message="initFrom.checkpoint names sampler weights, which can only be evaluated: give the training state, tinker://RUN/weights/NAME"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Evaluate' || !has(self.initFrom) || !has(self.initFrom.data) || self.initFrom.data == 'Restart'",message="initFrom.data says at which task training begins, and mode Evaluate trains nothing: remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.resumeFrom) || self.mode != 'Evaluate'",message="resumeFrom continues training, and mode Evaluate trains nothing: remove resumeFrom, or name the checkpoint to evaluate in initFrom.checkpoint"
// +kubebuilder:validation:XValidation:rule="!has(self.budget) || !(has(self.budget.tokens) || has(self.budget.usd)) || has(self.artifacts)",message="budget.tokens and budget.usd need artifacts, which keep the usage over restarts: give artifacts, or limit only budget.activeSeconds"
// +kubebuilder:validation:XValidation:rule="!has(self.tracking) || !has(self.tracking.tensorboard) || has(self.artifacts)",message="tracking.tensorboard needs artifacts, which keep the event files: give artifacts, or remove tracking.tensorboard"
type TrainingRunSpec struct {
	// mode selects the kind of the run. Train trains on environments, as algorithm says. Supervise trains on the rows of
	// supervised.dataset. Evaluate samples evaluation.environments once. Fixed once a step is committed.
	// +kubebuilder:default=Train
	// +optional
	Mode Mode `json:"mode,omitempty"`
	// model is the base model and the LoRA adapter that is trained.
	// Fixed once a step is committed.
	// +required
	Model Model `json:"model"`
	// tinker is the endpoint that samples and trains.
	// +required
	Tinker Tinker `json:"tinker"`
	// environments are the environments to train on, keyed by name. Their order has no meaning. If they have no weights,
	// the tasks of all environments form one pool. Fixed once a step is committed.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(e, has(e.weight)) || self.all(e, !has(e.weight))",message="weight must be given for every environment or for none: add the missing ones or remove them all"
	// +kubebuilder:validation:XValidation:rule="self.size() > 1 || self.all(e, !has(e.onUnavailable) || e.onUnavailable == 'Wait')",message="onUnavailable: Skip trains on the other environments, but this is the only one: add another, or remove the setting"
	// +optional
	Environments []TrainingEnvironment `json:"environments,omitempty"`
	// supervised has the rows that a run of mode Supervise trains on. Fixed once a step is committed.
	// +optional
	Supervised *Supervised `json:"supervised,omitempty"`
	// algorithm turns groups of episodes into optimizer steps. Required in modes Train and Supervise; mode Supervise uses
	// only its fields steps, epochs, seed and optimizer. Fixed once a step is committed, except that steps and epochs may
	// be raised if optimizer.schedule is Constant.
	// +optional
	Algorithm *algorithm.Algorithm `json:"algorithm,omitempty"`
	// initFrom is the source of the first weights. Defaults to the weights of the base model. Fixed once a step is
	// committed.
	// +optional
	InitFrom *InitFrom `json:"initFrom,omitempty"`
	// resumeFrom names a deleted run that this run continues, from the last saved state of the deleted run. Fixed once a
	// step is committed.
	// +optional
	ResumeFrom *ResumeFrom `json:"resumeFrom,omitempty"`
	// checkpoints says when states are saved and how long they are kept. A change takes effect with the learner's next
	// attempt; suspend and resume the run to apply it at once.
	// +kubebuilder:default={}
	// +optional
	Checkpoints Checkpoints `json:"checkpoints,omitzero"`
	// evaluation samples held-out tasks while training. Defaults to no evaluation. A change takes effect with the
	// learner's next attempt.
	// +optional
	Evaluation *Evaluation `json:"evaluation,omitempty"`
	// rollouts has the settings of the worker pods, which sample and play the environments.
	// +kubebuilder:default={}
	// +optional
	Rollouts Rollouts `json:"rollouts,omitzero"`
	// podOverrides change the pods of the run, keyed by target. The entry of All is applied first: maps are merged, lists
	// are appended, and set fields replace unset ones. If two list items have the same key, the item in the target's own
	// entry takes precedence. Workers are replaced when their pods change; a change of the learner's pod takes effect with
	// its next attempt.
	// +listType=map
	// +listMapKey=target
	// +kubebuilder:validation:MaxItems=3
	// +optional
	PodOverrides []TargetedPodOverrides `json:"podOverrides,omitempty"`
	// failurePolicy says when the run is restarted and when it fails permanently.
	// +kubebuilder:default={}
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitzero"`
	// stalledAfterSeconds is the time for which the run may wait for a repair, or for an answer of its learner, before the
	// condition Stalled is true. It gives an autoscaler time to add a node.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=120
	// +optional
	StalledAfterSeconds *int32 `json:"stalledAfterSeconds,omitempty"`
	// artifacts is the store of the run's files, such as the rows of steps and metrics.jsonl. If it is absent, only the
	// learner's log has all metrics, and they are lost with the log.
	// +optional
	Artifacts *Artifacts `json:"artifacts,omitempty"`
	// tracking names services that show the run's curves, such as Weights & Biases. A change takes effect with the
	// learner's next attempt.
	// +optional
	Tracking *tracking.Tracking `json:"tracking,omitempty"`
	// budget limits the tokens, dollars or time of the run. Defaults to no limit. Raising a limit takes effect at once,
	// even after it has been reached.
	// +optional
	Budget *Budget `json:"budget,omitempty"`
	// managedBy names the controller that reconciles the run, as in a Job. This operator leaves a run of another
	// controller alone.
	// +kubebuilder:default="rl.tinker-operator.dev/trainingrun-controller"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="managedBy cannot be changed: create another run"
	// +optional
	ManagedBy string `json:"managedBy,omitempty"`
	// suspend stops the run at a saved state and deletes its pods; false resumes it.
	// +kubebuilder:default=false
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
	// retryGeneration retries a failed run: each increase resumes it from its last usable checkpoint with a new restart
	// budget. It has no effect on a run that has not failed.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="retryGeneration can only grow: increase it to retry a failed run"
	// +optional
	RetryGeneration *int32 `json:"retryGeneration,omitempty"`
	// ttlSecondsAfterFinished is the time after the run's end at which the object is deleted. If it is absent, the object
	// is kept.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}
