// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package dialect reads requests and writes replies as services of language models do: OpenAI's chat/completions,
// completions, models and a subset of responses, and Anthropic's messages, count_tokens and models. Requests of all
// dialects become a Request, and a Reply becomes the body or the events that the official clients parse. The package
// is pure: it reads no clock and no network, and the gateway passes in times, IDs and signatures.
//
// A request is untrusted. Decode bounds its size, its nesting and its numbers of messages and tools. It returns an
// *Error that names the field and that each dialect can express. docs/dialects.md lists how each option is treated.
//
// A reply that a client sends back decodes to the message of that reply, in its Normal form. There are two exceptions:
// a message of chat/completions has one reasoning and one text, so that their order is lost if they alternate; and
// clients of messages parse the arguments of calls, so that arguments can come back with the same value in other white
// space, escapes and number formats.
package dialect
