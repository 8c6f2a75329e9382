// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway serves a policy to agents that others wrote, as OpenAI's and Anthropic's services serve models. Each
// episode has its own base URL and token, which become invalid when it ends. Package dialect has the requests and
// replies; an environment.AgentPolicy decides which conversation a request continues.
//
// A request outlives its connection. If the client of a request has gone away, has timed out or was asked to come
// back, the next equal request continues it, since clients repeat requests without saying so. Equal requests of open
// connections are different samples. While the policy does not answer, streams are kept alive, and other requests are
// answered, before their client gives up, with a status that makes clients try again.
package gateway
