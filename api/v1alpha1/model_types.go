// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

// TrainModule is a part of the network that LoRA trains.
// +kubebuilder:validation:Enum=Attention;MLP;Unembed
type TrainModule string

// The parts of the network.
const (
	TrainAttention TrainModule = "Attention"
	TrainMLP       TrainModule = "MLP"
	TrainUnembed   TrainModule = "Unembed"
)

// Model is the base model and the LoRA adapter that is trained.
type Model struct {
	// name is the name of the base model as the endpoint spells it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Name string `json:"name"`
	// loraRank is the rank of the adapter.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +kubebuilder:default=32
	// +optional
	LoraRank *int32 `json:"loraRank,omitempty"`
	// trainModules are the parts of the network that the adapter covers.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:default={Attention,MLP,Unembed}
	// +optional
	TrainModules []TrainModule `json:"trainModules,omitempty"`
	// seed is the seed with which the adapter is initialised.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	// +optional
	Seed *int64 `json:"seed,omitempty"`
	// renderer turns conversations into tokens and back. Defaults to the renderer of the model if the operator knows the
	// model, or else to the chat template of the model.
	// +optional
	Renderer *Renderer `json:"renderer,omitempty"`
	// date is the date, as YEAR-MONTH-DAY, that prompts contain if the format of the model has a date, as the format of
	// gpt-oss has. Defaults to the day of metadata.creationTimestamp.
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`
	// +kubebuilder:validation:MaxLength=10
	// +optional
	Date string `json:"date,omitempty"`
	// tokenizer is the source of the tokenizer. Defaults to the tokenizer of the model if the operator knows the model, or
	// else to the repository that model.name names.
	// +optional
	Tokenizer *Tokenizer `json:"tokenizer,omitempty"`
}

// Tokenizer is the source of a tokenizer.json or a tiktoken file: a repository of the Hugging Face hub or a URL.
// +kubebuilder:validation:XValidation:rule="has(self.repository) != has(self.url)",message="give exactly one of repository and url"
// +kubebuilder:validation:XValidation:rule="!has(self.url) || has(self.sha256)",message="url needs sha256, the digest of the file there: sha256sum prints it"
// +kubebuilder:validation:XValidation:rule="!has(self.revision) || has(self.repository)",message="revision needs repository: give repository, or remove revision"
// +kubebuilder:validation:XValidation:rule="!has(self.tokenSecretKeyRef) || has(self.repository)",message="tokenSecretKeyRef is a token for repository: give repository, or remove tokenSecretKeyRef"
type Tokenizer struct {
	// repository is a repository on the Hugging Face hub.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$')",message="must be OWNER/NAME, as the hub spells it"
	// +optional
	Repository string `json:"repository,omitempty"`
	// revision is the revision of the repository: a branch, tag or commit. Defaults to main if repository is
	// given.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Revision string `json:"revision,omitempty"`
	// url is the address of the file.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/]')",message="must begin with http:// or https://, followed by a host"
	// +optional
	URL string `json:"url,omitempty"`
	// sha256 is the SHA-256 digest of the file, in hex. A file with another digest is refused.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{64}$')",message="sha256 must be 64 hexadecimal digits in lower case"
	// +optional
	SHA256 string `json:"sha256,omitempty"`
	// tokenSecretKeyRef is the Secret key that holds a token for a private or gated repository. Only the learner and the
	// workers of the run receive the token, to download the tokenizer and the chat template. A change restarts the learner
	// at a saved state.
	// +optional
	TokenSecretKeyRef *ref.SecretKey `json:"tokenSecretKeyRef,omitempty"`
}

// Tinker is the endpoint that samples and trains: an endpoint of the platform, or a server with a key of your own.
// +kubebuilder:validation:XValidation:rule="has(self.endpointRef) != has(self.apiKeySecretKeyRef)",message="give exactly one of tinker.endpointRef, an endpoint of the platform (kubectl get tinkerendpoints), and tinker.apiKeySecretKeyRef, a key of your own"
// +kubebuilder:validation:XValidation:rule="!has(self.endpointRef) || !(has(self.baseURL) || has(self.caBundleConfigMapKeyRef) || has(self.clientCertificateSecretRef) || has(self.proxyURL) || has(self.projectID))",messageExpression="'tinker.' + (has(self.baseURL) ? 'baseURL' : has(self.caBundleConfigMapKeyRef) ? 'caBundleConfigMapKeyRef' : has(self.clientCertificateSecretRef) ? 'clientCertificateSecretRef' : has(self.proxyURL) ? 'proxyURL' : 'projectID') + ' is what the TinkerEndpoint of tinker.endpointRef decides: remove it, or give tinker.apiKeySecretKeyRef in place of endpointRef'"
// +kubebuilder:validation:XValidation:rule="!has(self.weight) || has(self.endpointRef)",message="tinker.weight is the share of a run at a TinkerEndpoint: remove it, or give tinker.endpointRef"
type Tinker struct {
	// endpointRef names the TinkerEndpoint that the run uses instead of a key of its own. Excludes apiKeySecretKeyRef,
	// baseURL, projectID, proxyURL, caBundleConfigMapKeyRef and clientCertificateSecretRef. Fixed once a step is
	// committed.
	// +optional
	EndpointRef *ref.Endpoint `json:"endpointRef,omitempty"`
	// weight is the run's share of the endpoint's limits, relative to the other runs that wait for them. If it is absent,
	// the weight is 1. A change takes effect at once.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`
	// baseURL is the address of the endpoint. If it is absent, the address is the chart's defaultBaseURL, which is hosted
	// Tinker unless the chart names another. Fixed once a step is committed.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/]')",message="must begin with http:// or https://, followed by a host"
	// +optional
	BaseURL string `json:"baseURL,omitempty"`
	// apiKeySecretKeyRef is the Secret key that holds your API key. Required unless endpointRef is given.
	// +optional
	APIKeySecretKeyRef *ref.SecretKey `json:"apiKeySecretKeyRef,omitempty"`
	// projectID is the project that the service bills. Defaults to the default project of the API key. A change takes
	// effect with the next attempt.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ProjectID string `json:"projectID,omitempty"`
	// proxyURL is the HTTP, HTTPS or SOCKS5 proxy through which the learner and the workers call the endpoint. Defaults to
	// the proxy in their environment variables. The URL must not contain a password.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?|socks5)://[^/@]+/?$')",message="must be http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT, without a user name, a password and a path"
	// +optional
	ProxyURL string `json:"proxyURL,omitempty"`
	// caBundleConfigMapKeyRef is the ConfigMap key with the certificates, in PEM, of authorities that are trusted in
	// addition to the authorities in the image.
	// +optional
	CABundleConfigMapKeyRef *ref.ConfigMapKey `json:"caBundleConfigMapKeyRef,omitempty"`
	// clientCertificateSecretRef is the Secret of type kubernetes.io/tls with the certificate that the learner and
	// the workers show to the endpoint.
	// +optional
	ClientCertificateSecretRef *ref.Secret `json:"clientCertificateSecretRef,omitempty"`
}
