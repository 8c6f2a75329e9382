// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package problem

// atServer are the conditions that show problems of the endpoint's server: of a run, and of a TinkerEndpoint.
const atServer = progressing + ", " + brokered

// endpointTable has the problems at the endpoint, or on the way to it.
var endpointTable = []entry{
	{KeyRefused, Row{
		Conditions: "Progressing, PodsReady", Endpoint: true, NeedsAction: true, Retry: AWhile,
		Next: AwaitRepair,
		Fact: "The endpoint refuses the API key.",
		Means: "The endpoint refuses the API key, or the key is empty. The run continues with workers whose key is " +
			"accepted.",
		Field:  "the Secret of tinker.apiKeySecretKeyRef",
		Repair: "Put a valid key into $(field), or correct tinker.apiKeySecretKeyRef."}},
	{EndpointUnreachable, Row{
		Conditions: progressing, Endpoint: true, NeedsAction: true, Retry: Always,
		Fact:   "The endpoint does not answer.",
		Means:  "tinker.baseURL does not answer.",
		Repair: "Check tinker.baseURL and the network."}},
	{EndpointNotTinker, Row{
		Conditions: atServer, Endpoint: true, NeedsAction: true, Retry: AWhile,
		Next: AwaitRepair,
		Fact: "The endpoint's server is not the Tinker API.",
		Means: "The server at the endpoint's address is not the Tinker API. The message quotes the first request and its " +
			"answer.",
		Field: "tinker.baseURL",
		Repair: "Correct $(field), to which /api/v1 is appended. If the server speaks TLS, begin the address with " +
			"https://."}},
	{EndpointAuthorityUnknown, Row{
		Conditions: atServer, Reason: string(EndpointNotTinker), Endpoint: true, NeedsAction: true, Retry: AWhile,
		Next:   AwaitRepair,
		Fact:   "The certificate of the endpoint's server is signed by an unknown authority.",
		Field:  "tinker.caBundleConfigMapKeyRef",
		Repair: "Put the certificate of the authority into a ConfigMap, and name the ConfigMap in $(field)."}},
	{EndpointCertificateExpired, Row{
		Conditions: atServer, Reason: string(EndpointNotTinker), Endpoint: true, NeedsAction: true, Retry: AWhile,
		Next:   AwaitRepair,
		Fact:   "The certificate of the endpoint's server has expired, or is not valid yet.",
		Repair: "Renew the certificate of the server. If the certificate is valid, correct the clocks of the nodes."}},
	{EndpointHostMismatch, Row{
		Conditions: atServer, Reason: string(EndpointNotTinker), Endpoint: true, NeedsAction: true, Retry: AWhile,
		Next:   AwaitRepair,
		Fact:   "The certificate of the endpoint's server is for another host.",
		Field:  "tinker.baseURL",
		Repair: "Name a host of the certificate in $(field), or give the server a certificate for the host."}},
	{EndpointCertificateInvalid, Row{
		Conditions: atServer, Reason: string(EndpointNotTinker), Endpoint: true, NeedsAction: true, Retry: AWhile,
		Next:   AwaitRepair,
		Fact:   "The certificate of the endpoint's server is not valid.",
		Repair: "Give the server a valid certificate."}},
	{EndpointWithoutTLS, Row{
		Conditions: atServer, Reason: string(EndpointNotTinker), Endpoint: true, NeedsAction: true, Retry: AWhile,
		Next:   AwaitRepair,
		Fact:   "The endpoint's server does not speak TLS.",
		Field:  "tinker.baseURL",
		Repair: "Begin $(field) with http://, or give the server a certificate."}},
	{EndpointRefusesTLS, Row{
		Conditions: atServer, Reason: string(EndpointNotTinker), Endpoint: true, NeedsAction: true, Retry: AWhile,
		Next: AwaitRepair,
		Fact: "The endpoint's server refuses the TLS connection of the client.",
		Means: "The endpoint's server refuses the TLS connection of the client, in most cases because the server asks " +
			"for a client certificate.",
		Field:  "tinker.clientCertificateSecretRef",
		Repair: "Give a client certificate that the server accepts by $(field)."}},
	{EndpointFailing, Row{
		Conditions: progressing, Endpoint: true, Retry: Always,
		Fact:   "The endpoint answers with errors of its own.",
		Repair: "Read the log of the endpoint. The run continues once the endpoint answers."}},
	{SamplingRefused, Row{
		Conditions: progressing, Reason: string(EndpointFailing), Endpoint: true, NeedsAction: true, Retry: Always,
		Fact:   "The endpoint refuses to sample.",
		Repair: "Correct the cause that the answer names, at the server or in the run."}},
	{RequestTooLarge, Row{
		Conditions: progressing, Reason: string(UnsupportedByEndpoint), Endpoint: true, NeedsAction: true, Retry: Always,
		Fact:   "The endpoint or a proxy rejects a request with one training sequence as too large.",
		Repair: "Raise the limit of request bodies at the endpoint or the proxy."}},
	{Throttled, Row{
		Conditions: progressing, Reason: endpointBusy, Endpoint: true, Continues: true, Retry: Always,
		Fact: "The endpoint answers 429, because its rate limit is reached."}},
	{PausedCapacity, Row{
		Conditions: progressing, Reason: endpointBusy, Endpoint: true, Retry: Always,
		Fact:   "The endpoint has paused the model, because it lacks capacity.",
		Repair: "Wait."}},
	{PausedRateLimit, Row{
		Conditions: progressing, Reason: endpointBusy, Endpoint: true, Retry: Always,
		Fact:   "The endpoint has paused the model at a rate limit.",
		Repair: "Wait."}},
	{PaymentRequired, Row{
		Conditions: progressing, Endpoint: true, NeedsAction: true, Retry: Always,
		Fact:   "The endpoint answers 402.",
		Repair: "Check the account's billing."}},
	{SettingsRefused, Row{
		Conditions: progressing, Reason: string(UnsupportedByEndpoint), Endpoint: true, NeedsAction: true, Retry: Always,
		Next:   AwaitRepair,
		Fact:   "The endpoint refuses a setting of the run.",
		Repair: "Repair the endpoint, or correct the setting before a first step is committed."}},
	{DataRefused, Row{
		Conditions: progressing, Reason: string(UnsupportedByEndpoint), Endpoint: true, NeedsAction: true, Retry: Always,
		Next:   AwaitRepair,
		Fact:   "The endpoint refuses all training data.",
		Repair: "Repair the endpoint, or change the loss or the model before a first step is committed."}},
	{ContextTooShort, Row{
		Conditions: progressing, Reason: string(UnsupportedByEndpoint), Endpoint: true, NeedsAction: true, Retry: AWhile,
		Next:   AwaitRepair,
		Fact:   "The samples do not fit into the model's context.",
		Repair: "Change the limits that the message names, or serve the model with a longer context."}},
	{CheckpointMissing, Row{
		Conditions: progressing, Reason: string(NoUsableCheckpoint), Endpoint: true, NeedsAction: true, Retry: Always,
		Next:   AwaitRepair,
		Fact:   "The endpoint cannot read a checkpoint that the spec names.",
		Repair: "Make the checkpoint readable, or name another one before a first step is committed."}},
}

