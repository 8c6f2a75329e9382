// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package contract has the messages that the manager and the pods of a run exchange. It imports the standard
// library alone, so that programs which link no Kubernetes client can read it.
//
//   - A [RunFile] is the configuration of one attempt: the manager encodes it into a ConfigMap, the learner
//     and the workers decode and validate it. It never changes, and all defaults are filled in.
//     Its types resemble those of the API and are not the same: their encoding is digested, so that it stays when a
//     version of the API changes names or defaults.
//   - A heartbeat is a request that the manager posts to the learner ([HeartbeatRequest]) and the learner's
//     answer ([HeartbeatReply]). A learner that ends leaves a [Verdict] as its container's termination message.
//   - [Credentials] are the token and the TLS key pair of a run. They derive from one manager key and the run's
//     uid, so that the manager never reads a Secret back.
package contract
