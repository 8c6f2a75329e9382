// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package credentials is the model of who may fence a learner. The manager fences by a heartbeat, with a token of its
// own. A worker fences by reporting a higher attempt with the signature of that attempt's learner. Besides an honest
// worker the model has an attacker, who has all that a worker of this run and a worker of another run are given:
// tokens, certificates, and the signatures that learners send to workers. Signatures are symbols: nobody can make one
// without the private key.
package credentials
