// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport/transporttest"
)

// TestServersThatTheBrokerCannotUse connects the broker to servers that are not the Tinker API, or that the broker
// does not trust: the report and the answers to runs have the code, and runs wait.
func TestServersThatTheBrokerCannotUse(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	secure := transporttest.PrivateServer(t).URL
	for name, tc := range map[string]struct {
		url  string
		want problem.Code
	}{
		"another server":       {other.URL, problem.EndpointNotTinker},
		"a private authority":  {secure, problem.EndpointAuthorityUnknown},
		"a server without TLS": {strings.Replace(other.URL, "http:", "https:", 1), problem.EndpointWithoutTLS},
		"TLS that is not used": {strings.Replace(secure, "https:", "http:", 1), problem.EndpointNotTinker},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(c *broker.Config) { c.BaseURL = tc.url })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			told := make(chan client.Event, 1)
			c, err := client.New(client.Config{BaseURL: f.url, APIKey: contract.RunToken(tokenKey, first.UID),
				Observe: func(e client.Event) {
					select {
					case told <- e:
						cancel()
					default:
					}
				}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.WeightsInfo(ctx, "tinker://r/weights/n"); err == nil {
				t.Fatal("the request has an answer")
			}
			if got := <-told; got.Code != tc.want {
				t.Errorf("the run is told %s (%s), want %s", got.Code, got.Reason, tc.want)
			}
			if got := f.broker.Report(); got.Unreachable == "" || got.UnreachableCode != tc.want {
				t.Errorf("the broker reports %q with the code %q, want %q", got.Unreachable, got.UnreachableCode, tc.want)
			}
		})
	}
}

// TestCertificateThatTheBrokerNoLongerTrusts changes the certificate of a server that the broker has used: the answer
// to the run has the code.
func TestCertificateThatTheBrokerNoLongerTrusts(t *testing.T) {
	f := newFixture(t, nil)
	mine := f.make(first)
	f.broker.Close()
	connected := f.config.HTTP
	f.config.HTTP = &http.Client{Transport: switchTo(transporttest.PrivateServer(t).URL)}
	f.open()
	f.config.HTTP = connected
	got := f.callAs(first, http.MethodPost, "/api/v1/session_heartbeat", fmt.Sprintf(`{"session_id":%q}`, mine.session))
	checkRefusal(t, got, http.StatusBadGateway, problem.EndpointAuthorityUnknown, true)
	if got := f.broker.Report(); got.UnreachableCode != problem.EndpointAuthorityUnknown {
		t.Errorf("the broker reports %q, want %s", got.UnreachableCode, problem.EndpointAuthorityUnknown)
	}
}
