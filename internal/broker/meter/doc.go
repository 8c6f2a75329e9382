// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package meter counts what a server bills to the runs behind a broker, by run, model and day in UTC, and compares it
// with budgets.
//
// # What counts
//
// A request is the future that the server answers. It counts once, when its result is first delivered, at the prices
// of that moment. A future that failed, or that the server lost, counts nothing unless Config.CountFailed is set. But
// a lost future that an earlier process may have delivered counts in full. The broker fetches a result for which the
// run does not ask, because it is billed.
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
// A grant covers the requests in progress, and further requests that cost as much as those of the last second, so
// that most requests wait for no record. It is corrected a second after the last request. So a crash makes the meter
// count at most one second too much. The meter never counts too little: a future without a record is covered by a
// grant, and a smaller grant is written only after the record of the future. A future whose delivery was not recorded
// stays open, and is fetched again.
package meter
