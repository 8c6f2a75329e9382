// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/tinker-operator/tinker-operator/internal/broker/meter"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

const (
	// restoredDays is how many days of usage are read from their ConfigMaps, in case the records are lost.
	restoredDays = 2
	// writtenLife is the age from which the usage of a day is not written any more. The broker's Role permits the
	// ConfigMaps of ten days by name.
	writtenLife = 60 * time.Hour
)

// accounts write the broker's usage to the ConfigMaps of the days.
type accounts struct {
	maps     corev1client.ConfigMapInterface
	endpoint string
	meter    *meter.Meter
	// written are the texts of the days, and at is when they were last compared.
	written map[time.Time]string
	at      time.Time
}

func newAccounts(o options, core corev1client.ConfigMapsGetter, m *meter.Meter) *accounts {
	return &accounts{maps: core.ConfigMaps(o.namespace), endpoint: o.endpoint, meter: m, written: map[time.Time]string{}}
}

// restore takes over the usage that an earlier broker wrote where it exceeds the usage of the records.
func (a *accounts) restore(ctx context.Context, now time.Time) error {
	var rows []endpoint.Usage
	for i := range restoredDays {
		text, err := a.read(ctx, endpoint.UsageName(a.endpoint, now.AddDate(0, 0, -i)), endpoint.UsageKey)
		if err != nil {
			return err
		}
		day, err := meter.DecodeUsage(text)
		if err != nil {
			return err
		}
		rows = append(rows, day...)
	}
	var report endpoint.Report
	text, err := a.read(ctx, endpoint.ReportName(a.endpoint), endpoint.ReportKey)
	if err != nil {
		return err
	}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &report); err != nil {
			return fmt.Errorf("decoding the earlier report: %w", err)
		}
	}
	return a.meter.Restore(ctx, rows, report.Budgets)
}

// read returns a value of a ConfigMap, or "" if there is none.
func (a *accounts) read(ctx context.Context, name, key string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, reportPatience)
	defer cancel()
	found, err := a.maps.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	return found.Data[key], nil
}

// write writes the days that have changed, every few seconds.
func (a *accounts) write(ctx context.Context, now time.Time) error {
	if now.Sub(a.at) < reportEvery {
		return nil
	}
	a.at = now
	for _, day := range a.meter.Days() {
		if now.Sub(day) >= writtenLife {
			continue
		}
		text, err := meter.EncodeUsage(a.meter.Usage(day))
		if err != nil {
			return err
		}
		if text == a.written[day] {
			continue
		}
		if err := a.writeDay(ctx, day, text); err != nil {
			return err
		}
		a.written[day] = text
	}
	return nil
}

func (a *accounts) writeDay(ctx context.Context, day time.Time, text string) error {
	name, data := endpoint.UsageName(a.endpoint, day), map[string]string{endpoint.UsageKey: text}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return fmt.Errorf("encoding usage: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, reportPatience)
	defer cancel()
	_, err = a.maps.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = a.maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data},
			metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing the usage of %s: %w", day.Format(time.DateOnly), err)
	}
	return nil
}
