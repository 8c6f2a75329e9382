// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package tinker holds the wire format of the Tinker API: the bodies of its requests and replies, their JSON
// and protobuf codecs, and the one table of error categories. Package client sends these bodies and the
// simulator answers with them. The package knows nothing of reinforcement learning or Kubernetes.
package tinker
