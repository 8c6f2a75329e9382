// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import "github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

// Dataset is a source of tasks.
// +kubebuilder:validation:XValidation:rule="(has(self.arithmetic)?1:0)+(has(self.countdown)?1:0)+(has(self.hub)?1:0)+(has(self.jsonl)?1:0)==1",message="give exactly one of arithmetic, countdown, hub and jsonl"
// +kubebuilder:validation:XValidation:rule="!has(self.splits) || self.splits.all(s, !has(s.from) || self.splits.exists(t, t.name == s.from && t.name != s.name && !has(t.from)))",message="splits[].from must name another split of this list that has no 'from' itself: correct the name, or use source for the data's own split or file"
// +kubebuilder:validation:XValidation:rule="!has(self.jsonl) || has(self.splits)",message="jsonl needs splits: list them, each with its source, a file or key"
// +kubebuilder:validation:XValidation:rule="!has(self.jsonl) || !has(self.jsonl.url) || !has(self.splits) || self.splits.all(s, has(s.from) || has(s.sha256))",message="splits of jsonl.url need sha256, so that a run cannot be given other data unnoticed: add the file's digest"
// +kubebuilder:validation:XValidation:rule="has(self.jsonl) || !has(self.splits) || self.splits.all(s, !has(s.sha256))",message="splits[].sha256 is for files of jsonl: remove it; hub is pinned by revision"
// +kubebuilder:validation:XValidation:rule="!has(self.jsonl) || !has(self.jsonl.configMapRef) || !has(self.splits) || self.splits.all(s, has(s.from) || (has(s.source) ? s.source : s.name).matches('^[-._a-zA-Z0-9]+$'))",message="splits[].source must be a key of the ConfigMap of jsonl.configMapRef: letters, digits, '-', '_' and '.'"
// +kubebuilder:validation:XValidation:rule="!has(self.splits) || self.splits.all(s, !has(s.source) || !self.splits.exists(t, has(t.source) && t.source == s.source && has(t.sha256) && has(s.sha256) && t.sha256 != s.sha256))",message="splits[] give one source two values of sha256: correct one of them"
type Dataset struct {
	// arithmetic generates sums.
	// +optional
	Arithmetic *ArithmeticData `json:"arithmetic,omitempty"`
	// countdown generates tasks of the game Countdown: make a target from given numbers.
	// +optional
	Countdown *CountdownData `json:"countdown,omitempty"`
	// hub is a data set of a Hugging Face hub, in Parquet or JSONL.
	// +optional
	Hub *Hub `json:"hub,omitempty"`
	// jsonl names files with one JSON object on each line.
	// +optional
	JSONL *JSONL `json:"jsonl,omitempty"`
	// fields maps names that prompt and reward use to columns of the data, if the names differ. Reserved names are id,
	// prompt and answer.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 64 && size(self[k]) > 0 && size(self[k]) <= 256)",message="names in fields have at most 64 characters, and columns 1 to 256"
	// +optional
	Fields map[string]string `json:"fields,omitempty"`
	// prompt is a template: $(name) is replaced by a field or column of the row, and $$(name) is the text $(name).
	// If it is absent, the field prompt is the prompt: a text, or a list of messages with role and content.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Prompt string `json:"prompt,omitempty"`
	// systemPrompt is the first message. It is also a template.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	SystemPrompt string `json:"systemPrompt,omitempty"`
	// examples are prompts with replies, which every task has before its own prompt.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Examples []PromptExample `json:"examples,omitempty"`
	// splits are the splits of the data. Defaults to the data's own splits.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Splits []DataSplit `json:"splits,omitempty"`
}

// ArithmeticData generates sums; a hash of the operands decides whether a sum is in train or in test.
type ArithmeticData struct {
	// maxOperand is the greatest operand of a sum. The least operand is 0.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9999
	// +kubebuilder:default=99
	// +optional
	MaxOperand int32 `json:"maxOperand,omitempty"`
}