// trustAuthority is the repair of a server's certificate whose authority the pods do not trust, up to the pods.
const trustAuthority = "Mount the certificate of the authority (volumes, volumeMounts), and name its file in the " +
	"variable SSL_CERT_FILE (env). The file replaces the authorities of the image, so add the public authorities that " +
	"the pods need. Set these fields in "

// podsOfEnvironments ends trustAuthority for the pods of environments and runs.
const podsOfEnvironments = "pod of the RewardEnvironment and in podOverrides of its runs, or in the chart's value pods."

// storeTable has the problems of data, stores and services that a run reads and writes besides the endpoint.
var storeTable = []entry{
	{ArtifactsBlocked, Row{
		Conditions: "Progressing, Recording", NeedsAction: true, Retry: Always,
		Fact:   "The learner cannot write its files (%s).",
		Means:  "The learner cannot write its files. The run makes at most one further step meanwhile.",
		Repair: "Repair the store of spec.artifacts."}},
	{ArtifactsAuthorityUnknown, Row{
		Conditions: "Progressing, Recording", Reason: string(ArtifactsBlocked), NeedsAction: true, Retry: Always,
		Fact:   "The learner does not trust the authority of the certificate of the store of its files (%s).",
		Repair: trustAuthority + "podOverrides[target=Learner] of the run, or in the chart's value pods."}},
	{TokenizerBlocked, Row{
		Conditions: progressing, Reason: inputBlocked, NeedsAction: true, Retry: Always,
		Fact:   "The tokenizer cannot be loaded (%s).",
		Means:  "The tokenizer is missing, has changed, is not supported, or its repository refuses the token.",
		Repair: "Check the source of model.tokenizer, its token and the network."}},
	{DataBlocked, Row{
		Conditions: progressing, Reason: inputBlocked, NeedsAction: true, Retry: Always,
		Fact:   "A worker cannot read its data (%s).",
		Means:  "No worker can read the data: the data have changed or are missing, or their server refuses the worker.",
		Repair: "Repair the data."}},
	{DataAuthorityUnknown, Row{
		Conditions: progressing, Reason: inputBlocked, NeedsAction: true, Retry: Always,
		Fact:   "The pods do not trust the authority of the certificate of a server of data or of the tokenizer (%s).",
		Repair: trustAuthority + podsOfEnvironments}},
	{RowsBlocked, Row{
		Conditions: progressing, Reason: inputBlocked, NeedsAction: true, Retry: Always,
		Fact:   "The learner cannot train on the rows of supervised.dataset (%s).",
		Means:  "The rows of a supervised run cannot be read, have changed, or none of them can be trained on.",
		Repair: "Repair the data, or correct the field that the message names before a first step is committed."}},
	{JudgeBlocked, Row{
		Conditions: progressing, Reason: inputBlocked, NeedsAction: true, Retry: Always,
		Fact:  "A worker cannot ask a judge, and no reply is scored without it (%s).",
		Means: "A judge is down, or refuses its key or model. No reply is scored meanwhile.",
		Repair: "Repair the judge. A change of its address or model in the RewardEnvironment concerns later runs " +
			"only."}},
	{JudgeAuthorityUnknown, Row{
		Conditions: progressing, Reason: inputBlocked, NeedsAction: true, Retry: Always,
		Fact:   "The pods do not trust the authority of the certificate of a judge (%s).",
		Repair: trustAuthority + podsOfEnvironments}},
}

