// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package meter counts what a server bills to the runs behind a broker, by run, model and day in UTC, and compares it
// with budgets.
//
// # What counts
//
// A request is the future that the server answers. It counts once, when its result is first delivered, with the prices
// of that moment. A future that failed, or that the server lost, counts nothing, unless Config.CountFailed is set. A
// result for which its run does not ask is fetched by the broker, because it is billed.
//
// # Records
//
// The meter keeps its records in a journal of its own. Four kinds of records are about a request:
//
//	grant   before a request is forwarded: what requests of a run and model may cost that have no future yet
//	opened  within a moment of the reply: the future, and what it costs
//	settled once its result was delivered: what counts
//	lost    when the meter is opened after a crash: the grants that were left count in full
//
// A grant covers the requests in progress, and further ones for as much as the last second's cost, so that most
// requests wait for no record. It is corrected a second after the last of them. So a crash counts one second too much
// at most. It never counts too little: a future without a record has a grant, which a smaller one replaces only behind
// that record, and a future that was delivered without a record is open, and is fetched again.
package meter
