// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// TestFirstRetrySaysHowToReachTheEndpoint tries an endpoint whose name this machine cannot resolve, as chat and serve
// do for as long as they run: the first line has the repair, and the others are short.
func TestFirstRetrySaysHowToReachTheEndpoint(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var said []string
	at := Endpoint{baseURL: "http://tinkersim.invalid", key: "tml-test", http: http.DefaultClient}
	api, err := at.Client(func(message string) {
		if said = append(said, message); len(said) == 2 {
			cancel()
		}
	}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.CreateSession(ctx, client.SessionRequest{}); err == nil {
		t.Fatal("the endpoint answers")
	}
	for i, message := range said {
		if advised := strings.Contains(message, "kubectl port-forward") && strings.Contains(message, "--base-url"); advised !=
			(i == 0) {
			t.Errorf("line %d is %q", i+1, message)
		}
	}
	if len(said) != 2 {
		t.Errorf("%d lines, want 2", len(said))
	}
}
