// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import "github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

// ORS has the settings of the connection to an Open Reward Standard server.
// +kubebuilder:validation:XValidation:rule="!has(self.baseURL) || has(self.name)",message="baseURL is the address of a hosting service, for name only: give url for a server of your own"
// +kubebuilder:validation:XValidation:rule="!has(self.environment) || !has(self.name)",message="a hosted environment of several is named in name, as OWNER/NAME@VARIANT: remove environment"
// +kubebuilder:validation:XValidation:rule="!has(self.secrets) || !has(self.secretDelivery) || self.secretDelivery != 'Body' || self.secrets.all(s, !has(s.allowedHosts))",message="the body has no place for secrets[].allowedHosts: remove it, or set secretDelivery to Header or Both"
type ORS struct {
	// name is the name of a hosted environment: OWNER/NAME, or OWNER/NAME@VARIANT.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^/@]+/[^/@]+(@[^/@]+)?$')",message="name must be OWNER/NAME or OWNER/NAME@VARIANT, as the hosting service spells it"
	// +optional
	Name string `json:"name,omitempty"`
	// baseURL is the address of the hosting service. If it is absent, the service is https://openreward.ai.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/?#@]+(/[^?#]*)?$')",message="baseURL must begin with http:// or https://, followed by a host, without user, query or fragment"
	// +optional
	BaseURL string `json:"baseURL,omitempty"`
	// url is the address of a running server.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/?#@]+(/[^?#]*)?$')",message="url must begin with http:// or https://, followed by a host, without user, query or fragment"
	// +optional
	URL string `json:"url,omitempty"`
	// environment selects one of the server's environments, ignoring case. Defaults to the first.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Environment string `json:"environment,omitempty"`
	// toolset is a toolset of the server that is added to the environment's tools, such as claude-code.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Toolset string `json:"toolset,omitempty"`
	// answerTool names the tool that is called with each reply that has no tool call, unless the server names a tool for
	// answers. The policy does not see the tool. If neither tool exists, the policy is asked for a tool call.
	// +optional
	AnswerTool *AnswerTool `json:"answerTool,omitempty"`
	// apiKeySecretKeyRef is the Secret key with the API key of requests.
	// +optional
	APIKeySecretKeyRef *ref.SecretKey `json:"apiKeySecretKeyRef,omitempty"`
	// secrets are the Secrets that each session gets.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Secrets []SessionSecret `json:"secrets,omitempty"`
	// secretDelivery selects the part of a request that carries secrets. Header suits servers of the Python package
	// openreward, Body suits servers of ors-sdk. Both fills both parts.
	// +kubebuilder:default=Header
	// +optional
	SecretDelivery SecretDelivery `json:"secretDelivery,omitempty"`
	// timeouts are the timeouts of requests.
	// +kubebuilder:default={}
	// +optional
	Timeouts ORSTimeouts `json:"timeouts,omitzero"`
	// maxSessions limits the open sessions of a worker. Defaults to the number of episodes that the worker plays at once.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxSessions int32 `json:"maxSessions,omitempty"`
}

// AnswerTool is a tool whose argument is an answer.
type AnswerTool struct {
	// name is the name of the tool.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Name string `json:"name"`
	// argument names the argument that receives the text of the reply. If it is absent, the tool is called without
	// arguments.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Argument string `json:"argument,omitempty"`
}

// SecretDelivery selects where a server reads the secrets of a session.
// +kubebuilder:validation:Enum=Header;Body;Both
type SecretDelivery string

// The ways to deliver secrets.
const (
	DeliverHeader SecretDelivery = "Header"
	DeliverBody   SecretDelivery = "Body"
	DeliverBoth   SecretDelivery = "Both"
)

// ServerImage is the image of a server with its settings.
type ServerImage struct {
	// image is the image to run.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Image string `json:"image"`
	// port is the port on which the server listens. The container's variable PORT has the same number. The servers of one
	// run need different ports.
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:XValidation:rule="self != 8081",message="port 8081 belongs to the worker, which runs in the same pod: choose another"
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:default=8080
	// +optional
	Port int32 `json:"port,omitempty"`
	// command replaces the image's entry point.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +optional
	Command []string `json:"command,omitempty"`
	// shared runs the server once for each run, as a Deployment with a Service, instead of beside each worker: for
	// environments with state or a large memory. The chart's value environmentServers.shared has to be true.
	// +optional
	Shared bool `json:"shared,omitempty"`
}

// SessionSecret is a secret that sessions get.
type SessionSecret struct {
	// name is the name by which the environment reads the secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$')",message="name must be of letters, digits, '_', '-' and '.'"
	// +required
	Name string `json:"name"`
	// secretKeyRef is the Secret key with the value of the secret.
	// +required
	SecretKeyRef ref.SecretKey `json:"secretKeyRef"`
	// allowedHosts are the hosts to which the hosted service may send the value. They need secretDelivery Header or Both.
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	AllowedHosts []string `json:"allowedHosts,omitempty"`
}

// ORSTimeouts are the timeouts of requests to the server.
type ORSTimeouts struct {
	// createSeconds limits the time before the first turn: session, set-up, prompt and tools.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:default=120
	// +optional
	CreateSeconds int32 `json:"createSeconds,omitempty"`
	// callSeconds limits the time of one tool call.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:default=300
	// +optional
	CallSeconds int32 `json:"callSeconds,omitempty"`
}
