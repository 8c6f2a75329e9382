// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package contract defines the messages that the manager and the pods of a run exchange. It imports no Kubernetes
// package, so that programs can use it without linking a Kubernetes client.
//
//   - A [RunFile] is the configuration of one attempt: the manager encodes it into a ConfigMap, the learner
//     and the workers decode it and check version, digest and attempt. It never changes, and all defaults are filled
//     in. Settings have the API's own types, from packages below api/v1alpha1; this package has the types of resolved
//     settings, such as environments with their digests and tasks. Digests are made of a canonical form, in which a
//     field that is not set has no place.
//   - A heartbeat is a request that the manager posts to the learner ([HeartbeatRequest]) and the learner's
//     answer ([HeartbeatReply]). A learner that ends leaves a [Verdict] as its container's termination message.
//   - [Credentials] are the token and the TLS key pair of a run. They derive from one manager key and the run's
//     uid, so that the manager never reads a Secret back.
package contract
