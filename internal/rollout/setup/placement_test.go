// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// definitionInPods returns a definition whose reward runs in pods.
func definitionInPods(pods string) contract.Definition {
	return contract.Definition{
		Reward: &environment.Reward{RewardRule: environment.RewardRule{Python: &environment.Python{
			Source: environment.Source{Code: "x"}, Processes: 1, Concurrency: 1}}},
		Execution: &contract.Execution{FunctionImage: environment.FunctionImage{Placement: environment.PlacementPods},
			Pods: []byte(pods)},
	}
}

// TestPlacementInWarmPool checks that workers trust the pool's certificate, and use the token of the run's program.
func TestPlacementInWarmPool(t *testing.T) {
	placement := Placement{Prefix: "run-12345", Token: "the token of the run"}
	warm := definitionInPods(`{"replicas":2,"warmPoolRef":{"name":"python"}}`)
	made := placement.Programs(warm).Pods
	secrets, err := contract.DeriveProgramCredentials(placement.Token, warm.ProgramID())
	if err != nil {
		t.Fatal(err)
	}
	if want := contract.ProgramName("run-12345", warm.ProgramID()); made.Name != want || made.Token != secrets.Token {
		t.Errorf("the pods of %s are asked with the token %q, want %s and the program's token", made.Name, made.Token, want)
	}
	if _, err := made.TLS(); err == nil || !strings.Contains(err.Error(), contract.WarmPoolCertificate("python")) {
		t.Errorf("without the pool's certificate: TLS = %v, want an error with its file", err)
	}
	if _, err := placement.Programs(definitionInPods(`{"replicas":2}`)).Pods.TLS(); err != nil {
		t.Errorf("pods of the run's own: TLS = %v", err)
	}
}

// TestPlacementOfAgents checks that an agent in pods of its own does not share the pods of its environment's
// functions, and that an agent with the placement Worker runs beside the worker.
func TestPlacementOfAgents(t *testing.T) {
	placement := Placement{Prefix: "run-12345", Token: "the token of the run"}
	definition := definitionInPods(`{"replicas":2}`)
	definition.Interaction = &environment.Interaction{Agent: &environment.Agent{Command: []string{"agent"}, Processes: 2}}
	agents, functions := placement.Agents(definition).Pods, placement.Programs(definition).Pods
	if want := contract.ProgramName("run-12345", definition.AgentID()); agents == nil || agents.Name != want {
		t.Fatalf("the agent runs in %+v, want the pods %s", agents, want)
	}
	if agents.Name == functions.Name || agents.Token == functions.Token {
		t.Errorf("the agent shares its pods %s or their token with the functions", agents.Name)
	}
	definition.Execution.Placement = environment.PlacementWorker
	if host := placement.Agents(definition); host.Pods != nil || host.Socket != contract.SocketOf(definition.AgentID()) {
		t.Errorf("beside workers: the agent runs at %+v", host)
	}
}

// TestWarmPoolTLS connects to a server with the pool's certificate, and to a server with another certificate.
func TestWarmPoolTLS(t *testing.T) {
	pool, err := contract.DeriveProgramCredentials("the pool's", "0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	other, err := contract.DeriveProgramCredentials("another pool's", "0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tls.crt")
	if err := os.WriteFile(file, pool.Certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		contract.ProgramCredentials
		trusted bool
	}{"the pool's": {pool, true}, "another pool's": {other, false}} {
		pair, err := tls.X509KeyPair(tc.Certificate, tc.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		server, err := tls.Listen("tcp", "127.0.0.1:0",
			&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if conn, err := server.Accept(); err == nil {
				_, _ = conn.Read(make([]byte, 1)) // until the client leaves
				_ = conn.Close()
			}
		}()
		config, err := warmPoolTLS(file)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", server.Addr().String())
		if (err == nil) != tc.trusted {
			t.Errorf("%s: handshake = %v, want it to succeed: %v", name, err, tc.trusted)
		}
		if err == nil {
			_ = conn.Close()
		}
		_ = server.Close()
	}
}
