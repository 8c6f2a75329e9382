// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package learner is the training loop of a run: it opens a model from the newest saved state, collects the batch of
// each step from the rollout workers, trains, saves and continues, until the last step is committed and every
// evaluation has its result. It does not depend on Kubernetes.
//
// A learner may be killed at any instruction and loses nothing but time; two may run at once, and then one of them
// commits nothing. That depends on the order of the phases in protocol.go, which no change may break:
//
//	begin:  claim the attempt, pin the tokenizer, check the endpoint, connect
//	open:   list the states, load the newest, save it under the model's own name, look for a higher claim, admit workers
//	step:   collect the batch, submit, wait for clean replies, save and announce the sampler weights, measure
//	commit: write the row, save the state (its clean reply is the commit), look for a higher claim, cover, retire
//
// While the save of a state has no reply, the next step may be submitted after it; the commit is complete before the
// next version is announced.
//
// After any failure in between, the model is discarded and another one is opened. The name of each phase is a fault
// point, at which tests kill or stop the learner.
package learner
