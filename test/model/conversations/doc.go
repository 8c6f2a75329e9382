// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package conversations is the model of one member whose program asks the policy in several conversations at once. It
// checks that the requests and the training data do not depend on the order of requests and answers, even if worker and
// learner die and the member is played again.
package conversations
