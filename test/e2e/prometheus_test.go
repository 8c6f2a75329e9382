// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && prometheus

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/test/freeport"
)

// TestPrometheusReadsARun lets Prometheus scrape the manager with the chart's permissions while a run trains and loses
// its learner. It checks that each query of the dashboard then has data, and that the alerts' rules are evaluated.
func TestPrometheusReadsARun(t *testing.T) {
	address := startPrometheus(t)
	run := start(t, "scraped", func(spec *v1alpha1.TrainingRunSpec) {
		spec.Evaluation = &v1alpha1.Evaluation{EverySteps: new(int64(4)), Environments: []v1alpha1.EvaluationEnvironment{{
			EnvironmentUse: v1alpha1.EnvironmentUse{Name: "arithmetic", Sampling: playing.Sampling{MaxTokens: 12}},
			InheritFrom:    "arithmetic",
			Splits:         []v1alpha1.EvaluationSplit{{Name: "test", Take: new(int64(16))}},
		}}}
	})
	reached(t, run, 4)
	env.signal(t, learner(t, run), "KILL")
	missing := queries(t)
	eventually(t, 4*time.Minute, "each query of the dashboard has data", func() bool {
		missing = withoutData(t, address, missing)
		return len(missing) == 0
	})
	checkRules(t, address)
}

// startPrometheus starts Prometheus on this machine and returns its address. It scrapes the manager's Service every
// second as a service account that is bound to the chart's role.
func startPrometheus(t *testing.T) string {
	t.Helper()
	for _, arguments := range [][]string{
		{"-n", systemNamespace, "create", "serviceaccount", "prometheus"},
		{"create", "clusterrolebinding", "e2e-prometheus", "--clusterrole=tinker-operator-metrics-reader",
			"--serviceaccount=" + systemNamespace + ":prometheus"},
	} {
		if output, err := kubectl(arguments...); err != nil && !strings.Contains(output, "AlreadyExists") {
			t.Fatalf("kubectl %v: %v\n%s", arguments, err, output)
		}
	}
	t.Cleanup(func() {
		if output, err := kubectl("delete", "clusterrolebinding", "e2e-prometheus"); err != nil {
			t.Logf("deleting the binding: %v\n%s", err, output)
		}
		if output, err := kubectl("-n", systemNamespace, "delete", "serviceaccount", "prometheus"); err != nil {
			t.Logf("deleting the service account: %v\n%s", err, output)
		}
	})
	token, err := kubectl("-n", systemNamespace, "create", "token", "prometheus")
	if err != nil {
		t.Fatalf("creating a token: %v\n%s", err, token)
	}
	var service corev1.Service
	env.get(t, systemNamespace, "tinker-operator-metrics", &service)
	dir := t.TempDir()
	config := fmt.Sprintf(
		`{"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [%q], "scrape_configs": [{
		"job_name": "manager", "scheme": "https", "tls_config": {"insecure_skip_verify": true}, "authorization": {"credentials": %q},
		"static_configs": [{"targets": [%q]}]}]}`,
		filepath.Join(root, "charts/tinker-operator/files/alerts.yaml"), strings.TrimSpace(token),
		fmt.Sprintf("%s:%d", service.Spec.ClusterIP, service.Spec.Ports[0].Port))
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "prometheus.sh"), "prometheus").Output()
	if err != nil {
		t.Fatalf("finding Prometheus: %v", err)
	}
	address := freeport.Address(t)
	var log bytes.Buffer
	command := exec.CommandContext(t.Context(), strings.TrimSpace(string(program)), "--config.file",
		filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address)
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return "http://" + address
}

// queries returns the queries of the dashboard's panels, for all namespaces and runs, and the series of its variables.
func queries(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "charts/tinker-operator/files/dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct {
				Type  string
				Query json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			// No TinkerEndpoint exists here. Tests of cmd/broker and of the manager's metrics check the names of its metrics.
			if !regexp.MustCompile("tinker_operator_(broker|endpoint)_").MatchString(target.Expr) {
				all = append(all, target.Expr)
			}
		}
	}
	listed := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	for _, variable := range dashboard.Templating.List {
		var query struct{ Query string }
		if json.Unmarshal(variable.Query, &query) == nil {
			if found := listed.FindStringSubmatch(query.Query); found != nil {
				all = append(all, fmt.Sprintf(`(%s) and on (%s) (%[1]s)`, found[1], found[2]))
			}
		}
	}
	if len(all) < 16 {
		t.Fatalf("the dashboard has the queries %q", all)
	}
	for i := range all {
		all[i] = strings.NewReplacer("$namespace", ".*", "$run", ".*").Replace(all[i])
	}
	return all
}

// withoutData returns the queries that have no data yet. A query that is invalid ends the test.
func withoutData(t *testing.T, address string, queries []string) []string {
	t.Helper()
	var missing []string
	for _, query := range queries {
		var answer struct {
			Status, Error string
			Data          struct{ Result []json.RawMessage }
		}
		if !ask(t, address+"/api/v1/query?query="+url.QueryEscape(query), &answer) {
			return queries
		}
		if answer.Status != "success" {
			t.Fatalf("%s: %s", query, answer.Error)
		}
		if len(answer.Data.Result) == 0 {
			missing = append(missing, query)
		}
	}
	if len(missing) > 0 {
		t.Logf("%d of %d queries have no data yet: %q", len(missing), len(queries), missing)
	}
	return missing
}

// checkRules checks that Prometheus has evaluated each rule without an error.
func checkRules(t *testing.T, address string) {
	t.Helper()
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if !ask(t, address+"/api/v1/rules", &answer) {
		t.Fatal("Prometheus does not answer")
	}
	count := 0
	for _, group := range answer.Data.Groups {
		for _, rule := range group.Rules {
			if count++; rule.Health != "ok" {
				t.Errorf("the alert %s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
		}
	}
	if count < 8 {
		t.Errorf("Prometheus has %d alerts", count)
	}
}

// ask decodes an answer of Prometheus, and reports whether there was one.
func ask(t *testing.T, address string, answer any) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	return json.NewDecoder(response.Body).Decode(answer) == nil
}
