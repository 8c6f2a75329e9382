// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package share shares the limits of a server for one key over the runs behind a broker: requests a second, and samples
// that have no result yet.
//
// # Turns
//
// A request has its turn by start-time fair queueing: each run has a virtual time, which a request moves on by the
// inverse of the run's weight, and the run with the earliest time is next. A run that was idle begins at the time of
// the others: it gets no more for having waited, and while it is idle the others have its share.
//
// The operations of a run have their turns in the order in which they came, and before its samples, for whose places
// they do not wait. They also go before the samples of other runs, by as much virtual time as passes in a second.
//
// When the place of an unfinished sample becomes free, it goes to a waiting run that has less than its share of the
// places, and otherwise to any waiting run. So a run may have more than its share while no other run wants the
// places.
//
// # Answers with 429
//
// After a second in which the server answered 429, the rate is 95% of the requests that the server accepted in that
// second, but at least half of the previous rate. It then rises by 2% of the configured rate each second. Without a
// configured rate it rises by 5% each second, and is unlimited again above four times the highest rate that the
// server has accepted. So a server that permits less than is configured is asked for little more than it permits, and
// all runs are slowed by their weights.
package share
