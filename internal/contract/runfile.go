// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
)

// RunFileName is the key of the ConfigMap, and the file's name within a pod.
const RunFileName = "run.json"

// RunFile is the run file of one attempt.
type RunFile struct {
	// Version is the format version of the run: of this file and of everything else that the run's processes exchange.
	// All attempts of a run have the same version.
	Version int `json:"version"`
	// Run is the run that the file belongs to.
	Run RunReference `json:"run"`
	// Attempt is the number of the attempt whose learner reads this file. Attempts count from 1.
	Attempt int32 `json:"attempt"`
	// SpecDigest is the digest of Fixed, 64 hex digits.
	SpecDigest string `json:"specDigest"`
	// Fixed has the settings that decide the weights. From the attempt that commits the first step on, they are the same
	// in every attempt.
	Fixed Fixed `json:"fixed"`
	// Steps and Epochs are the length of training if the schedule of the learning rate does not depend on it. They may
	// grow from attempt to attempt. If they are 0, Fixed has the length.
	Steps  int64 `json:"steps,omitempty"`
	Epochs int64 `json:"epochs,omitempty"`
	// ResumeFrom is the uid of the run that this run continues; empty if there is none.
	ResumeFrom string `json:"resumeFrom,omitempty"`
	// Checkpoints says when states are saved and how long they are kept.
	Checkpoints Checkpoints `json:"checkpoints"`
	// Evaluation is nil when nothing is evaluated.
	Evaluation *Evaluation `json:"evaluation,omitempty"`
	// Concurrency is the number of episodes that the whole run has in progress.
	Concurrency int `json:"concurrency"`
	// RequireOptimizer refuses to resume without the optimizer's state.
	RequireOptimizer bool `json:"requireOptimizer"`
	// ArtifactsDir is the folder in which the claim is mounted; the run makes a folder below it that is named by its
	// uid. It is empty if the run keeps no artifacts. With ArtifactsURL it is a folder of the pod that has a copy of the
	// artifacts.
	ArtifactsDir string `json:"artifactsDir,omitempty"`
	// ArtifactsURL is the URL of the artifacts, if they are kept at a URL instead of a claim.
	ArtifactsURL string `json:"artifactsURL,omitempty"`
	// Tracking names the services that show the run's curves; nil if there are none.
	Tracking *tracking.Settings `json:"tracking,omitempty"`
	// Budget limits the tokens and dollars of the run; nil means no limit.
	Budget *spending.Budget `json:"budget,omitempty"`
	// Prices are the prices of the run's models; nil if one is not known.
	Prices *spending.Prices `json:"prices,omitempty"`
	// RecordedGroups is the number of groups, counted from the first of each step and evaluation, whose conversations
	// and tokens are recorded. NoEpisodes says that not even the results of episodes are recorded.
	RecordedGroups int64 `json:"recordedGroups,omitempty"`
	NoEpisodes     bool  `json:"noEpisodes,omitempty"`
	// KnownCheckpoints are the checkpoints that the manager has seen, the newest first. The learner loads an older state
	// than the first of them only if every newer one was tried and refused.
	KnownCheckpoints []string `json:"knownCheckpoints,omitempty"`
	// Capabilities are the capabilities of the endpoint that an earlier attempt found; nil if no attempt has checked
	// them.
	Capabilities *Capabilities `json:"capabilities,omitempty"`
	// SharedCapabilities are the results of another run's check, or of the check of the TinkerEndpoint's broker; nil if
	// there are none, or if the run's own status has capabilities. Their SharedFrom names that run or the
	// TinkerEndpoint.
	SharedCapabilities *Capabilities `json:"sharedCapabilities,omitempty"`
	// Connection is the digest of the settings with which the learner reaches the endpoint. The results of its check
	// depend on them.
	Connection string `json:"connection,omitempty"`
	// TokenizerSHA256 is the digest of the tokenizer that an earlier attempt read, if Fixed does not have the digest. It
	// is empty if no attempt has read the tokenizer.
	TokenizerSHA256 string `json:"tokenizerSHA256,omitempty"`
	// TemplateSHA256 is the Template.Digest that an earlier attempt found; empty if no attempt has read the template.
	TemplateSHA256 string `json:"templateSHA256,omitempty"`
	// Contents are the data that an earlier attempt of a supervised run has read and trained on; nil if no attempt has.
	Contents *DataContents `json:"contents,omitempty"`
	// Former are the settings that decided the weights in earlier attempts, if they differ.
	Former SettingsHistory `json:"former,omitempty"`
	// ProjectID is the project that the service bills; empty for the default one.
	ProjectID string `json:"projectID,omitempty"`
	// LearnerAddress is host:port of the exchange, by the Service's name.
	LearnerAddress string `json:"learnerAddress"`
}

