// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package tinkersim is a Tinker-compatible server around a small language model that really
// learns: the embedded default of the operator and its main test bed. It is an http.Handler. It
// opens no ports, reads no environment variables, and every goroutine that it starts ends with Close.
//
// It must not know the goals of its clients: rewards, groups and steps never reach it.
//
// # Guarantees
//
//   - Each (model, seq) is executed once, even if the request is repeated; this includes saves. A number
//     that is reused for another operation is refused with 400.
//   - The operations of a model are executed in the order of their numbers. Chunks may arrive in any
//     order and numbers may be missing; the operation queue of package state says how long it waits.
//   - A failed forward_backward adds nothing to the gradient.
//   - A sample is a function of its weights, its prompt, its parameters and its seed. A repeated
//     (sampling session, seq) gets the same samples while their future exists; afterwards, or under
//     another number, the same seed draws the same tokens. Options.SampleNoise makes it a function of the
//     request id, too.
//   - A restart forgets models, sessions and futures, and responds to requests for them with 404, never
//     with an earlier state of them. Runs and checkpoints stay. Request ids and session ids are never reused.
//   - A save is listed when its result is returned, and not before it can be loaded. A save that a
//     restart interrupts leaves nothing behind.
//   - Listings cover all models of the account, with their user metadata.
//   - A load is permitted only as the first operation of a model, as on the hosted service.
//
// # Vocabularies of other models
//
// Options.Vocabularies are further base models: the same network with the token ids of another model's tokenizer
// (package vocabulary), which the server also serves as a Hugging Face hub does. Clients with that model's tokenizer,
// chat format and stop sequences can train and sample. The model samples noise until it has learnt; tests that need
// more force samples (sampling.ForcedRule).
//
// # Layout
//
// routes.go is the table of endpoints. An endpoint decodes its request, calls one method of package state,
// which holds everything that a restart forgets, and encodes the result. handler.go checks keys, applies
// scripted faults (package fault) and converts errors to responses. Package checkpoint stores checkpoints,
// package future stores results, and package sampling draws samples in batches.
package tinkersim
