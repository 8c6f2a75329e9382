// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package dialects lets the official clients of OpenAI and Anthropic talk to the codecs of internal/gateway/dialect:
// the clients parse canned replies, send them back, and raise their exceptions. With the flag -update, the package
// records the clients' requests as the test data of the codecs. Agents that use the clients play conversations at a
// gateway. The checks need Python and the build tag conformance; the checks of agents of frameworks, and of the sample
// with mini-swe-agent, also need the tag agents.
package dialects