// Algorithm returns the algorithm with the length of the run, as a copy; nil for a run that only evaluates.
func (f RunFile) Algorithm() *algorithm.Algorithm {
	a := f.Fixed.Algorithm.DeepCopy()
	if a != nil && f.Steps+f.Epochs > 0 {
		a.Steps, a.Epochs = f.Steps, f.Epochs
	}
	return a
}

// Capabilities are the features that an endpoint supports with a base model, by the names of
// internal/tinker/capability. The support of a feature in none of the lists is unknown.
type Capabilities struct {
	BaseURL string `json:"baseURL"`
	Model   string `json:"model"`
	// Supported, Ignored (taken without an effect) and Unsupported features, sorted.
	Supported   []string `json:"supported,omitempty"`
	Ignored     []string `json:"ignored,omitempty"`
	Unsupported []string `json:"unsupported,omitempty"`
	// CheckedAt is the time at which the run's own first check ended, RFC 3339. It is empty if the run has made no
	// check, or if the time is not known.
	CheckedAt string `json:"checkedAt,omitempty"`
	// ClientVersion is the version of the learner that checked, and Connection the digest in its run file.
	ClientVersion string `json:"clientVersion,omitempty"`
	Connection    string `json:"connection,omitempty"`
	// SharedFrom is the check of another run, or of a broker, that found a part of the features; nil if there is none.
	SharedFrom *SharedCheck `json:"sharedFrom,omitempty"`
}

// SharedCheck is the check of another run of the namespace, or of the broker of a TinkerEndpoint.
type SharedCheck struct {
	Name      string `json:"name"`
	CheckedAt string `json:"checkedAt"`
}

// RunReference names the TrainingRun.
type RunReference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Fixed has the settings that decide the weights.
type Fixed struct {
	Model        Model         `json:"model"`
	BaseURL      string        `json:"baseURL"`
	Environments []Environment `json:"environments,omitempty"`
	// Algorithm has every default filled in. It has steps in place of epochs, except in a supervised run whose rows have
	// not been counted. It has neither if the schedule of the learning rate does not depend on them: RunFile then has
	// them. It is nil for a run that only evaluates.
	Algorithm *algorithm.Algorithm `json:"algorithm,omitempty"`
	// Supervised is the data of a supervised run; nil for other runs. A supervised run uses only steps, epochs, seed and
	// optimizer of Algorithm.
	Supervised *Supervised `json:"supervised,omitempty"`
	InitFrom   *InitFrom   `json:"initFrom,omitempty"`
}

// Model is the base model and the adapter that is trained.
type Model struct {
	Name           string `json:"name"`
	LoraRank       int    `json:"loraRank"`
	TrainAttention bool   `json:"trainAttention"`
	TrainMLP       bool   `json:"trainMLP"`
	TrainUnembed   bool   `json:"trainUnembed"`
	Seed           int64  `json:"seed"`
	// Renderer is the name of the renderer, which decides the format of conversations. It is RendererTemplate if there
	// is a Template.
	Renderer string `json:"renderer"`
	// Template is the chat template that renders conversations instead of a renderer; nil if there is none.
	Template *Template `json:"template,omitempty"`
	// Date that the format writes into prompts, YEAR-MONTH-DAY. It stays the same for the whole run. Empty for a format
	// without a date.
	Date string `json:"date,omitempty"`
	// Begin and End are the tokens that begin and end texts. They are set for a model that only the manager knows.
	Begin string `json:"begin,omitempty"`
	End   string `json:"end,omitempty"`
	// Tokenizer is the source of the vocabulary; nil for the simulator's own, which is built in.
	Tokenizer *Tokenizer `json:"tokenizer,omitempty"`
}

// TokenizerTokenVariable is the environment variable with the path of the file that has the token of
// model.tokenizer.tokenSecretKeyRef, in learners and workers. The run file does not mention the token, since it does
// not affect the weights and may change.
const TokenizerTokenVariable = "TOKENIZER_TOKEN_FILE"

// Tokenizer is the source of a vocabulary's file: a repository of a Hugging Face hub, or a URL.
type Tokenizer struct {
	Repository string `json:"repository,omitempty"`
	// Revision of the repository; empty for main.
	Revision string `json:"revision,omitempty"`
	// File in the repository; empty for tokenizer.json.
	File string `json:"file,omitempty"`
	URL  string `json:"url,omitempty"`
	// Ranks is the family of a file of ranks, which itself has neither the pattern nor the special tokens. It is empty
	// for a tokenizer.json.
	Ranks string `json:"ranks,omitempty"`
	// SHA256 is the digest of the file, 64 hex digits; it is empty until the first learner of the run has read it.
	SHA256 string `json:"sha256,omitempty"`
}

