// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
)

// TinkerEndpoint is an endpoint of the platform: the address and the key of a Tinker server, which runs use through a
// broker in the operator's namespace. The key stays there. Runs name it in tinker.endpointRef.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=tend,categories=tinker
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Runs",type=integer,JSONPath=`.status.runs`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.spec.baseURL`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$')",optionalOldSelf=true,message="metadata.name must have at most 40 characters, of a-z, 0-9 and '-', begin with a letter and end with a letter or digit: the broker's Service is named after the endpoint; shorten or rename it"
type TinkerEndpoint struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the server, with the permissions and limits of its users.
	// +required
	Spec TinkerEndpointSpec `json:"spec"`
	// status is the observed state of the endpoint. Only the operator writes it.
	// +optional
	Status TinkerEndpointStatus `json:"status,omitzero"`
}

// TinkerEndpointList is a list of TinkerEndpoints.
// +kubebuilder:object:root=true
type TinkerEndpointList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TinkerEndpoint `json:"items"`
}

// TinkerEndpointSpec is the server, with the permissions and limits of its users. Secrets and ConfigMaps are in the
// operator's namespace.
type TinkerEndpointSpec struct {
	// baseURL is the address of the server, without /api/v1.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/]')",message="must begin with http:// or https://, followed by a host"
	// +required
	BaseURL string `json:"baseURL"`
	// apiKeySecretKeyRef is the Secret key that holds the API key. Only the broker reads it.
	// +required
	APIKeySecretKeyRef ref.SecretKey `json:"apiKeySecretKeyRef"`
	// caBundleConfigMapKeyRef is the ConfigMap key with the certificates, in PEM, of authorities that the broker trusts in
	// addition to the image's authorities.
	// +optional
	CABundleConfigMapKeyRef *ref.ConfigMapKey `json:"caBundleConfigMapKeyRef,omitempty"`
	// clientCertificateSecretRef is the Secret of type kubernetes.io/tls with the certificate that the broker shows to the
	// server.
	// +optional
	ClientCertificateSecretRef *ref.Secret `json:"clientCertificateSecretRef,omitempty"`
	// proxyURL is the HTTP, HTTPS or SOCKS5 proxy through which the broker calls the server. The URL must not contain a
	// password.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?|socks5)://[^/@]+/?$')",message="must be http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT, without a user name, a password and a path"
	// +optional
	ProxyURL string `json:"proxyURL,omitempty"`
	// projectID is the project that the service bills. Defaults to the default project of the API key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ProjectID string `json:"projectID,omitempty"`
	// prices is the table of prices from which costs in dollars are computed. It takes precedence over the tables of the
	// chart and of the image.
	// +optional
	Prices *EndpointPrices `json:"prices,omitempty"`
	// allowed selects the runs that may use the endpoint. A run that may not use the endpoint waits, and its condition
	// Accepted says so.
	// +required
	Allowed AllowedRuns `json:"allowed"`
	// readableCheckpoints are checkpoints that runs of the listed namespaces may load, sample and inspect, in addition to
	// the checkpoints of their own namespace.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	ReadableCheckpoints []ReadableCheckpoints `json:"readableCheckpoints,omitempty"`
	// limits apply to all runs of the endpoint together. Defaults to no limits.
	// +optional
	Limits *EndpointLimits `json:"limits,omitempty"`
	// budgets limit the usage of runs together. Once a budget is reached, its runs stop at a saved state with the reason
	// BudgetReached; they continue when the limit is raised or the next period begins.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Budgets []EndpointBudget `json:"budgets,omitempty"`
	// weights share the limits among namespaces. The weight of a run is the weight of the first entry that selects its
	// namespace, multiplied by the run's tinker.weight. Defaults to 1 for a namespace that no entry selects.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Weights []NamespaceWeight `json:"weights,omitempty"`
}

// EndpointPrices is a table of prices.
type EndpointPrices struct {
	// configMapKeyRef is the ConfigMap key with the table, in the form of the models.json that hosted Tinker publishes.
	// +required
	ConfigMapKeyRef ref.ConfigMapKey `json:"configMapKeyRef"`
}

// AllowedRuns selects the runs that may use an endpoint.
type AllowedRuns struct {
	// namespaceSelector selects the namespaces of the runs by their labels; {} selects all namespaces.
	// +required
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	// models are the base models that runs may use. Defaults to all models of the server.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	Models []string `json:"models,omitempty"`
	// publication selects the checkpoints that a run may make readable for everybody at the server: Own for its own
	// checkpoints, None for none. Defaults to None.
	// +optional
	Publication Publication `json:"publication,omitempty"`
}

// Publication selects the checkpoints that a run may make readable for everybody at the server.
// +kubebuilder:validation:Enum=None;Own
type Publication string

// The values of Publication.
const (
	PublicationNone Publication = "None"
	// PublicationOwn permits the publication of the run's own checkpoints.
	PublicationOwn Publication = "Own"
)

// ReadableCheckpoints lets the runs of some namespaces use some checkpoints.
type ReadableCheckpoints struct {
	// namespaces are the names of the namespaces.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +required
	Namespaces []string `json:"namespaces"`
	// checkpoints are paths, tinker://RUN/KIND/NAME.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^tinker://[^/]+/[^/]+/[^/]+$`
	// +required
	Checkpoints []string `json:"checkpoints"`
}

// EndpointLimits apply to the runs of an endpoint together.
// +kubebuilder:validation:XValidation:rule="has(self.requestsPerSecond) || has(self.unfinishedSamples)",message="limits has no limit: give requestsPerSecond or unfinishedSamples, or remove limits"
type EndpointLimits struct {
	// requestsPerSecond limits the requests that all runs together submit. Polls for results do not count.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	RequestsPerSecond *float64 `json:"requestsPerSecond,omitempty"`
	// unfinishedSamples limits the sampling requests that have no result yet.
	// +kubebuilder:validation:Minimum=1
	// +optional
	UnfinishedSamples *int32 `json:"unfinishedSamples,omitempty"`
}

