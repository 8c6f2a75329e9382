// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package tinkersim is a Tinker-compatible server around a small language model that really
// learns: the embedded default of the operator and its main test bed. It is an http.Handler. It
// opens no ports, reads no environment, and every goroutine that it starts ends with Close.
//
// It must not know what its clients train for: rewards, groups and steps never reach it.
//
// # Promise
//
//   - (model, seq) is executed once, whatever is posted again, and saves are no exception. A
//     number that comes back with another operation is refused with 400.
//   - The operations of a model are executed in the order of their numbers. Chunks may arrive in
//     any order and numbers may be missing (package order says how that ends).
//   - A failed forward_backward adds nothing to the gradient.
//   - A sample is a function of its weights, its prompt, its parameters and its seed. (sampling
//     session, seq) is answered with the same samples while their promise is kept; afterwards, or
//     under another number, the same seed draws the same tokens.
//   - A restart forgets models, sessions and promises, and answers 404 for them, never with an
//     older self. Runs and checkpoints stay. Request ids and session ids never come again.
//   - A save is listed when its reply is given, and not before it can be loaded. What a restart
//     interrupts leaves nothing.
//   - Listings cover all models of the account, with their user metadata.
//   - A load is permitted as a model's first request alone, as on the hosted service.
//
// # Other models' tokens
//
// Options.Vocabularies are further base models: the same network under the ids of another model's
// tokenizer (package vocabulary), which the server has at hand as a hub does. So clients with that
// model's tokenizer, prompts and stops can train and sample; what the model says in them is noise until
// it has learnt. Tests that need more than noise have replies forced (package rehearsal).
//
// # Layout
//
// routes.go is the table of endpoints. An endpoint reads its request, calls one method of a life
// (package life: everything that the server forgets when it restarts) and writes what it returns.
// exchange.go is the one place where requests meet keys and scripted faults (package fault), and
// where errors become answers. Checkpoints are in package checkpoint, results in package promise,
// the order of operations in package order, and batches of samples in package sampling.
package tinkersim
