// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package model is the small language model behind tinkersim: a byte-level transformer with
// LoRA adapters, the six losses of the Tinker API, AdamW and a sampler.
//
// It is arithmetic alone: it knows nothing of HTTP, of the wire format, of sessions or of
// checkpoints' names, and it reads neither the clock nor the environment.
//
// # The base models
//
// They are transformers of 135,680 parameters over bytes (see package transformer), pretrained by the program in
// pretrain. There is no token before a conversation. Replies begin with a space and end with TokenEnd. A model accepts
// any other prompt, but has no sensible reply to it.
//
// Base answers questions of one form:
//
//	User: What is 27 + 58?\n\nAssistant: 85<|end|>
//
// Some replies are chatty, and most forget the carry, so there is something to learn. Operands are 0 to 100.
//
// CountdownBase has both roles of the workflow solverJudge on Countdown, with two or three numbers from 1 to 19. As
// solver it mostly guesses, and is right in about one of five replies. As judge it chooses among two or three solutions
// at random.
//
//	User: Make 24 from 3, 8.\n\nAssistant: <answer>3*8</answer><|end|>
//	User: Make 24 from 3, 8.\n\nSolution 1:\n<answer>3*8</answer>\n\nSolution 2:\nNo solution found\n\n
//	Which solution is right?\n\nAssistant: <answer>1</answer><|end|>
//
// SumsBase answers the questions of Base, and adds correctly. Its replies are mostly plain, and have the forms of
// Base's.
//
// # Adapters
//
// The change of a matrix is 32/rank·A·B. A starts random and B zero. Forward and backward passes
// run on merged weights in float32; the sampler's weights are the merged ones rounded to bf16, so
// that its log-probabilities are close to the trainer's but not equal.
//
// # Vocabularies
//
// The native tokens of the model are bytes and four special tokens. BaseModel.WithVocabulary returns the same model
// with the tokens of another vocabulary: each token is converted to native tokens, and its probability is the product
// of theirs. All methods then accept and return tokens of that vocabulary, and the context is longer: LongContext
// tokens of the vocabulary. The attention of the model is not longer: a prediction depends on the last Window native
// tokens or fewer, as type window describes.
//
// # Guarantees
//
// Every result is a pure function of its inputs, to the bit, on machines of one architecture:
// it depends neither on the number of CPUs and goroutines nor on earlier calls. A sample and a datum's
// log-probabilities do not depend on the rest of the batch. Gradients depend on the sequence of
// calls alone. An adapter that was written with MarshalState and read with UnmarshalState continues
// exactly as the one that was written.
package model