// trackingTable has the problems of the services that show a run's curves. The run continues to train.
var trackingTable = []entry{
	{Connecting, Row{
		Conditions: recording, Reason: notStarted, Continues: true,
		Means:  "No learner has reached the service yet.",
		Repair: "Wait."}},
	{KeyMissing, Row{
		Conditions: recording, Reason: trackerRefused, Continues: true,
		Means:  "The Secret with the key of the service does not exist, or lacks the key.",
		Repair: "Create the Secret, or add the key to it. The learner reads it again."}},
	{TrackerKeyRefused, Row{
		Conditions: recording, Reason: trackerRefused, Continues: true,
		Means:  "The service refuses the key.",
		Repair: "Put a valid key into the Secret of the service in spec.tracking. The learner reads it again."}},
	{PermissionDenied, Row{
		Conditions: recording, Reason: trackerRefused, Continues: true,
		Means:  "The user of the key may not write to the project.",
		Repair: "Give the user the right to write to the project, or correct entity and project."}},
	{ServiceNotFound, Row{
		Conditions: recording, Reason: trackerRefused, Continues: true,
		Means:  "The server at the address is not the service, or the service has no such entity.",
		Repair: "Correct baseURL or entity of the service in spec.tracking."}},
	{ServiceUnreachable, Row{
		Conditions: recording, Reason: trackerUnreachable, Continues: true,
		Means: "The service does not answer.",
		Repair: "Correct baseURL, or repair the network. A proxy is set by HTTPS_PROXY in " +
			"podOverrides[target=Learner].env."}},
	{ServiceFailing, Row{
		Conditions: recording, Reason: trackerUnreachable, Continues: true,
		Means:  "The service answers with errors of its own, or asks to slow down.",
		Repair: "Wait."}},
	{StepsDropped, Row{
		Conditions: recording, Reason: recordsDropped, Continues: true,
		Means:  "The learner had no room for the steps that wait for the service.",
		Repair: "Set spec.artifacts."}},
	{RolloutsDropped, Row{
		Conditions: recording, Reason: recordsDropped, Continues: true,
		Means:  "The learner had no room for the rollouts that wait for the service, or the service refused them.",
		Repair: "Set spec.artifacts."}},
}
