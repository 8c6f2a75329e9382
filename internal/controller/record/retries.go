// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// RetryRates delays consecutive failing reconciles of an object by 5 ms, 10 ms and so on, up to 30 s: a reconcile that
// fails every time still writes the status, which must not be older than that. The default of controller-runtime is a
// quarter of an hour.
func RetryRates() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, writeFigures)
}
