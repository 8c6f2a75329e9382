// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import "cmp"

// Agent is an existing program, which calls the policy as it calls a service of language models.
// +kubebuilder:validation:XValidation:rule="has(self.python) != has(self.command)",message="give exactly one of python and command"
// +kubebuilder:validation:XValidation:rule="!has(self.python) || self.reward.from != 'File'",message="only a command has a file: give reward.from LastMessage, Output or Agent"
// +kubebuilder:validation:XValidation:rule="(self.reward.from == 'File') == has(self.reward.file)",message="give reward.file, the name of a file, with reward.from File, and only then"
// +kubebuilder:validation:XValidation:rule="!has(self.concurrency) || has(self.python)",message="a command plays one episode at a time: remove concurrency"
type Agent struct {
	// python is code that defines async def agent(task, base_url), which plays an episode. Many episodes share a process.
	// +optional
	Python *AgentFunction `json:"python,omitempty"`
	// command is a program with its arguments. It is started for each episode, with the variables OPENAI_BASE_URL,
	// ANTHROPIC_BASE_URL, OPENAI_API_KEY, ANTHROPIC_API_KEY, and TASK_FILE, the name of a file with the task as JSON.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=4096
	// +optional
	Command []string `json:"command,omitempty"`
	// processes is the number of processes beside each worker. Defaults to 2 with python, and to 8 with command, whose
	// processes play one episode at a time.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	Processes int32 `json:"processes,omitempty"`
	// concurrency is the number of episodes that a process plays at once. Defaults to 64 with python.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +optional
	Concurrency int32 `json:"concurrency,omitempty"`
	// roles are the roles of the policy. A request of the agent names a role as its model. Defaults to one role, which a
	// request selects by any model name.
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(role, role.matches('^[a-z][a-z0-9_-]*$'))",message="a role has at most 63 lower-case letters, digits, hyphens and underscores, and begins with a letter"
	// +optional
	Roles []string `json:"roles,omitempty"`
	// frozen are models that are not trained, such as a judge. The agent asks them by the names frozen/NAME. Their tokens
	// count as tokens of judges.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Frozen []FrozenModel `json:"frozen,omitempty"`
	// fields are the columns of the row that the agent receives in addition to id, prompt and messages. With reward.from
	// Agent it receives all columns, including the answer.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	Fields []string `json:"fields,omitempty"`
	// network limits the connections of the agent's processes. Gateway permits connections to the models alone, Open all
	// connections of the pod. Gateway needs the isolation of execution.isolation.minimum, by default Landlock. With the
	// minimum Process, it uses the isolation that the kernel has. If the kernel has less than the minimum, no agent
	// starts, and the condition Ready names the missing isolation.
	// +kubebuilder:default=Gateway
	// +optional
	Network AgentNetwork `json:"network,omitempty"`
	// reward selects the part of an episode that is rewarded.
	// +kubebuilder:default={}
	// +optional
	Reward AgentReward `json:"reward,omitzero"`
	// unsupported selects the answer to requests with an option that the gateway does not have, such as response_format.
	// Ignore counts the option and answers without it. Refuse answers with an error.
	// +kubebuilder:default=Ignore
	// +optional
	Unsupported UnsupportedOptions `json:"unsupported,omitempty"`
	// branches selects the conversations of an episode that are trained on. Train trains on all. LastOnly trains on the
	// conversation with the last reply.
	// +kubebuilder:default=Train
	// +optional
	Branches Branches `json:"branches,omitempty"`
	// graceSeconds is the time for which an agent may continue after an answer has told it that the episode has reached a
	// limit, or after the time of the episode is over.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:default=10
	// +optional
	GraceSeconds *int32 `json:"graceSeconds,omitempty"`
}

// AgentFunction is an agent in Python: async def agent(task, base_url). An exception is a fault of its episode, and
// never a reward of 0.
type AgentFunction struct {
	Source `json:",inline"`
	// function is the name of the function. Defaults to agent.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="must be a name in Python: letters, digits and _, and no digit first"
	// +optional
	Function string `json:"function,omitempty"`
}

// AgentReward selects the part of an agent's episode that is rewarded.
type AgentReward struct {
	// from selects the part of the episode. LastMessage is the policy's last reply. Output is the return value of the
	// function, or the output of the command. File is a file that the command has written. With Agent, the agent returns
	// the reward itself, and there is no other reward.
	// +kubebuilder:default=LastMessage
	// +optional
	From RewardSource `json:"from,omitempty"`
	// file is the name of the file, in the directory in which the command begins.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-][A-Za-z0-9._-]*$')",message="must be the name of a file: letters, digits, dots, hyphens and underscores"
	// +optional
	File string `json:"file,omitempty"`
}

// RewardSource is the part of an agent's episode that is rewarded.
// +kubebuilder:validation:Enum=LastMessage;Output;File;Agent
type RewardSource string

// The parts that can be rewarded.
const (
	RewardLastMessage RewardSource = "LastMessage"
	RewardOutput      RewardSource = "Output"
	RewardFile        RewardSource = "File"
	RewardFromAgent   RewardSource = "Agent"
)

// AgentNetwork limits the connections of an agent's processes.
// +kubebuilder:validation:Enum=Gateway;Open
type AgentNetwork string

// The networks of agents.
const (
	NetworkGateway AgentNetwork = "Gateway"
	NetworkOpen    AgentNetwork = "Open"
)

// UnsupportedOptions selects the answer to requests with an option that the gateway does not have.
// +kubebuilder:validation:Enum=Ignore;Refuse
type UnsupportedOptions string

// The answers to requests with an option that the gateway does not have.
const (
	IgnoreUnsupported UnsupportedOptions = "Ignore"
	RefuseUnsupported UnsupportedOptions = "Refuse"
)

// Branches selects the conversations of an agent's episode that are trained on.
// +kubebuilder:validation:Enum=Train;LastOnly
type Branches string

// The conversations that are trained on.
const (
	TrainBranches Branches = "Train"
	LastBranch    Branches = "LastOnly"
)

// SetDefaults fills the fields that are not given. The defaults of some of them depend on other fields.
func (a *Agent) SetDefaults() {
	processes, concurrency := int32(8), int32(1)
	if a.Python != nil {
		processes, concurrency = 2, 64
	}
	a.Processes, a.Concurrency = cmp.Or(a.Processes, processes), cmp.Or(a.Concurrency, concurrency)
	a.Reward.From = cmp.Or(a.Reward.From, RewardLastMessage)
	a.Network = cmp.Or(a.Network, NetworkGateway)
	for i := range a.Frozen {
		a.Frozen[i].setDefaults()
	}
}
