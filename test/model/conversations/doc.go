// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package conversations is the model of one member whose program asks the policy in several conversations at once:
// whether the requests and the training data are the same whatever the order of requests and answers, also when worker
// and learner die and the member is played again.
package conversations