// BudgetPeriod is the period of a budget.
// +kubebuilder:validation:Enum=Month;Forever
type BudgetPeriod string

// The values of BudgetPeriod.
const (
	// BudgetPeriodMonth is a calendar month in UTC.
	BudgetPeriodMonth   BudgetPeriod = "Month"
	BudgetPeriodForever BudgetPeriod = "Forever"
)

// EndpointBudget limits the usage of some runs together in a period.
// +kubebuilder:validation:XValidation:rule="has(self.tokens) || has(self.usd)",message="a budget needs a limit: give tokens or usd"
type EndpointBudget struct {
	// name identifies the budget in the status, in the messages of runs and in kubectl tinker endpoints.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must have characters of a-z, 0-9 and '-', and begin and end with a letter or digit"
	// +required
	Name string `json:"name"`
	// namespaceSelector selects the namespaces whose runs count. Defaults to all namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// labelSelector selects, by labels, the runs that count. Defaults to all runs of the namespaces. The chart's value
	// endpoints.labels must list each label, since the author of a run chooses all other labels. Otherwise the endpoint is
	// not Ready.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// usd is the limit in dollars, at the prices of the endpoint. Tokens of a model whose price is not known cost nothing.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	USD *float64 `json:"usd,omitempty"`
	// tokens limits all tokens that the server bills.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Tokens *int64 `json:"tokens,omitempty"`
	// period is the period of the budget: Month, which begins with a calendar month in UTC, or Forever.
	// +required
	Period BudgetPeriod `json:"period"`
}

// NamespaceWeight is the weight of some namespaces.
type NamespaceWeight struct {
	// name identifies the entry.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// namespaceSelector selects the namespaces; {} selects all namespaces.
	// +required
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	// weight is the share of each run of these namespaces, relative to a run with the weight 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +required
	Weight int32 `json:"weight"`
}

// TinkerEndpointStatus is the observed state of an endpoint.
type TinkerEndpointStatus struct {
	// conditions are Ready, which says that the broker serves runs, Stalled, which says that a person has to act, and
	// Checked, which says whether the broker has checked the features of the server.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// codes are the codes of the problems that conditions show. docs/troubleshooting.md describes each code.
	// +listType=map
	// +listMapKey=condition
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Codes []ConditionCode `json:"codes,omitempty"`
	// observedGeneration is the generation of the newest spec that was acted upon.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// namespace is the operator's namespace, which has the broker, its records and the ConfigMaps of its usage.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// renewTime is the time at which the manager of this namespace last renewed its claim to the endpoint. Another release
	// of the operator takes the endpoint over if the time does not change for two minutes.
	// +optional
	RenewTime *metav1.Time `json:"renewTime,omitempty"`
	// takeoverTime is the time at which this manager took the endpoint over from another release. The manager makes its
	// broker 30 seconds later, once the broker of the other release has stopped serving.
	// +optional
	TakeoverTime *metav1.Time `json:"takeoverTime,omitempty"`
	// runs is the number of unfinished runs that name the endpoint and are allowed to use it.
	// +optional
	Runs *int32 `json:"runs,omitempty"`
	// usage is the usage of each budget in its current period.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Usage []EndpointBudgetUsage `json:"usage,omitempty"`
	// capabilities are the features that the server supports, for each base model and set of trained parts of the network.
	// The broker checks the features that runs ask for, once a day for all runs.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Capabilities []EndpointCapabilities `json:"capabilities,omitempty"`
}

// EndpointCapabilities are the operations that the server of an endpoint supports with a base model, as a check of the
// broker found. Operations have the same names as in a run's status.capabilities. An operation in none of the lists was
// not checked.
type EndpointCapabilities struct {
	// model is the base model that was tried.
	// +kubebuilder:validation:MaxLength=256
	// +required
	Model string `json:"model"`
	// trainModules are the parts of the network that were trained.
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	// +optional
	TrainModules []TrainModule `json:"trainModules,omitempty"`
	// supported lists the operations that worked.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +optional
	Supported []string `json:"supported,omitempty"`
	// ignored lists the settings that the server accepts, but that have no effect.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +optional
	Ignored []string `json:"ignored,omitempty"`
	// unsupported lists the settings that the server refuses, or implements differently.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +optional
	Unsupported []string `json:"unsupported,omitempty"`
	// undecided lists the operations whose check had no result. Runs that need such an operation check it themselves.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +optional
	Undecided []string `json:"undecided,omitempty"`
	// checkedAt is the time of the oldest finding. It is absent if there are no findings.
	// +optional
	CheckedAt *metav1.Time `json:"checkedAt,omitempty"`
	// clientVersion is the version of the broker that checked. Servers do not report a version of their own.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ClientVersion string `json:"clientVersion,omitempty"`
	// connection is a digest of the other inputs of a check: the fields of the spec about the server, and the annotation
	// rl.tinker-operator.dev/check-again.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Connection string `json:"connection,omitempty"`
	// refused is the message with which the server refused the last check. It is absent if the server did not refuse the
	// check.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Refused string `json:"refused,omitempty"`
}

// EndpointBudgetUsage is the usage of a budget in its current period.
type EndpointBudgetUsage struct {
	// name is the name of the budget.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// since is the time at which the period began. It is absent if the period is Forever.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// tokens is the number of used tokens.
	// +optional
	Tokens *int64 `json:"tokens,omitempty"`
	// usd is the cost of the used tokens, in dollars.
	// +optional
	USD *float64 `json:"usd,omitempty"`
}
