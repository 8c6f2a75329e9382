// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// settingsStore has the newest settings that the manager wrote and that could be read.
type settingsStore struct {
	endpoint string
	log      *slog.Logger
	mu       sync.Mutex
	newest   *endpoint.Settings
	// known is closed with the first settings.
	known chan struct{}
}

func newSettingsStore(name string, log *slog.Logger) *settingsStore {
	return &settingsStore{endpoint: name, log: log, known: make(chan struct{})}
}

// get returns the newest settings, or nil.
func (s *settingsStore) get() *endpoint.Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// watch follows the ConfigMap of the settings until ctx ends.
func (s *settingsStore) watch(ctx context.Context, core corev1client.CoreV1Interface, namespace string) {
	name := fields.OneTermEqualSelector("metadata.name", endpoint.SettingsName(s.endpoint))
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(core.RESTClient(), "configmaps", namespace, name),
		ObjectType:    &corev1.ConfigMap{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    s.take,
			UpdateFunc: func(_, next any) { s.take(next) },
			DeleteFunc: func(any) { s.log.Warn("the settings were deleted; the newest stay in force") },
		},
	})
	controller.RunWithContext(ctx)
}

// take keeps settings that can be read. Settings that cannot be read leave the earlier ones in force.
func (s *settingsStore) take(object any) {
	stored, ok := object.(*corev1.ConfigMap)
	if !ok {
		return
	}
	read, err := readSettings(s.endpoint, stored.Data[endpoint.SettingsKey])
	if err != nil {
		s.log.Error("keeping the earlier settings", "configMap", stored.Name, "err", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == nil {
		close(s.known)
	}
	s.newest = read
}

func readSettings(name, text string) (*endpoint.Settings, error) {
	var read endpoint.Settings
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", endpoint.SettingsKey, err)
	}
	if read.Endpoint != name {
		return nil, fmt.Errorf("reading %s: it is of the TinkerEndpoint %q", endpoint.SettingsKey, read.Endpoint)
	}
	return &read, nil
}