// CountdownData generates tasks that have a solution; a hash of numbers and target decides whether a task is in train
// or in test. Rows have the columns nums, target and solution.
// +kubebuilder:validation:XValidation:rule="!has(self.minNumbers) || !has(self.maxNumbers) || self.minNumbers <= self.maxNumbers",message="minNumbers must be at most maxNumbers"
type CountdownData struct {
	// minNumbers is the minimum count of numbers in a task.
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=6
	// +kubebuilder:default=3
	// +optional
	MinNumbers int32 `json:"minNumbers,omitempty"`
	// maxNumbers is the maximum count of numbers in a task.
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=6
	// +kubebuilder:default=4
	// +optional
	MaxNumbers int32 `json:"maxNumbers,omitempty"`
	// maxNumber is the greatest number of a task. The least number is 1.
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=999
	// +kubebuilder:default=99
	// +optional
	MaxNumber int32 `json:"maxNumber,omitempty"`
	// tasks is the number of tasks in the split train. The split test has a fifth as many tasks.
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=10000000
	// +kubebuilder:default=10000
	// +optional
	Tasks int64 `json:"tasks,omitempty"`
}

// Hub is a data set of a Hugging Face hub.
type Hub struct {
	// repository is the name of the repository, OWNER/NAME.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][-A-Za-z0-9_.]*(/[A-Za-z0-9][-A-Za-z0-9_.]*)?$')",message="must be OWNER/NAME, as the hub has it"
	// +required
	Repository string `json:"repository"`
	// config is the configuration, also called subset, of the data set. If it is absent, the only configuration is read,
	// or the configuration named default.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Config string `json:"config,omitempty"`
	// revision is a branch, tag or commit. If it is absent, the branch main is read. The probe pins the commit to which
	// the revision resolves.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Revision string `json:"revision,omitempty"`
	// baseURL is the address of the hub, for example of a mirror. If it is absent, the hub is https://huggingface.co.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/]')",message="must begin with http:// or https://, followed by a host"
	// +optional
	BaseURL string `json:"baseURL,omitempty"`
	// tokenSecretKeyRef is the Secret key that holds a token for a private or gated repository.
	// +optional
	TokenSecretKeyRef *ref.SecretKey `json:"tokenSecretKeyRef,omitempty"`
}

// JSONL names files with one JSON object on each line. A file may be compressed (.gz, .zst). A file whose name ends in
// .parquet is read as Parquet.
// +kubebuilder:validation:XValidation:rule="(has(self.claimName)?1:0)+(has(self.configMapRef)?1:0)+(has(self.url)?1:0)==1",message="give exactly one of claimName, configMapRef and url"
type JSONL struct {
	// claimName names a PersistentVolumeClaim. The source of a split is a path on its volume.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ClaimName string `json:"claimName,omitempty"`
	// configMapRef names a ConfigMap. The source of a split is a key of the ConfigMap.
	// +optional
	ConfigMapRef *ref.ConfigMap `json:"configMapRef,omitempty"`
	// url is the address of a folder. The source of a split is a file in the folder, and the split needs sha256.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/]')",message="must begin with http:// or https://, followed by a host"
	// +optional
	URL string `json:"url,omitempty"`
}

// PromptExample is a prompt and the reply to the prompt.
type PromptExample struct {
	// prompt is the message of the user.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +required
	Prompt string `json:"prompt"`
	// reply is the answer of the assistant.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +required
	Reply string `json:"reply"`
}

// DataSplit cuts a split out of the data: shuffle, then skip, then take.
// +kubebuilder:validation:XValidation:rule="!has(self.from) || !has(self.source)",message="give source (the data's own split or file) or from (another split of this list), not both"
// +kubebuilder:validation:XValidation:rule="!has(self.from) || !has(self.sha256)",message="sha256 belongs to the split that has the source: remove it here"
type DataSplit struct {
	// name is the name of the split, by which runs select it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// source is the name of the data's own split, file, key or path. Defaults to name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.matches('(^|/)[.][.]?(/|$)')",message="source must be a path within the data, without '.' and '..'"
	// +optional
	Source string `json:"source,omitempty"`
	// from names the split of this list from which this split is cut.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	From string `json:"from,omitempty"`
	// sha256 is the SHA-256 digest of the file, in hex. Defaults to the digest that the probe finds and pins.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{64}$')",message="sha256 must be 64 hexadecimal digits in lower case"
	// +optional
	SHA256 string `json:"sha256,omitempty"`
	// shuffleSeed permutes the rows first, as Dataset.shuffle(seed) of the datasets library does.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ShuffleSeed *int64 `json:"shuffleSeed,omitempty"`
	// skip is the number of rows to leave out at the start.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Skip int64 `json:"skip,omitempty"`
	// take limits the number of rows. Defaults to all remaining rows.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Take *int64 `json:"take,omitempty"`
}