// InitFrom is the source of the first weights.
type InitFrom struct {
	// Checkpoint is tinker://RUN/weights/NAME (or sampler_weights, for evaluation alone).
	Checkpoint string `json:"checkpoint"`
	// RestoreOptimizer continues with the saved state of Adam.
	RestoreOptimizer bool `json:"restoreOptimizer"`
	// Cursor is the first slot of the run.
	Cursor int64 `json:"cursor,omitempty"`
}

// Environment is one environment as the run uses it; training and evaluation each have their own list.
type Environment struct {
	// Name is the key of the list, and a part of the names of metrics.
	Name string `json:"name"`
	// Digest identifies the pinned RewardEnvironment.
	Digest string `json:"digest"`
	// Definition is the RewardEnvironment's spec. In files that are stored or sent, it is kept apart, once for each
	// digest.
	Definition Definition `json:"definition,omitzero"`
	// Weight is 0 in a flat pool.
	Weight float64 `json:"weight,omitempty"`
	// Splits have the number of tasks that the probe found.
	Splits []Split `json:"splits"`
	// GroupSize is the number of episodes of one task, or of samples of one task in an evaluation.
	GroupSize  int `json:"groupSize"`
	MinMembers int `json:"minMembers"`
	// Retries is the number of times a faulted episode is played again.
	Retries int `json:"retries"`
	// SkipUnavailable drops the environment's training groups while no worker can play them; otherwise the run waits.
	SkipUnavailable bool                  `json:"skipUnavailable,omitempty"`
	Sampling        playing.Sampling      `json:"sampling"`
	Limits          playing.Limits        `json:"limits"`
	Reward          playing.EpisodeReward `json:"reward"`
	// Teacher is nil if the environment has no teacher, and in evaluations.
	Teacher *algorithm.Teacher `json:"teacher,omitempty"`
	// PassAt lists the values of k for pass@k, in evaluations only.
	PassAt []int `json:"passAt,omitempty"`
}

// Tasks returns the number of tasks of the environment that are used.
func (e Environment) Tasks() (tasks int64) {
	for _, split := range e.Splits {
		tasks += split.Tasks
	}
	return tasks
}

// Split is a split of an environment, as the run uses it.
type Split struct {
	Name string `json:"name"`
	// Shuffle draws tasks in an order that the seed decides, a new one for each epoch.
	Shuffle bool `json:"shuffle"`
	// Tasks is the number of used tasks: all tasks that were found, or the first ones (take).
	Tasks int64 `json:"tasks"`
}

// Definition is the spec of a RewardEnvironment.
type Definition struct {
	// ORS is a server that has tasks, tools and rewards. It stands in place of Dataset and Reward.
	ORS     *ORS                `json:"ors,omitempty"`
	Dataset *Dataset            `json:"dataset,omitempty"`
	Reward  *environment.Reward `json:"reward,omitempty"`
	// Execution is the container in which functions of the reward run; nil if it has none.
	Execution *Execution `json:"execution,omitempty"`
	// Interaction is nil if one reply is the answer.
	Interaction *environment.Interaction `json:"interaction,omitempty"`
}

// Checkpoints says when states are saved and how long they are kept; a TTL of 0 keeps them forever.
type Checkpoints struct {
	EverySteps        int64  `json:"everySteps"`
	TTLSeconds        int64  `json:"ttlSeconds"`
	RollingEverySteps int64  `json:"rollingEverySteps"`
	RollingTTLSeconds int64  `json:"rollingTTLSeconds"`
	KeepLast          int    `json:"keepLast,omitempty"`
	KeepBestCount     int    `json:"keepBestCount"`
	KeepBestMetric    string `json:"keepBestMetric"`
}

// Evaluation samples held-out tasks.
type Evaluation struct {
	// EverySteps is the number of steps between evaluations; 0 means no evaluation while training.
	EverySteps int64 `json:"everySteps"`
	Before     bool  `json:"before"`
	After      bool  `json:"after"`
	// SamplingShare is the share of the sampled episodes that evaluations get while training has episodes to sample as
	// well. If it is 0, evaluations use only idle capacity.
	SamplingShare float64       `json:"samplingShare,omitempty"`
	Environments  []Environment `json:"environments"`
	// HeldOut are the splits of a supervised run whose negative log-likelihood is measured.
	HeldOut []HeldOut `json:"heldOut,omitempty"`
}
