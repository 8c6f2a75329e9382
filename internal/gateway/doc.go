// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway serves a policy to agents that others wrote, as OpenAI's and Anthropic's services serve models. Each
// episode has a base URL and a token of its own, which end with it. Package dialect has the requests and replies; an
// environment.AgentPolicy decides which conversation a request continues.
//
// A request outlives its connection. One that equals a request whose client has gone away, has timed out or was asked
// to come back continues it: clients repeat requests without saying so. Equal requests of connections that are open are
// different samples. While the policy does not answer, streams are kept alive, and other requests are answered before
// their client gives up, with the status at which clients come back.
package gateway
