// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// TestMetricsOfABill has no values before the first bill: an endpoint may have none.
func TestMetricsOfABill(t *testing.T) {
	m := newMetrics(&process{options: options{endpoint: "prod"}})
	if n := testutil.CollectAndCount(m.billed) + testutil.CollectAndCount(m.billDifference); n != 0 {
		t.Errorf("without a bill there are %d values", n)
	}
	m.compare(broker.Bill{Billed: endpoint.Tokens{Sample: 10, Train: 5}, Counted: endpoint.Tokens{Sample: 12, Train: 5}})
	const want = `
# HELP tinker_operator_broker_bill_difference_tokens How many tokens more the Tinker endpoint bills for the last full hour than the broker counted, by kind.
# TYPE tinker_operator_broker_bill_difference_tokens gauge
tinker_operator_broker_bill_difference_tokens{endpoint="prod",kind="prefill"} 0
tinker_operator_broker_bill_difference_tokens{endpoint="prod",kind="sample"} -2
tinker_operator_broker_bill_difference_tokens{endpoint="prod",kind="train"} 0
`
	if err := testutil.CollectAndCompare(m.billDifference, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
