// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

const (
	// reportEvery is how often an unchanged report is written, and reportPatience how long a write may take.
	reportEvery    = 10 * time.Second
	reportPatience = 5 * time.Second
)

// reporter writes the report of the broker that holds the Lease.
type reporter struct {
	maps           corev1client.ConfigMapInterface
	name, identity string
	written        endpoint.Report
}

func newReporter(o options, core corev1client.ConfigMapsGetter, identity string) *reporter {
	return &reporter{maps: core.ConfigMaps(o.namespace), name: endpoint.ReportName(o.endpoint), identity: identity}
}

// write writes the report if it has changed, or if the last write is long ago.
func (r *reporter) write(ctx context.Context, report endpoint.Report, now time.Time) error {
	report.Identity, report.Time = r.identity, r.written.Time
	if reflect.DeepEqual(report, r.written) && now.Sub(r.written.Time) < reportEvery {
		return nil
	}
	report.Time = now.UTC()
	encoded, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	data := map[string]string{endpoint.ReportKey: string(encoded)}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, reportPatience)
	defer cancel()
	_, err = r.maps.Patch(ctx, r.name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = r.maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: r.name}, Data: data},
			metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	r.written = report
	return nil
}
